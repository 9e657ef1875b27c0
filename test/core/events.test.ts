import { afterEach, describe, expect, it, vi } from 'vitest';
import { EventHub } from '../../src/core/event-hub.js';
import { EndpointPool, type FlowController, type FlowEvents, roundRobin } from '../../src/index.js';
import { dial, key, leaseOf, makeFlow, record, request, runNow, turns } from '../support/flow.js';

describe('events', () => {
  it('tell the way of a request that waits and goes', async () => {
    const pool = new EndpointPool();
    pool.add('e');
    const { flow, clock } = makeFlow({ pool });
    const held = runNow(flow);
    const queued = record(flow, 'queued');
    const dispatched = record(flow, 'dispatched');
    const released = record(flow, 'released');
    const firstTokens = record(flow, 'firstToken');
    const own = { byteSize: 7, tokens: 3, name: 'mine' };
    const waiting = flow.enqueue(own, key('a', 2));
    expect(queued).toMatchObject([
      { item: { fairnessId: 'a', priority: 2, byteSize: 7, tokens: 3, enqueuedAtMs: 0 }, waitingInBand: 1 },
    ]);
    expect(queued[0]?.item.request).toBe(own);
    clock.advance(30);
    let seen: unknown;
    flow.on('dispatched', ({ item }) => {
      seen = item.request;
    });
    held.release();
    const lease = leaseOf(await waiting);
    expect(dispatched).toHaveLength(1);
    expect(dispatched[0]).toMatchObject({ queuedMs: 30, endpoint: { id: 'e' } });
    expect(dispatched[0]?.lease).toBe(lease);
    expect(seen).toBe(own);
    clock.advance(50);
    lease.report({ promptTokens: 9 });
    lease.report({ completionTokens: 4 });
    expect(firstTokens).toEqual([{ lease, afterMs: 50 }]);
    lease.release();
    expect(released.map(({ heldMs }) => heldMs)).toEqual([30, 50]);
    expect(released[1]).toMatchObject({ usage: { completionTokens: 4, promptTokens: 9 } });
  });

  it('tell of drops, with the request', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 1 } });
    const dropped = record(flow, 'dropped');
    runNow(flow);
    const first = { byteSize: 1 };
    const second = { byteSize: 2 };
    void flow.enqueue(first, key());
    const outcome = await flow.enqueue(second, key());
    await flow.close();
    expect(dropped.map(({ request }) => request)).toEqual([second, first]);
    expect(dropped[0]?.outcome).toBe(outcome);
    expect(dropped.map(({ outcome }) => outcome.reason)).toEqual(['global-max-requests', 'shutting-down']);
  });

  it('tell of drops with the item that waited, and with an item of its own for what never did', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 1 } });
    const queued = record(flow, 'queued');
    const dropped = record(flow, 'dropped');
    runNow(flow);
    void flow.enqueue({ byteSize: 1 }, key('a', 3));
    await flow.enqueue({ byteSize: 2 }, key('b', 4));
    await flow.close();
    expect(dropped[0]?.item).toMatchObject({ fairnessId: 'b', priority: 4, byteSize: 2, sequence: 2 });
    expect(dropped[1]?.item).toBe(queued[0]?.item);
    expect(dropped[1]?.item).toMatchObject({ fairnessId: 'a', priority: 3, byteSize: 1, sequence: 1 });
  });

  it('tell when the gate begins to hold requests back, and when it no longer does', () => {
    const detector = dial(1.5, true);
    const { flow } = makeFlow({ saturationDetector: detector });
    const gate = record(flow, 'gate');
    for (let i = 0; i < 3; i++) void flow.enqueue(request, key());
    detector.turnTo(1.2);
    expect(gate).toEqual([{ isClosed: true, saturation: 1.5 }]);
    detector.turnTo(0.1);
    expect(gate.slice(1)).toEqual([{ isClosed: false, saturation: 0.1 }]);
    leaseOf(flow.tryEnqueue(request, key()));
    expect(gate).toHaveLength(2);
  });

  it('tell that the gate holds nobody back when the last that waited has left', () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true) });
    const gate = record(flow, 'gate');
    void flow.enqueue({ ...request, ttlMs: 10 }, key());
    clock.advance(10);
    expect(gate.map(({ isClosed }) => isClosed)).toEqual([true, false]);
    expect(flow.stats().isGateClosed).toBe(false);
  });

  it('tell of bands and flows that come and go', () => {
    const { flow, clock } = makeFlow({
      flowIdleTimeout: '1m',
      bandIdleTimeout: '2m',
      defaultBand: { fairness: roundRobin() },
    });
    const added = record(flow, 'bandAdded');
    const flowsGone = record(flow, 'flowRemoved');
    const removed = record(flow, 'bandRemoved');
    runNow(flow, { fairnessId: 'a', priority: 4 }).release();
    expect(added).toEqual([{ priority: 4 }]);
    clock.advance(60_000);
    flow.stats();
    expect(flowsGone).toEqual([{ fairnessId: 'a', priority: 4 }]);
    clock.advance(60_000);
    flow.stats();
    expect(removed).toEqual([{ priority: 4 }]);
  });

  it('stop when they are told to', () => {
    const { flow } = makeFlow();
    let heard = 0;
    const stop = flow.on('released', () => heard++);
    const lease = runNow(flow);
    runNow(makeFlow().flow).release();
    lease.release();
    stop();
    stop();
    runNow(flow).release();
    expect(heard).toBe(1);
  });

  it('reach every listener, in the order in which they came, one object for all', () => {
    const { flow } = makeFlow();
    const heard: [string, unknown][] = [];
    for (const name of ['first', 'second', 'third']) flow.on('released', (payload) => heard.push([name, payload]));
    runNow(flow).release();
    expect(heard.map(([name]) => name)).toEqual(['first', 'second', 'third']);
    expect(new Set(heard.map(([, payload]) => payload)).size).toBe(1);
  });
});

