import type { Agent } from 'undici';
import { describe, expect, it } from 'vitest';
import { loadGatewayConfig } from '../../../src/gateway/index.js';
import { type ModelOffer, ModelsRoute } from '../../../src/gateway/requests/models-route.js';
import { fileOf } from '../support/gateway.js';

/** A server that answers `text` whenever it is asked. */
function agentOf(text: string): { agent: Agent; asked(): number } {
  let asked = 0;
  const body = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from(text);
  };
  const request = async (): Promise<unknown> => {
    asked += 1;
    return { statusCode: 200, body: body() };
  };
  return { agent: { request } as unknown as Agent, asked: () => asked };
}

const { models, upstreams } = loadGatewayConfig(
  fileOf(['http://10.0.0.1:8000'], { models: { aliases: { mine: 'a' } } }),
);
const everything = (): boolean => true;

function offerOf(list: readonly object[], route = new ModelsRoute()): Promise<ModelOffer> {
  return route.offer(models, upstreams, everything, agentOf(JSON.stringify({ data: list })).agent);
}

describe('the list of models', () => {
  it('is made once of what the servers said, and again when the configuration changes', async () => {
    const route = new ModelsRoute();
    const { agent, asked } = agentOf('{"data":[{"id":"a"}]}');
    const first = await route.offer(models, upstreams, everything, agent);
    expect(await route.offer(models, upstreams, everything, agent)).toBe(first);
    const renamed = await route.offer({ ...models, aliases: { yours: 'a' } }, upstreams, everything, agent);
    expect([...first.models.keys(), ...renamed.models.keys()]).toEqual(['a', 'mine', 'a', 'yours']);
    expect(JSON.parse(first.json.toString()).data).toEqual([...first.models.values()]);
    expect(asked()).toBe(1);
  });

  it('has no more of a server than ten thousand models, and the aliases of the file', async () => {
    const offer = await offerOf([{ id: 'a' }, ...Array.from({ length: 30_000 }, (_, index) => ({ id: `m${index}` }))]);
    expect(offer.models.size).toBe(10_001);
    expect(offer.models.has('mine')).toBe(true);
  });

  it('has no names that nobody can ask for', async () => {
    const offer = await offerOf([{ id: 'x'.repeat(512) }, { id: 'a', owned_by: 'y'.repeat(100_000) }, { id: 7 }]);
    expect([...offer.models.values()].map(({ id, owned_by }) => [id, owned_by])).toEqual([
      ['a', 'headgate'],
      ['mine', 'headgate'],
    ]);
  });

  it('is none where it has so many values that to read them would stop the process', async () => {
    const list = Array.from({ length: 100_002 }, () => 1);
    await expect(offerOf(list as never)).rejects.toMatchObject({ status: 502 });
  });
});
