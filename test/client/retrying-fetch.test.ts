import { describe, expect, it, vi } from 'vitest';
import { type RetryOptions, retryBudget, retrying, retryingFetch } from '../../src/client/index.js';
import { FlowConfigError } from '../../src/index.js';
import { until } from '../integration/support/until.js';
import { advance, answer, rig, saturated, served } from './support.js';

const url = 'http://gateway.test/v1/chat/completions';

describe('a retrying fetch', () => {
  it('hands on what is no refusal, untouched', async () => {
    const response = new Response('partial', { status: 500 });
    const { send, calls, clock } = rig([() => response]);
    expect(await send(url)).toBe(response);
    expect(response.bodyUsed).toBe(false);
    expect([calls.length, clock.pendingTimers]).toEqual([1, 0]);
  });

  it('comes back no earlier than the gateway says', async () => {
    const { send, calls, clock } = rig([saturated, saturated, served]);
    const response = send(url, { method: 'POST', body: '{}' });
    await advance(clock, 999);
    expect(calls).toHaveLength(1);
    await advance(clock, 1);
    await advance(clock, 1000);
    expect(await (await response).text()).toBe('served');
    expect(calls.map(({ atMs }) => atMs)).toEqual([0, 1000, 2000]);
    expect(calls.map(({ init }) => init?.body)).toEqual(['{}', '{}', '{}']);
  });

  it('gives the last refusal to the caller, readable, after maxAttempts', async () => {
    const { send, calls, clock } = rig([saturated], { maxAttempts: 3 });
    const response = send(url);
    for (let i = 0; i < 5; i++) await advance(clock, 1000);
    expect((await response).status).toBe(429);
    expect(await (await response).text()).toBe('refused');
    expect(calls).toHaveLength(3);
  });

  it('does not wait for a retry that would begin after the deadline', async () => {
    const { send, calls, clock } = rig([saturated], { deadlineMs: 2500, maxAttempts: 10 });
    const response = send(url);
    await advance(clock, 1000);
    await advance(clock, 1000);
    expect((await response).status).toBe(429);
    expect([calls.length, clock.pendingTimers]).toEqual([3, 0]);
  });

  it('counts the time that attempts take towards the deadline', async () => {
    const { send, calls, clock } = rig(
      [
        () => {
          clock.advance(2000);
          return saturated();
        },
      ],
      { deadlineMs: 2500 },
    );
    expect((await send(url)).status).toBe(429);
    expect(calls).toHaveLength(1);
  });

  it('stops when the budget is spent, and all requests of one fetch share it', async () => {
    const { send, calls, clock } = rig([saturated], {
      budget: retryBudget({ capacity: 2, ratio: 0, minPerSecond: 0 }),
      maxAttempts: 2,
    });
    const responses = Promise.all([send(url), send(url), send(url), send(url)]);
    await advance(clock, 1000);
    expect((await responses).map(({ status }) => status)).toEqual([429, 429, 429, 429]);
    expect(calls).toHaveLength(4 + 2);
  });

  it('asks the budget for retries only, and tells it of requests once each', async () => {
    const log: string[] = [];
    const budget = {
      requested: () => void log.push('requested'),
      tryRetry: (nowMs: number) => log.push(`retry at ${nowMs}`) > 0,
    };
    const { send, clock } = rig([saturated, saturated, served, answer(500)], { budget });
    const response = send(url);
    for (let i = 0; i < 2; i++) await advance(clock, 1000);
    await response;
    await send(url);
    expect(log).toEqual(['requested', 'retry at 0', 'retry at 1000', 'requested']);
  });

  it('passes network errors on without a retry', async () => {
    const { send, calls, clock } = rig([() => Promise.reject(new TypeError('fetch failed'))]);
    await expect(send(url)).rejects.toThrow('fetch failed');
    expect([calls.length, clock.pendingTimers]).toEqual([1, 0]);
  });

  it('reads the refused response to its end, and no other', async () => {
    const refused = new Response('x'.repeat(1000), { status: 503 });
    const { send, clock } = rig([() => refused, served]);
    const response = send(url);
    await advance(clock, 0);
    expect(refused.bodyUsed).toBe(true);
    expect((await response).bodyUsed).toBe(false);
  });

  it('cancels what is left of a refusal without an end when the pause is over', async () => {
    let cancelled = 0;
    const endless = new ReadableStream({ cancel: () => void cancelled++ });
    const { send, clock } = rig([
      () => new Response(endless, { status: 503, headers: { 'retry-after': '1' } }),
      served,
    ]);
    const response = send(url);
    await advance(clock, 999);
    expect(cancelled).toBe(0);
    await advance(clock, 1);
    expect([(await response).status, cancelled]).toEqual([200, 1]);
  });

  it('does not read on in a refusal that is too long', async () => {
    let cancelled = 0;
    let chunks = 0;
    const long = new ReadableStream({
      pull: (controller) => {
        chunks++;
        controller.enqueue(new Uint8Array(20_000));
      },
      cancel: () => void cancelled++,
    });
    const { send, clock } = rig([() => new Response(long, { status: 503, headers: { 'retry-after': '1' } }), served]);
    const response = send(url);
    await until('cancelled', () => cancelled === 1);
    expect(chunks).toBeLessThan(8);
    await advance(clock, 1000);
    expect((await response).status).toBe(200);
  });

  it('survives a refusal whose body fails, is locked, or is not there', async () => {
    const failing = new ReadableStream({ start: (controller) => controller.error(new Error('reset')) });
    const locked = new Response('x', { status: 503 });
    locked.body?.getReader();
    const { send, clock, calls } = rig([
      () => new Response(failing, { status: 503 }),
      () => locked,
      answer(503, {}, null),
      served,
    ]);
    const response = send(url);
    for (let i = 0; i < 3; i++) await advance(clock, 0);
    expect((await response).status).toBe(200);
    expect(calls).toHaveLength(4);
  });
});

