import { describe, expect, it } from 'vitest';
import {
  type BatchDispatcher,
  type BatchDispatcherOptions,
  batchDispatcher,
  type Fetch,
} from '../../src/client/index.js';
import { FlowConfigError } from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { fileOf, startGateway } from '../gateway/support/gateway.js';
import { startUpstream } from '../gateway/support/upstream.js';
import { until } from '../integration/support/until.js';
import { turns } from '../support/flow.js';

const url = 'http://gateway.test/v1/chat/completions';
const told = 'x-llm-d-flow-band-headroom-requests';

/** One request that waits for the test's answer. */
class Exchange {
  readonly atMs: number;
  readonly init: RequestInit | undefined;
  private readonly resolve: (response: Response) => void;
  private readonly reject: (error: unknown) => void;

  constructor(
    atMs: number,
    init: RequestInit | undefined,
    resolve: (response: Response) => void,
    reject: (error: unknown) => void,
  ) {
    this.atMs = atMs;
    this.init = init;
    this.resolve = resolve;
    this.reject = reject;
  }

  answer(
    status: number,
    headers: Record<string, string> = {},
    body: string | ReadableStream<Uint8Array> = 'text',
  ): Promise<void> {
    this.resolve(new Response(body, { status, headers }));
    return turns(40);
  }

  fail(error: Error): Promise<void> {
    this.reject(error);
    return turns(40);
  }
}

/**
 * A gateway whose every answer is in the hands of the test; bodies are read as soon as they are there, unless `reads`
 * is false.
 */
function rig(options: BatchDispatcherOptions = {}, reads = true) {
  const clock = new ManualClock();
  const sent: Exchange[] = [];
  const fetch: Fetch = (_input, init) =>
    new Promise((resolve, reject) => {
      init?.signal?.addEventListener('abort', () => reject(init.signal?.reason));
      sent.push(new Exchange(clock.now(), init, resolve, reject));
    });
  const batch: BatchDispatcher = batchDispatcher({ fetch, clock, random: () => 0, ...options });
  const statuses: (number | string)[] = [];
  const send = (count: number, init: RequestInit = { method: 'POST', body: '{}' }): void => {
    for (let i = 0; i < count; i++) {
      batch.fetch(url, init).then(
        async (response) => {
          if (reads) await response.text();
          statuses.push(response.status);
        },
        (error: unknown) => void statuses.push(String(error)),
      );
    }
  };
  return { clock, batch, sent, statuses, send };
}

