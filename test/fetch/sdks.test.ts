/** The clients that people use, with `flowFetch` as their fetch, against a model server on a real socket. */

import { describe, expect, it } from 'vitest';
import { inFlightEviction } from '../../src/core/eviction.js';
import type { FlowControllerOptions } from '../../src/index.js';
import { until } from '../integration/support/until.js';
import { collectGarbage } from '../support/collect-garbage.js';
import { clients } from './clients.js';
import { expectIdle, gated, type Setup } from './flow.js';
import { hang, inTurn, sendText, serve, stall, startModelServer } from './model-server.js';

/** Nobody may wait. */
const full = {
  admission: {
    type: 'no-waiting',
    admit: (_request, _key, view) => (view.saturation() < 1 ? 'admit' : { reason: 'the seat is taken' }),
  },
} satisfies Partial<FlowControllerOptions>;

/** The usage of every lease that was released. */
function usagesOf({ flow }: Setup): object[] {
  const usages: object[] = [];
  flow.on('released', ({ lease }) => usages.push(lease.usage));
  return usages;
}

async function textOf(pieces: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += piece;
  return text;
}

describe.each(clients)('%s', (_name, make, cancels, endsQuietly) => {
  /** Those that read on are stopped by time. */
  const timeouts = cancels ? {} : { idle: 50 };

  it('gets answers in one piece and in many, and what they cost is charged', async () => {
    const { url } = await startModelServer();
    const setup = gated();
    const usages = usagesOf(setup);
    const client = make({ url, fetch: setup.fetch });
    expect(await client.complete()).toBe('served');
    expect(await textOf(client.stream())).toBe('served');
    await expectIdle(setup);
    expect(usages).toEqual([
      { promptTokens: 7, completionTokens: 2 },
      { promptTokens: 7, completionTokens: 2 },
    ]);
  });

  it('waits for its turn', async () => {
    const server = await startModelServer(stall);
    const setup = gated();
    const client = make({ url: server.url, fetch: setup.fetch });
    const leave = new AbortController();
    const first = Promise.allSettled([textOf(client.stream(leave.signal))]);
    await until('the first one runs', () => server.asked.length === 1);
    server.behave = serve;
    const second = client.complete();
    await until('it waits', () => setup.flow.stats().waiting === 1);
    leave.abort();
    await first;
    expect(await second).toBe('served');
    await expectIdle(setup);
  });

  it.each([
    ['waits', hang, 1],
    ['has no answer yet', hang, 0],
    ['streams', stall, 0],
  ])('gives its seat or its place back when it aborts while it %s', async (_phase, behave, ahead) => {
    const server = await startModelServer(behave);
    const setup = gated();
    const client = make({ url: server.url, fetch: setup.fetch });
    const others = Array.from({ length: ahead }, () =>
      setup.fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: '{}' }),
    );
    if (ahead > 0) await until('the seat is taken', () => server.asked.length === ahead);
    const abort = new AbortController();
    // Some clients throw then, and some end the stream.
    const call = Promise.allSettled([textOf(client.stream(abort.signal))]);
    if (ahead > 0) await until('it waits', () => setup.flow.stats().waiting === 1);
    else await until('it runs', () => server.asked.length === 1);
    abort.abort();
    await call;
    expect(setup.flow.stats()).toMatchObject({ waiting: 0 });
    await until('no more seats are taken', () => setup.flow.stats().inFlight === ahead);
    for (const { res } of server.asked) res.destroy();
    await Promise.allSettled(others);
    await expectIdle(setup);
  });

  it('gives its seat back when it stops reading a stream', async () => {
    const server = await startModelServer(stall);
    const setup = gated({ timeouts });
    for await (const piece of make({ url: server.url, fetch: setup.fetch }).stream()) if (piece === 'ser') break;
    await expectIdle(setup);
    await until('the server was left', () => server.asked[0]!.wasLeft);
  });

  it(`${endsQuietly ? 'ends quietly' : 'throws'} when its signal aborts while it streams`, async () => {
    const server = await startModelServer(stall);
    const setup = gated();
    const abort = new AbortController();
    async function readUntilAborted(): Promise<string> {
      let text = '';
      for await (const piece of make({ url: server.url, fetch: setup.fetch }).stream(abort.signal)) {
        text += piece;
        if (text === 'ser') abort.abort();
      }
      return text;
    }
    if (endsQuietly) expect(await readUntilAborted()).toBe('ser');
    else await expect(readUntilAborted()).rejects.toThrow();
    await expectIdle(setup);
    await until('the server was left', () => server.asked[0]!.wasLeft);
  });

  it('is told of an eviction while it streams', async () => {
    const server = await startModelServer(inTurn(stall, serve));
    const setup = gated(
      { classify: ({ url }) => ({ fairnessId: 'a', priority: url.endsWith('?urgent') ? 1 : -1 }) },
      { eviction: inFlightEviction() },
    );
    const call = expect(textOf(make({ url: server.url, fetch: setup.fetch }).stream())).rejects.toThrow();
    await until('it streams', () => server.asked.length === 1);
    await new Promise((resolve) => setImmediate(resolve));
    const urgent = await setup.fetch(`${server.url}/v1/chat/completions?urgent`, { method: 'POST', body: '{}' });
    await urgent.text();
    await call;
    await expectIdle(setup);
  });

  it('gives its seat back when it forgets an answer', async () => {
    const server = await startModelServer(stall);
    const setup = gated({ timeouts });
    await make({ url: server.url, fetch: setup.fetch }).forget();
    await until('the answer was collected', () => {
      collectGarbage();
      return setup.flow.stats().inFlight === 0;
    });
    expect(setup.fetch.counts.unread).toBe(cancels ? 1 : 0);
  });

  it('comes back by itself after our 429', async () => {
    const server = await startModelServer(stall);
    const setup = gated({}, full);
    const first = await setup.fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: '{"stream":true}' });
    server.behave = serve;
    let rejected = 0;
    setup.flow.on('dropped', () => {
      rejected += 1;
      if (rejected === 1) void first.body?.cancel();
    });
    expect(await make({ url: server.url, fetch: setup.fetch, maxRetries: 2 }).complete()).toBe('served');
    expect(rejected).toBe(1);
    expect(server.asked).toHaveLength(2);
    await expectIdle(setup);
  });

  it('survives a server that breaks off', async () => {
    const server = await startModelServer((asked) => {
      stall(asked);
      sendText(asked, 'v');
      setTimeout(() => asked.res.destroy(), 1);
    });
    const setup = gated();
    await expect(textOf(make({ url: server.url, fetch: setup.fetch }).stream())).rejects.toThrow();
    await expectIdle(setup);
  });
});