describe('the body of a request', () => {
  const form = new FormData();
  form.set('file', new Blob(['audio']));

  it.each<[string, RequestInit['body']]>([
    ['text', 'text'],
    ['a buffer', new Uint8Array([1, 2]).buffer],
    ['a view', new Uint8Array([1, 2])],
    ['a blob', new Blob(['x'])],
    ['a form', form],
    ['search parameters', new URLSearchParams('a=b')],
    ['null', null],
  ])('is sent again: %s', async (_name, body) => {
    const { send, clock, calls } = rig([saturated, served]);
    const response = send(url, { method: 'POST', body: body ?? null });
    await advance(clock, 1000);
    expect((await response).status).toBe(200);
    expect(calls.map(({ init }) => init?.body)).toEqual([body, body]);
  });

  it.each<[string, unknown]>([
    ['a stream', new ReadableStream()],
    ['an async iterable', (async function* () {})()],
    ['something unknown', { pipe() {} }],
  ])('is sent once when it cannot be sent again: %s', async (_name, body) => {
    const { send, clock, calls } = rig([saturated, served]);
    const response = await send(url, { method: 'POST', body: body as string });
    expect([response.status, calls.length, clock.pendingTimers]).toEqual([429, 1, 0]);
  });

  it('is read anew for each attempt from a Request', async () => {
    const bodies: string[] = [];
    const clock = new (await import('../../src/testing/index.js')).ManualClock();
    const send = retrying(
      async (input, init) => {
        const request = new Request(input, init);
        bodies.push(await request.text());
        return bodies.length < 3 ? saturated() : served();
      },
      { clock, random: () => 0, maxAttempts: 3 },
    );
    const response = send(new Request(url, { method: 'POST', body: 'prompt' }));
    for (let i = 0; i < 2; i++) {
      await until('waiting', () => clock.pendingTimers === 1);
      clock.advance(1000);
    }
    expect((await response).status).toBe(200);
    expect(bodies).toEqual(['prompt', 'prompt', 'prompt']);
  });

  it('of init takes the place of that of a Request, which is not copied then', async () => {
    const request = new Request(url, { method: 'POST', body: 'old' });
    const { send, clock, calls } = rig([saturated, served]);
    const response = send(request, { body: 'new' });
    await advance(clock, 1000);
    await response;
    expect(calls.map(({ input }) => input === request)).toEqual([true, true]);
  });
});