describe('a batch dispatcher', () => {
  it('begins with one request, and adds one for each window of answers', async () => {
    const { batch, sent, send } = rig();
    send(20);
    await turns();
    expect([sent.length, batch.waiting]).toEqual([1, 19]);
    await sent[0]?.answer(200);
    expect([batch.window, batch.inFlight]).toEqual([2, 2]);
    await sent[1]?.answer(200);
    await sent[2]?.answer(200);
    expect([batch.window >= 2.9, batch.inFlight]).toEqual([true, 2]);
  });

  it('halves after a refusal, once for all that were sent together, and sends no sooner than told', async () => {
    const { batch, clock, sent, statuses, send } = rig({ initial: 8 });
    send(8);
    await turns();
    expect(batch.inFlight).toBe(8);
    for (let i = 0; i < 4; i++) await sent[i]?.answer(429, { 'retry-after': '2' });
    expect([batch.window, batch.inFlight, batch.waiting]).toEqual([4, 4, 4]);
    for (let i = 4; i < 8; i++) await sent[i]?.answer(200);
    clock.advance(1999);
    await turns();
    expect(sent).toHaveLength(8);
    clock.advance(1);
    await turns();
    expect(sent.slice(8).map(({ atMs }) => atMs)).toEqual([2000, 2000, 2000, 2000]);
    for (let i = 8; i < 12; i++) await sent[i]?.answer(200);
    expect(statuses).toEqual(Array(8).fill(200));
    expect(clock.pendingTimers).toBe(0);
  });

  it('halves again when what was sent after that is refused too, and never below one', async () => {
    const { batch, clock, sent, send } = rig({ initial: 4 });
    send(4);
    await turns();
    for (let i = 0; i < 4; i++) await sent[i]?.answer(503);
    for (const window of [1, 1, 1]) {
      clock.advance(20_000);
      await turns();
      await sent.at(-1)?.answer(503);
      expect(batch.window).toBe(window);
    }
  });

  it('sends first what was refused, in its order', async () => {
    const { clock, sent, send } = rig({ initial: 2 });
    for (const name of ['a', 'b', 'c', 'd']) send(1, { method: 'POST', body: name });
    await turns();
    await sent[0]?.answer(429, { 'retry-after': '1' });
    await sent[1]?.answer(429, { 'retry-after': '1' });
    clock.advance(1000);
    await turns();
    for (let i = 2; i < 5; i++) await sent[i]?.answer(200);
    expect(sent.map(({ init }) => init?.body)).toEqual(['a', 'b', 'a', 'b', 'c', 'd']);
  });

  it('never has more in flight than the headroom that was told last', async () => {
    const { batch, sent, send } = rig({ initial: 6 });
    send(40);
    await turns();
    await sent[0]?.answer(200, { [told]: '3' });
    expect([batch.headroom, batch.inFlight]).toEqual([3, 5]);
    for (let i = 1; i < 3; i++) await sent[i]?.answer(200, { [told]: '3' });
    expect(batch.inFlight).toBe(3);
    await sent[3]?.answer(200, { [told]: '5' });
    expect(batch.inFlight).toBe(5);
  });

  it('sends one to find out, after a pause, when it was told that there is none', async () => {
    const { batch, clock, sent, send } = rig({ initial: 2, probeMs: 500 });
    send(5);
    await turns();
    await sent[0]?.answer(200, { [told]: '0' });
    await sent[1]?.answer(200, { [told]: '0' });
    expect(batch.inFlight).toBe(0);
    clock.advance(499);
    await turns();
    expect(sent).toHaveLength(2);
    clock.advance(1);
    await turns();
    expect([sent.length, batch.inFlight]).toEqual([3, 1]);
    await sent[2]?.answer(200, { [told]: '9' });
    clock.advance(500);
    await turns();
    expect(batch.inFlight).toBeGreaterThanOrEqual(2);
  });

  it('goes by answers alone where the gateway tells nothing, or nonsense', async () => {
    const { batch, sent, send } = rig({ initial: 3 });
    send(9);
    await turns();
    await sent[0]?.answer(200, { [told]: '1' });
    expect(batch.headroom).toBe(1);
    for (const nonsense of ['-1', 'many', '1e3', '']) {
      await sent[1]?.answer(200, { [told]: nonsense });
      expect(batch.headroom === undefined || batch.headroom === 1).toBe(true);
    }
    await sent[2]?.answer(200);
    expect(batch.headroom).toBeUndefined();
    expect(batch.inFlight).toBeGreaterThanOrEqual(3);
  });

  it('does not grow while it is not used up, nor above max, nor by failures', async () => {
    const { batch, sent, send } = rig({ initial: 4, max: 5 });
    send(1);
    await turns();
    await sent[0]?.answer(200);
    expect(batch.window).toBe(4);
    send(30);
    await turns();
    await sent[1]?.answer(500);
    expect(batch.window).toBe(4);
    for (let i = 2; i < 25; i++) await sent[i]?.answer(200);
    expect([batch.window, batch.inFlight]).toEqual([5, 5]);
  });

  it('gives the refusal to the caller after maxAttempts, where it would wait too long, and where the body is a stream', async () => {
    const { clock, sent, statuses, send } = rig({ maxAttempts: 2 });
    send(1);
    await turns();
    await sent[0]?.answer(429);
    clock.advance(10_000);
    await turns();
    await sent[1]?.answer(429);
    send(1);
    clock.advance(10_000);
    await turns();
    await sent[2]?.answer(429, { 'retry-after': '3600' });
    send(1, { method: 'POST', body: new ReadableStream(), duplex: 'half' } as RequestInit);
    clock.advance(10_000);
    await turns();
    await sent[3]?.answer(429);
    expect(statuses).toEqual([429, 429, 429]);
  });

  it('keeps a place in flight until the body of the answer has come or was cancelled', async () => {
    const { batch, sent } = rig({ max: 1 }, false);
    const first = batch.fetch(url);
    const second = batch.fetch(url);
    await turns();
    await sent[0]?.answer(200, {}, new ReadableStream());
    const response = await first;
    expect([response.status, batch.inFlight, sent.length]).toEqual([200, 1, 1]);
    await response.body?.cancel();
    await turns();
    expect([batch.inFlight, sent.length]).toEqual([1, 2]);
    await sent[1]?.answer(200);
    expect(batch.inFlight).toBe(0);
    expect(await (await second).text()).toBe('text');
  });

  it('is not held up by answers that nobody reads', async () => {
    const { batch, sent, send } = rig({ max: 1 }, false);
    send(3);
    await turns();
    for (const at of [0, 1, 2]) await sent[at]?.answer(500);
    expect([batch.inFlight, sent.length]).toEqual([0, 3]);
  });

  it('lets another go as soon as the window has grown, though the body is still to be read', async () => {
    const { batch, sent } = rig({}, false);
    void batch.fetch(url);
    void batch.fetch(url);
    await turns();
    await sent[0]?.answer(200, {}, new ReadableStream());
    expect([batch.inFlight, sent.length]).toEqual([2, 2]);
  });

  it('lets an aborted request go wherever it is, and others in its place', async () => {
    const { batch, sent, statuses, send } = rig();
    const [running, waiting] = [new AbortController(), new AbortController()];
    send(1, { signal: running.signal });
    send(1, { signal: waiting.signal });
    send(1);
    await turns();
    waiting.abort(new Error('never mind'));
    await turns();
    expect([statuses, batch.waiting]).toEqual([['Error: never mind'], 1]);
    running.abort(new Error('enough'));
    await turns(40);
    expect([statuses[1], batch.inFlight, sent.length]).toEqual(['Error: enough', 1, 2]);
    send(1, { signal: AbortSignal.abort(new Error('too late')) });
    await turns();
    expect(statuses[2]).toBe('Error: too late');
    await sent[1]?.answer(200);
    expect([batch.inFlight, batch.waiting]).toEqual([0, 0]);
  });

  it('passes a connection that fails on, and goes on', async () => {
    const { batch, sent, statuses, send } = rig();
    send(2);
    await turns();
    await sent[0]?.fail(new Error('no connection'));
    expect([statuses, batch.inFlight, sent.length]).toEqual([['Error: no connection'], 1, 2]);
  });

  it('says what is wrong with options', () => {
    for (const wrong of [
      { initial: 0 },
      { max: 0 },
      { increase: 0 },
      { decrease: 1 },
      { probeMs: 0 },
      { fetch: 1 },
      { maxInFlight: 3 },
    ]) {
      expect(() => batchDispatcher(wrong as never), JSON.stringify(wrong)).toThrow(FlowConfigError);
    }
  });
});

