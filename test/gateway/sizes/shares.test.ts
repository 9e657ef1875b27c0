/** A tenant that sends photos shares with one that sends text by what both really take, and not by their bytes. */
import { expect, it, onTestFinished } from 'vitest';
import { createGateway, loadGatewayConfig } from '../../../src/gateway/index.js';
import { until } from '../../integration/support/until.js';
import { fileOf } from '../support/gateway.js';
import { dialects, kinds, type Prompt } from '../support/prompts.js';
import { families } from '../support/token-counts.js';
import { promptTokens } from '../support/token-server.js';
import { startUpstream } from '../support/upstream.js';

const model = 'Qwen2.5-VL';
const prompts: Readonly<Record<string, Prompt>> = {
  photographer: kinds['a photo of 3 MB']!(() => 0.5),
  writer: { parts: [{ text: 'This is one sentence among many others. '.repeat(200) }] },
};
const bodies = new Map(
  Object.entries(prompts).map(([tenant, prompt]) => [
    tenant,
    JSON.stringify({ ...dialects.chat(model, prompt).body, user: tenant }),
  ]),
);
const real = new Map([...bodies].map(([tenant, body]) => [tenant, promptTokens(families.qwen, JSON.parse(body))]));

/** The photographer's part of all prompt tokens that the server took, while both always had five requests there. */
async function shareOfPhotos(countsBytes: boolean): Promise<number> {
  let isOver = false;
  const running: { readonly tenant: string; finish(): void }[] = [];
  const server = await startUpstream(({ res, body }) => {
    const { user: tenant } = JSON.parse(body) as { user: string };
    const tokens = real.get(tenant)!;
    const usage = { prompt_tokens: tokens, completion_tokens: 20, total_tokens: tokens + 20 };
    const text = JSON.stringify({ choices: [], usage });
    const finish = () => res.setHeader('content-type', 'application/json').end(text);
    if (isOver) finish();
    else running.push({ tenant, finish });
  });
  const fairnessPolicyRef = 'virtual-token-counter-fairness-policy';
  const config = loadGatewayConfig(
    fileOf([server.url], {
      auth: { keys: [...bodies.keys()].map((tenant) => ({ key: tenant, tenant })) },
      plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency: 4 } }, { type: fairnessPolicyRef }],
      flowControl: {
        saturationDetector: { pluginRef: 'concurrency-detector' },
        priorityBands: [{ priority: 0, fairnessPolicyRef }],
      },
    }),
  );
  const byBytes = ({ byteSize }: { readonly byteSize: number }) => ({ inputTokens: byteSize / 4, outputTokens: 256 });
  const gateway = await createGateway(
    countsBytes ? { ...config, flow: { ...config.flow, estimate: byBytes } } : config,
    { log: () => {} },
  );
  onTestFinished(async () => void (await gateway.close()));
  const sender = async (tenant: string): Promise<void> => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${tenant}` };
    while (!isOver) {
      const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers,
        body: bodies.get(tenant)!,
      });
      expect([answer.status, (await answer.text()).slice(0, 300)]).toEqual([200, expect.any(String)]);
    }
  };
  const senders = [...bodies.keys()].flatMap((tenant) => Array.from({ length: 5 }, () => sender(tenant)));
  const taken = { photographer: 0, writer: 0 } as Record<string, number>;
  for (let served = 0; served < 64; served++) {
    await until(
      'every seat is taken and both wait',
      () => running.length === 4 && waitingTenants(gateway) === 2,
      20_000,
    );
    const { tenant, finish } = running.shift()!;
    taken[tenant]! += real.get(tenant)!;
    finish();
  }
  isOver = true;
  for (const { finish } of running) finish();
  await Promise.all(senders);
  return taken.photographer! / (taken.photographer! + taken.writer!);
}

const waitingTenants = ({ flow }: Awaited<ReturnType<typeof createGateway>>): number =>
  new Set([...flow.figures().bands].flatMap((band) => [...band.waitingIds()])).size;

it('half of the tokens, within 5 %', async () => {
  expect(Math.abs((await shareOfPhotos(false)) - 0.5)).toBeLessThan(0.05);
}, 120_000);

it('far less than half where bytes are counted, although every server reports the truth', async () => {
  expect(await shareOfPhotos(true)).toBeLessThan(0.4);
}, 120_000);