describe('the time that the controller takes', () => {
  /** A detector that announces its changes, and takes 7 ms for each reading. */
  function slow() {
    const inner = dial(1, true);
    const detector = {
      ...inner,
      saturation(): number {
        clock.advance(7);
        return inner.value;
      },
    };
    const { flow, clock } = makeFlow({ saturationDetector: detector, defaultRequestTtl: 0 });
    clock.advance(1000);
    return { flow, inner };
  }

  it('is told of one call of enqueue in sixteen, with what became of the request', () => {
    const { flow, inner } = slow();
    const told = record(flow, 'enqueued');
    inner.value = 0;
    runNow(flow, { fairnessId: 'first', priority: 2 });
    expect(told).toEqual([{ fairnessId: 'first', priority: 2, outcome: 'Dispatched', durationMs: 7 }]);
    inner.value = 1;
    for (let i = 1; i < 16; i++) void flow.enqueue(request, key());
    expect(told).toHaveLength(1);
    void flow.enqueue(request, key('seventeenth', 3));
    expect(told.slice(1)).toEqual([{ fairnessId: 'seventeenth', priority: 3, outcome: undefined, durationMs: 7 }]);
  });

  it('is told of one walk over the queues in sixteen', () => {
    const { flow, inner } = slow();
    void flow.enqueue(request, key());
    const told = record(flow, 'walked');
    for (let i = 0; i < 16; i++) inner.turnTo(1);
    expect(told).toEqual([{ durationMs: 7 }]);
    inner.turnTo(1);
    expect(told).toEqual([{ durationMs: 7 }, { durationMs: 7 }]);
  });
});

describe('a listener that fails', () => {
  it('is reported, and neither the next listener nor the request feels it', async () => {
    const { flow } = makeFlow();
    const errors = record(flow, 'pluginError');
    let heard = 0;
    flow.on('dispatched', () => {
      throw new Error('sync');
    });
    flow.on('dispatched', () => Promise.reject(new Error('async')));
    flow.on('dispatched', () => heard++);
    leaseOf(await flow.enqueue(request, key()));
    await turns();
    expect(heard).toBe(1);
    expect(errors).toEqual([
      { kind: 'listener', type: 'dispatched', error: new Error('sync') },
      { kind: 'listener', type: 'dispatched', error: new Error('async') },
    ]);
    expect(flow.stats().pluginErrors).toBe(2);
  });

  it('of plugin errors is only counted, or it would be called for ever', async () => {
    const { flow } = makeFlow({ saturationDetector: () => Number.NaN, gate: { failValue: 0 } });
    let heard = 0;
    flow.on('pluginError', () => {
      heard++;
      throw new Error('again');
    });
    flow.on('pluginError', () => Promise.reject(new Error('and again')) as never);
    leaseOf(await flow.enqueue(request, key()));
    await turns();
    expect(heard).toBe(1);
    // The detector and both listeners; and once more, because statistics ask the detector.
    expect(flow.stats().pluginErrors).toBe(5);
  });
});

describe('payloads', () => {
  /** Everything that is announced happens once. */
  async function everything(pool: EndpointPool, flow: FlowController, advance: (ms: number) => void): Promise<void> {
    const held = runNow(flow, { priority: 3 });
    held.report({ completionTokens: 1 });
    held.report({ completionTokens: 2 });
    const abort = new AbortController();
    void flow.enqueue(request, key());
    void flow.enqueue({ ...request, signal: abort.signal }, key());
    void flow.enqueue({ ...request, ttlMs: 10 }, key());
    void flow.enqueue({ byteSize: 1e10 }, key());
    abort.abort();
    advance(10);
    held.release();
    pool.remove('e');
    pool.add('e');
    advance(1e7);
    flow.stats();
    await flow.close();
  }

  function watched(): {
    flow: FlowController;
    pool: EndpointPool;
    advance: (ms: number) => void;
    emitted: () => string[];
  } {
    const pool = new EndpointPool();
    pool.add('e');
    const { flow, clock } = makeFlow({ pool, defaultBand: { fairness: roundRobin() } });
    const emit = vi.spyOn(EventHub.prototype, 'emit');
    return { flow, pool, advance: (ms) => clock.advance(ms), emitted: () => emit.mock.calls.map(([event]) => event) };
  }

  afterEach(() => vi.restoreAllMocks());

  it('are not built for events that nobody hears', async () => {
    const { flow, pool, advance, emitted } = watched();
    await everything(pool, flow, advance);
    expect(emitted()).toEqual([]);
  });

  it.each([
    'queued',
    'dispatched',
    'firstToken',
    'dropped',
    'released',
    'gate',
    'regime',
    'bandAdded',
    'bandRemoved',
    'flowRemoved',
  ] as const)('are built for %s when somebody hears it, and for nothing else', async (event: keyof FlowEvents) => {
    const { flow, pool, advance, emitted } = watched();
    let heard = 0;
    flow.on(event, () => heard++);
    await everything(pool, flow, advance);
    expect(new Set(emitted())).toEqual(new Set([event]));
    expect(heard).toBe(emitted().length);
  });

  it('are no longer built when the listener has left', () => {
    const hub = new EventHub();
    const stop = hub.on('gate', () => {});
    expect([hub.heard.gate, hub.heard.queued]).toEqual([true, false]);
    stop();
    expect(hub.heard.gate).toBe(false);
  });
});