describe('a batch dispatcher before a real gateway', () => {
  it('sends a batch through a short queue: nothing is refused once headroom was told, and no more is in flight than that', async () => {
    const upstream = await startUpstream();
    const flowControl = {
      saturationDetector: { pluginRef: 'concurrency-detector' },
      priorityBands: [{ priority: 0, maxRequests: 4 }],
      overflow: 'reject',
    };
    const { gateway } = await startGateway(fileOf([upstream.url], { flowControl, bandHeadroom: true }, 2));
    let inFlight = 0;
    let lastTold = Number.POSITIVE_INFINITY;
    const seen: { readonly inFlight: number; readonly told: number }[] = [];
    const answers: number[] = [];
    const counted: Fetch = async (input, init) => {
      seen.push({ inFlight: ++inFlight, told: lastTold });
      const response = await fetch(input, init);
      lastTold = Number(response.headers.get(told) ?? Number.NaN);
      answers.push(response.status);
      const text = await response.text();
      inFlight--;
      return new Response(text, { status: response.status, headers: response.headers });
    };
    const batch = batchDispatcher({ fetch: counted, initial: 2, max: 32, probeMs: 20 });
    const body = JSON.stringify({ model: 'm', messages: [] });
    const headers = { 'content-type': 'application/json' };
    const served = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const response = await batch.fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', body, headers });
        await response.text();
        return response.status;
      }),
    );
    expect(served).toEqual(Array(60).fill(200));
    expect(answers).toEqual(Array(60).fill(200));
    expect(seen.filter((each) => each.inFlight > each.told)).toEqual([]);
    expect(Math.max(...seen.map((each) => each.inFlight))).toBeGreaterThan(1);
    expect(seen.filter((each) => Number.isNaN(each.told))).toEqual([]);
    expect([batch.inFlight, batch.waiting]).toEqual([0, 0]);
    await until('a gateway with nothing left', () => gateway.flow.stats().inFlight === 0);
  });

  it('gets everything through a gateway that refuses, and tells how long to wait', async () => {
    const upstream = await startUpstream();
    const flowControl = {
      saturationDetector: { pluginRef: 'concurrency-detector' },
      priorityBands: [{ priority: 0, maxRequests: 1 }],
      overflow: 'reject',
    };
    const { gateway } = await startGateway(fileOf([upstream.url], { flowControl }, 1));
    const statuses: number[] = [];
    const soon: Fetch = async (input, init) => {
      const response = await fetch(input, init);
      statuses.push(response.status);
      // A second is long for a test.
      const headers = new Headers(response.headers);
      if (headers.has('retry-after')) headers.set('retry-after-ms', '5');
      return new Response(await response.text(), { status: response.status, headers });
    };
    const batch = batchDispatcher({ fetch: soon, initial: 12, random: () => 0 });
    const body = JSON.stringify({ model: 'm', messages: [] });
    const served = await Promise.all(
      Array.from({ length: 30 }, async () => {
        const response = await batch.fetch(`${gateway.url}/v1/chat/completions`, {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json' },
        });
        await response.text();
        return response.status;
      }),
    );
    expect(served).toEqual(Array(30).fill(200));
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0);
    expect(batch.window).toBeLessThan(12);
  });
});
