/** The clients of three makers leave out the signs of life, and report what fails after them. */
import { describe, expect, it } from 'vitest';
import { until } from '../../integration/support/until.js';
import { fileOf, startGateway } from '../support/gateway.js';
import { sdkStreams, serveAnyone } from '../support/sdk-streams.js';
import { startUpstream } from '../support/upstream.js';

/** The only seat is taken until `free`; what comes then is answered. */
async function held(more: object) {
  const server = await startUpstream((received, index) => (index === 0 ? undefined : serveAnyone(received, index)));
  const { gateway, post } = await startGateway(
    fileOf([server.url], { waiting: { after: '10ms', every: '20ms' }, ...more }),
  );
  const holding = new AbortController();
  post({ model: 'llama', messages: [] }, { signal: holding.signal }).catch(() => {});
  await until('the seat is taken', () => server.received.length === 1);
  return { gateway, free: () => holding.abort() };
}

async function signs(url: string, what: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^headgate_waiting_answers_total\\{what="${what}"\\} (\\d+)`, 'm').exec(text)?.[1]);
}

describe.each(Object.entries(sdkStreams))('%s', (_name, stream) => {
  it('reads an answer that came after signs of life as any other', async () => {
    const { gateway, free } = await held({});
    const read = stream(gateway.url);
    let seen = 0;
    while (seen < 3) seen = await signs(gateway.url, 'sign');
    free();
    expect(await read).toBe('served');
    expect(await signs(gateway.url, 'failed')).toBe(0);
  });

  it('reports a drop that came after them as an error', async () => {
    const { gateway, free } = await held({
      flowControl: { saturationDetector: { pluginRef: 'concurrency-detector' }, defaultRequestTTL: '200ms' },
    });
    const told = await stream(gateway.url).then(
      (text) => `no error, but "${text}"`,
      (error: Error) => `${error.name} ${error.message} ${JSON.stringify(error)}`,
    );
    expect(told).toMatch(/ERR_FLOW_TTL_EXPIRED|waited/);
    expect(told).not.toMatch(/^no error/);
    expect(await signs(gateway.url, 'failed')).toBe(1);
    free();
  });
});