describe('an abort', () => {
  /** Counts the listeners on a signal. */
  function counted(): { controller: AbortController; listeners: () => number } {
    const controller = new AbortController();
    const add = vi.spyOn(controller.signal, 'addEventListener');
    const remove = vi.spyOn(controller.signal, 'removeEventListener');
    return { controller, listeners: () => add.mock.calls.length - remove.mock.calls.length };
  }

  it('ends the pause at once with the reason of the signal, and leaves no timer', async () => {
    const { controller } = counted();
    const { send, clock, calls } = rig([saturated, served]);
    const response = send(url, { signal: controller.signal });
    await advance(clock, 500);
    const reason = new Error('the user left');
    controller.abort(reason);
    await expect(response).rejects.toBe(reason);
    expect([calls.length, clock.pendingTimers]).toEqual([1, 0]);
  });

  it('finds no listener when the pause is over', async () => {
    const { controller, listeners } = counted();
    const { send, clock } = rig([saturated, saturated, served]);
    const response = send(url, { signal: controller.signal });
    await advance(clock, 500);
    expect(listeners()).toBe(1);
    await advance(clock, 500);
    await advance(clock, 1000);
    expect((await response).status).toBe(200);
    expect(listeners()).toBe(0);
  });

  it('between the answer and the pause counts too', async () => {
    const controller = new AbortController();
    const { send, clock } = rig([
      () => {
        controller.abort();
        return saturated();
      },
    ]);
    await expect(send(url, { signal: controller.signal })).rejects.toHaveProperty('name', 'AbortError');
    expect(clock.pendingTimers).toBe(0);
  });

  it('of a Request counts, unless init has another signal', async () => {
    const controller = new AbortController();
    const request = new Request(url, { signal: controller.signal });
    const first = rig([saturated, served]);
    const aborted = first.send(request);
    const second = rig([saturated, served]);
    const kept = second.send(request, { signal: null });
    await advance(first.clock, 10);
    await advance(second.clock, 10);
    controller.abort();
    await expect(aborted).rejects.toHaveProperty('name', 'AbortError');
    await advance(second.clock, 990);
    expect((await kept).status).toBe(200);
  });
});

describe('the options', () => {
  it.each([
    { maxAttempts: 0 },
    { maxAttempts: 1.5 },
    { deadlineMs: -1 },
    { maxRetryAfterMs: '60s' },
    { rejected: 100 },
    { random: 0.5 },
    { budget: { tryRetry: () => true } },
    { clock: {} },
    { retries: 3 },
  ])('%j are refused when the fetch is made', (options) => {
    expect(() => retryingFetch(options as RetryOptions)).toThrow(FlowConfigError);
  });

  it('fail with an error of the same class as those of the core', () => {
    let error: unknown;
    try {
      retryingFetch({ maxAttempts: 0 });
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(FlowConfigError);
    expect(error).toBeInstanceOf(TypeError);
    const issues = [{ path: 'maxAttempts', expected: 'an integer from 1 up', got: '0 (number)' }];
    const ofCore = new FlowConfigError('retrying options', issues);
    expect(error).toMatchObject({ name: ofCore.name, code: ofCore.code, message: ofCore.message, issues });
  });

  it('are told what they should be', () => {
    expect(() => retryingFetch({ maxAttempts: 0, deadlineMs: '2m' as never })).toThrow(
      'retrying options: 2 problems\n  maxAttempts: expected an integer from 1 up; got 0 (number)\n  deadlineMs: expected ms from 0 up; got "2m" (string)',
    );
  });

  it('may say that nothing is retried', async () => {
    const { send, calls } = rig([saturated], { maxAttempts: 1 });
    expect((await send(url)).status).toBe(429);
    expect(calls).toHaveLength(1);
  });
});

describe('retryingFetch', () => {
  it('calls the fetch that the platform has at that time', async () => {
    const send = retryingFetch();
    const fetch = vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response('mocked'));
    expect(await (await send(url, { method: 'POST' })).text()).toBe('mocked');
    expect(fetch).toHaveBeenCalledWith(url, { method: 'POST' });
  });
});
