/** Streams that bring no content in time, to a client over real sockets. */
import { describe, expect, it } from 'vitest';
import { type RetryOptions, retryBudget, retryingFetch } from '../../src/client/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { hang, inTurn, refuse, sendText, serve, startModelServer, think } from '../fetch/model-server.js';
import { until } from '../integration/support/until.js';

const timeouts = { firstToken: 20, firstTokenByModel: { o3: 60_000 } };
const streamed = { method: 'POST', body: JSON.stringify({ model: 'llama', stream: true }) };

function send(options: RetryOptions = {}): { readonly send: typeof fetch; readonly clock: ManualClock } {
  const clock = new ManualClock();
  return { send: retryingFetch({ timeouts, clock, ...options }) as typeof fetch, clock };
}

describe('a stream without a content token in time', () => {
  it.each([
    ['no answer', hang],
    ['comments and a role alone', think],
  ])('is cancelled and asked for again, and nothing of it is seen: %s', async (_what, late) => {
    const server = await startModelServer(inTurn(late, serve));
    const client = send();
    const call = client.send(server.url, streamed);
    await until('it was asked', () => server.asked.length === 1);
    await client.clock.advance(20);
    const text = await (await call).text();
    expect(text).toContain('ved');
    expect(text.match(/keep-alive/g)).toHaveLength(1);
    await until('the late attempt was cancelled', () => server.asked[0]!.wasLeft);
  });

  it.each([
    ['the last attempt is made', { maxAttempts: 1 }, streamed],
    ['the budget is spent', { budget: { requested() {}, tryRetry: () => false } }, streamed],
    ['its model has a time of its own', {}, { ...streamed, body: '{"model":"o3","stream":true}' }],
    ['it asks for no stream', {}, { ...streamed, body: '{"model":"llama"}' }],
  ])('is waited for when %s', async (_why, options, init) => {
    const server = await startModelServer(think);
    const client = send(options);
    const call = client.send(server.url, init);
    await until('it was asked', () => server.asked.length === 1);
    await client.clock.advance(59_999);
    sendText(server.asked[0]!, 'served');
    server.asked[0]!.res.end();
    expect(await (await call).text()).toContain('served');
    expect(server.asked).toHaveLength(1);
  });

  it('is passed on as fetch has it, with its address, when its first token is in time', async () => {
    const server = await startModelServer(serve);
    const { url, type, redirected } = await send().send(server.url, streamed);
    expect({ url, type, redirected }).toEqual({ url: new URL(server.url).href, type: 'basic', redirected: false });
  });

  it('costs the budget as a refusal does', async () => {
    const server = await startModelServer(inTurn(hang, hang, serve));
    const budget = retryBudget({ ratio: 0, minPerSecond: 0, capacity: 2 });
    const client = send({ budget });
    const call = client.send(server.url, streamed);
    for (const asked of [1, 2]) {
      await until('it was asked', () => server.asked.length === asked);
      await client.clock.advance(20);
    }
    expect((await call).status).toBe(200);
    expect(budget.tryRetry(0)).toBe(false);
  });

  it('ends with the reason of a caller that aborts, before its first token and after it', async () => {
    for (const behave of [hang, think, serve]) {
      const server = await startModelServer(behave);
      const abort = new AbortController();
      const call = send()
        .send(server.url, { ...streamed, signal: abort.signal })
        .then(async (response) => {
          abort.abort(new Error('left'));
          return response.text();
        });
      const ended = expect(call).rejects.toThrow('left');
      await until('it was asked', () => server.asked.length === 1);
      if (behave !== serve) abort.abort(new Error('left'));
      await ended;
    }
  });

  it('leaves refusals to their own rule', async () => {
    const server = await startModelServer(inTurn(refuse(429, { 'retry-after-ms': '1' }), serve));
    const client = send({ rejected: () => 0 });
    const call = client.send(server.url, streamed);
    await until('it waits', () => client.clock.pendingTimers > 0 && server.asked.length === 1);
    while (server.asked.length === 1) {
      await client.clock.advance(1);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const response = await call;
    expect([response.status, server.asked.length]).toEqual([200, 2]);
  });
});
