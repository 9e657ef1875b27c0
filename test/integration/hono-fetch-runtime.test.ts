/** Hono where there is no Node: requests and responses are all that there is. */
import { Hono } from 'hono';
import { timeout } from 'hono/timeout';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { flowControl, type RequestFlow } from '../../src/adapters/hono/index.js';
import { FlowConfigError, FlowEvictedError, inFlightEviction } from '../../src/index.js';
import { runtime, source } from '../adapters/hono/support.js';
import { bundle, typeWithoutNode } from '../support/bundle.js';
import { expectComeBack } from '../support/come-back.js';
import { countingGate } from './support/counting-gate.js';
import { until } from './support/until.js';

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

describe('leases', () => {
  it('one is held until the body has been read to its end', async () => {
    const { stream, send, end } = source();
    const { gate, fetch } = runtime((c) => c.body(stream, 201, { 'x-mine': 'kept' }));
    const response = await fetch();
    expect([
      response.status,
      response.headers.get('x-mine'),
      response.headers.get('x-llm-d-flow-queue-duration-ms'),
    ]).toEqual([201, 'kept', '0']);
    const text = response.text();
    send('one ');
    await until('nothing changes', () => gate.flow.stats().inFlight === 1);
    send('two');
    end();
    expect(await text).toBe('one two');
    expect(gate.flow.stats().inFlight).toBe(0);
    expect(gate.releases).toEqual([1]);
  });

  it('the body is read ahead by 64 KiB and no more, before the runtime asks', async () => {
    const { stream, send, seen } = source();
    const { fetch } = runtime((c) => c.body(stream));
    const reader = (await fetch()).body!.getReader();
    for (let kiB = 0; kiB < 64; kiB++) send('x'.repeat(1024));
    await until('it is read ahead', () => seen.pulls > 0);
    await new Promise((resolve) => setImmediate(resolve));
    const { pulls } = seen;
    send('beyond');
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen.pulls).toBe(pulls);
    for (let kiB = 0; kiB < 64; kiB++) await reader.read();
    await until('the source is asked for more', () => seen.pulls > pulls);
    await reader.cancel();
  });

  it.each<[string, () => Response]>([
    ['short', () => new Response('{"error":"no"}', { status: 404 })],
    ['empty', () => new Response('')],
    ['of 63 KiB', () => new Response(new Uint8Array(63 * 1024))],
  ])('a body that nobody reads gives it back once it is there, and can still be read: %s', async (_, respond) => {
    const { gate, fetch } = runtime(respond);
    const kept = [await fetch(), await fetch()];
    await until('both seats are back', () => gate.releases.length === 2);
    expect(await kept[0]!.arrayBuffer()).toEqual(await kept[1]!.arrayBuffer());
  });

  it('a body that is cancelled gives it back, and tells handler and source', async () => {
    const { stream, seen } = source();
    let flow: RequestFlow | undefined;
    const { gate, fetch } = runtime((c) => {
      flow = c.var.flow;
      return c.body(stream);
    });
    await (await fetch()).body!.cancel('enough');
    expect(gate.flow.stats().inFlight).toBe(0);
    expect(flow!.signal.reason).toMatchObject({ name: 'AbortError', status: 499 });
    expect(seen.cancelled).toBe('enough');
    expect(gate.releases).toEqual([1]);
  });

  it.each([
    ['that nobody reads', false],
    ['whose reader stopped', true],
  ])('a body %s gives it back in the end, and its source is told', async (_, isBegun) => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { stream, send, seen } = source();
    let flow: RequestFlow | undefined;
    const { gate, fetch } = runtime((c) => {
      flow = c.var.flow;
      return c.body(stream);
    });
    const response = await fetch();
    if (isBegun) {
      const chunk = response.body!.getReader().read();
      send('one');
      await chunk;
    }
    await vi.advanceTimersByTimeAsync(59_000);
    expect(gate.flow.stats().inFlight).toBe(1);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(gate.flow.stats().inFlight).toBe(0);
    expect([flow!.signal.aborted, seen.cancelled]).toMatchObject([true, { name: 'TimeoutError' }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('a body that fails midway gives it back, with the failure', async () => {
    const { stream, send, fail } = source();
    let flow: RequestFlow | undefined;
    const { gate, fetch } = runtime((c) => {
      flow = c.var.flow;
      return c.body(stream);
    });
    const reader = (await fetch()).body!.getReader();
    const chunk = reader.read();
    send('one');
    await chunk;
    fail(new Error('upstream broke'));
    await expect(reader.read()).rejects.toThrow('upstream broke');
    expect(gate.flow.stats().inFlight).toBe(0);
    expect(flow!.signal.reason).toMatchObject({ message: 'upstream broke' });
  });

  it.each<[string, string, () => Response]>([
    ['a response without a body', 'GET', () => new Response(null, { status: 204 })],
    ['HEAD, whose body nobody reads', 'HEAD', () => new Response('body')],
    ['a redirect, whose headers are immutable', 'GET', () => Response.redirect('http://localhost/elsewhere', 302)],
  ])('%s gives it back at once', async (_, method, respond) => {
    const { gate, fetch } = runtime(respond);
    const { headers } = await fetch('/', { method });
    expect(headers.get('x-llm-d-flow-queue-duration-ms')).toBe('0');
    expect(gate.flow.stats().inFlight).toBe(0);
    expect(gate.releases).toEqual([1]);
  });

  it('a handler that fails gives it back when the error response is read', async () => {
    const { app, gate, fetch } = runtime(() => {
      throw new Error('handler failed');
    });
    app.onError((_error, c) => c.text('sorry', 500));
    expect(await (await fetch()).text()).toBe('sorry');
    expect(gate.flow.stats().inFlight).toBe(0);
  });

  it('a handler that throws what is no Error gives it back', async () => {
    const { gate, fetch } = runtime(() => {
      throw 'a string';
    });
    await expect(fetch()).rejects.toBe('a string');
    expect(gate.releases).toEqual([1]);
  });

  it('releaseOn manual leaves it to the handler', async () => {
    let flow: RequestFlow | undefined;
    const { gate, fetch } = runtime(
      (c) => {
        flow = c.var.flow;
        return c.text('ok');
      },
      { releaseOn: 'manual' },
    );
    await (await fetch()).text();
    expect(gate.flow.stats().inFlight).toBe(1);
    flow!.lease.release();
    expect(gate.flow.stats().inFlight).toBe(0);
  });

  it('the same controller twice gives one', async () => {
    const gate = countingGate(1);
    const app = new Hono();
    app.use(flowControl(gate));
    app.use(flowControl(gate));
    app.get('/', (c) => c.text('ok'));
    expect(await (await app.request('/')).text()).toBe('ok');
    expect(gate.releases).toEqual([1]);
  });

  it('headers and cookies of other middleware stay', async () => {
    const gate = countingGate(1);
    const app = new Hono();
    app.use(async (c, next) => {
      c.header('x-outer', 'outer');
      await next();
    });
    app.use(flowControl(gate));
    app.get('/', (c) => {
      c.header('set-cookie', 'a=1', { append: true });
      c.header('set-cookie', 'b=2', { append: true });
      return c.text('ok');
    });
    const { headers } = await app.request('/');
    expect(headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect(headers.get('x-outer')).toBe('outer');
    expect(headers.get('content-type')).toContain('text/plain');
  });
});

describe('clients that leave', () => {
  it('while queued: the request is gone, and its handler never runs', async () => {
    const { stream, end } = source();
    let runs = 0;
    const { gate, fetch } = runtime((c) => {
      runs += 1;
      return c.body(stream);
    });
    const first = await fetch();
    const client = new AbortController();
    const second = fetch('/', { signal: client.signal });
    await until('the second waits', () => gate.flow.stats().waiting === 1);
    client.abort();
    expect((await second).status).toBe(503);
    expect(gate.flow.stats().outcomes.EvictedContextCancelled).toBe(1);
    end();
    await first.text();
    expect(runs).toBe(1);
  });

  it('before flow control was reached: nobody is asked', async () => {
    const { gate, fetch } = runtime((c) => c.text('ok'));
    expect((await fetch('/', { signal: AbortSignal.abort() })).status).toBe(503);
    expect(gate.keys).toEqual([]);
  });

  it('while streaming: the signal aborts and the lease is released', async () => {
    const { stream } = source();
    let flow: RequestFlow | undefined;
    const { gate, fetch } = runtime((c) => {
      flow = c.var.flow;
      return c.body(stream);
    });
    const client = new AbortController();
    const { body } = await fetch('/', { signal: client.signal });
    client.abort();
    expect(flow!.signal.reason).toMatchObject({ name: 'AbortError', status: 499 });
    expect(gate.flow.stats().inFlight).toBe(0);
    await body!.cancel();
    expect(gate.releases).toEqual([1]);
  });

  it('a middleware in front that waits no longer: the handler does not run for it', async () => {
    const gate = countingGate(1);
    const app = new Hono();
    const { stream, end } = source();
    let runs = 0;
    app.use('/late', timeout(20));
    app.use(flowControl(gate));
    app.get('/*', (c) => {
      runs += 1;
      return c.body(stream);
    });
    const first = await app.request('/');
    expect((await app.request('/late')).status).toBe(504);
    end();
    await first.text();
    await until('its lease is back', () => gate.flow.stats().dispatched === 2 && gate.flow.stats().inFlight === 0);
    expect(runs).toBe(1);
    expect(gate.releases).toEqual([1, 1]);
  });
});

describe('drops', () => {
  it('are answered by the error contract', async () => {
    const { stream, end } = source();
    const { gate, fetch } = runtime(
      (c) => (c.req.method === 'HEAD' ? c.text('') : c.body(stream)),
      { random: () => 0 },
      countingGate(1, { limits: { maxRequests: 1 } }),
    );
    const first = await fetch();
    const second = fetch('/', { method: 'HEAD' });
    await until('one waits', () => gate.flow.stats().waiting === 1);
    const third = await fetch();
    expect(third.status).toBe(429);
    expect(Object.fromEntries(third.headers)).toMatchObject({
      'content-type': 'application/problem+json',
      'x-llm-d-request-dropped-reason': 'rejected-saturated',
    });
    expectComeBack(Object.fromEntries(third.headers));
    expect(await third.json()).toMatchObject({ code: 'ERR_FLOW_SATURATED' });
    end();
    expect(await first.text()).toBe('');
    expect((await second).status).toBe(200);
    expect(gate.releases).toEqual([1, 1]);
  });

  it('onDrop throw reaches Hono, whose own answer is right', async () => {
    const gate = countingGate(1);
    await gate.flow.close();
    const { fetch } = runtime((c) => c.text('ok'), { onDrop: 'throw', contract: 'llm-d', random: () => 0 }, gate);
    const response = await fetch();
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(response.headers.get('x-llm-d-request-dropped-reason')).toBe('rejected-shutting-down');
    expect(await response.text()).toBe('The gateway is shutting down.');
  });

  it('options are checked when the middleware is made', () => {
    expect(() => flowControl(countingGate(1), { trsut: true } as object)).toThrow(FlowConfigError);
  });
});

describe('evictions', () => {
  const objective = (name: string) => ({ headers: { 'x-gateway-inference-objective': name } });
  const options = { trust: true, objectives: { premium: 100, batch: -10 } };
  const isPremium = (flow: RequestFlow | undefined) => flow!.lease.priority === 100;

  it.each<[string, (flow: RequestFlow, answered: Promise<void>) => Promise<Response>]>([
    ['the handler goes on', () => new Promise(() => {})],
    ['the handler lets the reason through', ({ signal }) => aborted(signal).then(() => Promise.reject(signal.reason))],
    [
      'the handler answers too late',
      ({ signal }, answered) =>
        aborted(signal)
          .then(() => answered)
          .then(() => new Response('late')),
    ],
  ])('before the response: 429, when %s', async (_, batchHandler) => {
    const gate = countingGate(1, { eviction: inFlightEviction() });
    let tellAnswered = (): void => {};
    const answered = new Promise<void>((resolve) => {
      tellAnswered = resolve;
    });
    const { fetch } = runtime(
      (c) => (isPremium(c.var.flow) ? c.text('premium') : batchHandler(c.var.flow!, answered)),
      options,
      gate,
    );
    const batch = fetch('/', objective('batch'));
    await until('batch runs', () => gate.flow.stats().inFlight === 1);
    const premium = fetch('/', objective('premium'));
    expect((await batch).status).toBe(429);
    expect((await batch).headers.get('x-llm-d-request-dropped-reason')).toBe('evicted-priority');
    await (await batch).text();
    tellAnswered();
    expect(await (await premium).text()).toBe('premium');
    expect(gate.releases).toEqual([1, 1]);
  });

  it('while it streams: the stream fails, and its source is told', async () => {
    const { stream, send, seen } = source();
    const gate = countingGate(1, { eviction: inFlightEviction() });
    const { fetch } = runtime((c) => (isPremium(c.var.flow) ? c.text('premium') : c.body(stream)), options, gate);
    const reader = (await fetch('/', objective('batch'))).body!.getReader();
    const chunk = reader.read();
    send('one');
    await chunk;
    const next = reader.read();
    const premium = fetch('/', objective('premium'));
    await expect(next).rejects.toBeInstanceOf(FlowEvictedError);
    expect(seen.cancelled).toBeInstanceOf(FlowEvictedError);
    expect(await (await premium).text()).toBe('premium');
    expect(gate.releases).toEqual([1, 1]);
  });
});

describe('request headers', () => {
  const sent = { 'x-gateway-inference-fairness-id': 'tenant-a', 'x-user': 'kept' };

  it('lose the flow headers, which count where they are trusted', async () => {
    const { fetch } = runtime((c) => c.json([c.var.flow!.lease.fairnessId, c.req.header()]), { trust: true });
    expect(await (await fetch('/', { headers: sent })).json()).toEqual(['tenant-a', { 'x-user': 'kept' }]);
  });

  it('also where the runtime makes them immutable; the body stays', async () => {
    const { app } = runtime(async (c) => c.json([c.req.header(), await c.req.text()]));
    const request = new Request('http://localhost/', {
      method: 'POST',
      headers: { ...sent, 'content-type': 'text/plain' },
      body: 'hello',
    });
    vi.spyOn(request.headers, 'delete').mockImplementation(() => {
      throw new TypeError('immutable');
    });
    expect(await (await app.fetch(request)).json()).toEqual([
      { 'content-type': 'text/plain', 'x-user': 'kept' },
      'hello',
    ]);
  });
});

it('loads without Node', async () => {
  const { imports, code } = await bundle('adapters/hono/index.ts');
  expect(imports.filter((path) => path.startsWith('node:'))).toEqual([]);
  expect(typeWithoutNode(code, 'flowControl')).toBe('function');
});
