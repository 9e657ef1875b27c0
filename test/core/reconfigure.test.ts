import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  EndpointPool,
  edf,
  FlowConfigError,
  fcfs,
  globalStrict,
  leastLoaded,
  overviewOf,
  roundRobin,
  sloDeadline,
} from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import type { FlowSelector } from '../../src/types/index.js';
import { dial, dispatchOrder, dropOf, key, leaseOf, makeFlow, record, request, runNow } from '../support/flow.js';

describe('reconfigure', () => {
  it('changes nothing when anything is wrong, and tells all of it', () => {
    const { flow } = makeFlow({ limits: { maxRequests: 5 } });
    const before = overviewOf(flow, { flows: 'all' });
    const change = (): void => flow.reconfigure({ limits: { maxRequests: -1 }, maxBands: 0, defaultRequestTtl: '1s' });
    expect(change).toThrow(FlowConfigError);
    expect(change).toThrow(/reconfigure: 2 problems[\s\S]*limits\.maxRequests[\s\S]*maxBands/);
    expect(overviewOf(flow, { flows: 'all' })).toEqual(before);
  });

  it('keeps the options that are not given', () => {
    const { flow } = makeFlow({ limits: { maxRequests: 5 }, bands: [{ priority: 3 }], maxBands: 7 });
    flow.reconfigure({ defaultRequestTtl: '1s' });
    expect(overviewOf(flow, { flows: 'all' }).limits.maxRequests).toBe(5);
    expect(
      overviewOf(flow, { flows: 'all' }).bands.map(({ priority, requestTtlMs }) => [priority, requestTtlMs]),
    ).toEqual([
      [3, 1000],
      [0, 1000],
    ]);
  });

  it('returns an option to its default when it is given as undefined', () => {
    const { flow } = makeFlow({ limits: { maxRequests: 5 } });
    flow.reconfigure({ limits: undefined });
    expect(overviewOf(flow, { flows: 'all' }).limits).toEqual({ maxRequests: 10_000, maxBytes: 2 ** 30 });
  });

  it('rejects another clock and another pool, and takes the ones it has', () => {
    const pool = new EndpointPool();
    const clock = new ManualClock();
    const { flow } = makeFlow({ pool, clock });
    flow.reconfigure({ pool, clock, maxBands: 9 });
    expect(() => flow.reconfigure({ pool: new EndpointPool(), clock: new ManualClock() })).toThrow(
      /2 problems[\s\S]*clock[\s\S]*pool/,
    );
    expect(() => makeFlow().flow.reconfigure({ pool })).toThrow(
      /pool: expected the one that the controller was made with/,
    );
  });

  it('lets requests go that a fuller pool has room for', async () => {
    const { flow } = makeFlow();
    runNow(flow);
    const waiting = flow.enqueue(request, key());
    flow.reconfigure({ saturationDetector: concurrencyDetector({ maxConcurrency: 2 }) });
    leaseOf(await waiting);
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 0 });
  });
});

describe('a closed controller', () => {
  it('takes new options, and does nothing with them', async () => {
    const { flow, clock } = makeFlow();
    await flow.close();
    const detector = dial(0, true);
    flow.reconfigure({ saturationDetector: detector, maxLeaseMs: 1000 });
    expect([detector.subscribers, detector.reads, clock.pendingTimers]).toEqual([0, 0, 0]);
  });

  it('is closed as often as it is asked to', async () => {
    const { flow } = makeFlow();
    let goodbyes = 0;
    flow.reconfigure({
      saturationDetector: { type: 'farewell', saturation: () => 0, subscribe: () => () => goodbyes++ },
    });
    await Promise.all([flow.close(), flow.close({ drainMs: 10 })]);
    await flow.close({ drainMs: 10 });
    expect([flow.stats().state, goodbyes]).toEqual(['closed', 1]);
  });
});

describe('a new detector', () => {
  it('is subscribed to, and the old one left', () => {
    const [before, after] = [dial(1, true), dial(1, true)];
    const { flow } = makeFlow({ saturationDetector: before });
    void flow.enqueue(request, key());
    flow.reconfigure({ saturationDetector: after });
    expect([before.subscribers, after.subscribers]).toEqual([0, 1]);
    flow.reconfigure({ limits: { maxRequests: 10 } });
    expect(after.subscribers).toBe(1);
    before.turnTo(0);
    expect(flow.stats().waiting).toBe(1);
    after.turnTo(0);
    expect(flow.stats().waiting).toBe(0);
  });

  it('that is silent is asked again by timer, and one that announces is not', () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true) });
    void flow.enqueue(request, key());
    expect(clock.pendingTimers).toBe(1);
    flow.reconfigure({ saturationDetector: dial(1) });
    expect(clock.pendingTimers).toBe(2);
    flow.reconfigure({ saturationDetector: dial(1, true) });
    expect(clock.pendingTimers).toBe(1);
  });
});

describe('the gate', () => {
  it('stays latched through a change of something else', () => {
    const detector = dial(1);
    const { flow } = makeFlow({ saturationDetector: detector, gate: { closeAt: 1, openAt: 0.5 } });
    void flow.enqueue(request, key());
    detector.value = 0.7;
    flow.reconfigure({ limits: { maxRequests: 10 } });
    expect(flow.stats()).toMatchObject({ waiting: 1, dispatched: 0 });
    flow.reconfigure({ gate: { closeAt: 1, openAt: 0.8 } });
    expect(flow.stats()).toMatchObject({ waiting: 0, dispatched: 1 });
  });

  it('drops an interval that is running for the new one', () => {
    const detector = dial(1);
    const { flow, clock } = makeFlow({ saturationDetector: detector, gate: { recheckIntervalMs: 50_000 } });
    void flow.enqueue(request, key());
    flow.reconfigure({ gate: { recheckIntervalMs: 10 } });
    detector.value = 0;
    clock.advance(10);
    expect(flow.stats().waiting).toBe(0);
  });
});

describe('a new ordering', () => {
  it.each([
    ['one queue', globalStrict()],
    ['a queue for each flow', roundRobin()],
  ])('lines up anew what waits in %s', (_, fairness) => {
    const detector = dial(1, true);
    const { flow } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, fairness, ordering: fcfs() }] });
    const order: number[] = [];
    flow.on('dispatched', ({ item }) => order.push(item.byteSize));
    for (const [byteSize, ttlMs, sloTtftMs] of [
      [1, 900, 10],
      [2, 300, 30],
      [3, 600, 20],
    ]) {
      void flow.enqueue({ byteSize: byteSize as number, ttlMs, sloTtftMs }, key());
    }
    flow.reconfigure({ bands: [{ priority: 0, fairness, ordering: edf() }] });
    const dispatchOne = (): void => {
      detector.value = 0;
      const before = order.length;
      const stop = flow.on('dispatched', () => {
        detector.value = 1;
      });
      detector.turnTo(0);
      stop();
      expect(order).toHaveLength(before + 1);
    };
    dispatchOne();
    flow.reconfigure({ bands: [{ priority: 0, fairness, ordering: sloDeadline() }] });
    dispatchOne();
    flow.reconfigure({ bands: [{ priority: 0, fairness, ordering: fcfs() }] });
    dispatchOne();
    expect(order).toEqual([2, 1, 3]);
  });
});

describe('a new fairness policy', () => {
  it('takes over what waits, in both directions', async () => {
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness: globalStrict() }] });
    const order = dispatchOrder(flow);
    let held = runNow(flow);
    order.length = 0;
    flow.on('dispatched', ({ lease }) => {
      held = lease;
    });
    for (const name of ['a', 'a', 'a', 'b', 'b', 'c']) void flow.enqueue(request, key(name));
    flow.reconfigure({ bands: [{ priority: 0, fairness: roundRobin() }] });
    for (let i = 0; i < 4; i++) held.release();
    expect(order).toEqual(['a', 'b', 'c', 'a']);
    flow.reconfigure({ bands: [{ priority: 0, fairness: globalStrict() }] });
    for (const name of ['c', 'd']) void flow.enqueue(request, key(name));
    while (flow.stats().waiting > 0) held.release();
    expect(order.slice(4)).toEqual(['a', 'b', 'c', 'd']);
    held.release();
    await flow.close();
    expect(flow.stats()).toMatchObject({ inFlight: 0, waiting: 0 });
  });

  it('is told of the flows and requests that wait, and one that stays is not told again', () => {
    const told: string[] = [];
    const policy = (name: string): { type: string; createSelector: () => FlowSelector } => ({
      type: name,
      createSelector: () => ({
        pick: () => undefined,
        flowActivated: ({ fairnessId }) => told.push(`${name} flow ${fairnessId}`),
        itemAdded: (_flow, { sequence }) => told.push(`${name} item ${sequence}`),
      }),
    });
    const [first, second] = [policy('first'), policy('second')];
    const { flow } = makeFlow({ saturationDetector: dial(1, true), bands: [{ priority: 0, fairness: first }] });
    for (const name of ['a', 'b', 'a']) void flow.enqueue(request, key(name));
    expect(told.splice(0)).toEqual(['first flow a', 'first item 0', 'first flow b', 'first item 1', 'first item 2']);
    flow.reconfigure({ bands: [{ priority: 0, fairness: first, ordering: edf() }] });
    expect(told).toEqual([]);
    flow.reconfigure({ bands: [{ priority: 0, fairness: second }] });
    expect(told).toEqual(['second flow a', 'second flow b', 'second item 0', 'second item 1', 'second item 2']);
  });
});

describe('bands', () => {
  it('that are no longer configured keep what waits in them, and go when they are idle', async () => {
    const { flow, clock } = makeFlow({
      bands: [{ priority: 5, limits: { maxRequests: 2 } }, { priority: 0 }],
      bandIdleTimeout: '10m',
    });
    const removed = record(flow, 'bandRemoved');
    const held = runNow(flow);
    const waiting = flow.enqueue(request, key('a', 5));
    flow.reconfigure({ bands: [{ priority: 0 }], defaultBand: { limits: { maxRequests: 1 } } });
    expect(overviewOf(flow, { flows: 'all' }).bands[0]).toMatchObject({
      priority: 5,
      isConfigured: false,
      waiting: 1,
      limits: { maxRequests: 1 },
    });
    expect(dropOf(await flow.enqueue(request, key('a', 5))).limit).toMatchObject({ scope: 'band', max: 1 });
    held.release();
    leaseOf(await waiting).release();
    clock.advance(600_000);
    flow.stats();
    expect(removed).toEqual([{ priority: 5 }]);
  });

  it('that were made on first use become configured ones, with what waits in them', () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true) });
    void flow.enqueue({ ...request, ttlMs: 0 }, key('a', 5));
    flow.reconfigure({ bands: [{ priority: 5, fairness: roundRobin(), requestTtl: '1s' }] });
    clock.advance(1e7);
    expect(overviewOf(flow, { flows: 'all' }).bands[0]).toMatchObject({
      priority: 5,
      isConfigured: true,
      waiting: 1,
      fairness: roundRobin().type,
      requestTtlMs: 1000,
    });
  });

  it('that are added take part at once', () => {
    const { flow } = makeFlow();
    const order = dispatchOrder(flow);
    const held = runNow(flow);
    void flow.enqueue(request, key('a'));
    flow.reconfigure({ bands: [{ priority: 9 }, { priority: 0 }] });
    void flow.enqueue(request, key('b', 9));
    held.release();
    expect(order).toEqual(['running', 'b']);
  });

  it('in excess of a smaller maxBands go as soon as others need their place', () => {
    const { flow, clock } = makeFlow({ maxBands: 6 });
    for (const priority of [1, 2, 3, 4, 5]) {
      runNow(flow, { priority }).release();
      clock.advance(1);
    }
    flow.reconfigure({ maxBands: 3 });
    runNow(flow, { priority: 7 }).release();
    expect(overviewOf(flow, { flows: 'all' }).bands.map(({ priority }) => priority)).toEqual([7, 5, 0]);
  });
});

it('a new picker takes over', () => {
  const pool = new EndpointPool();
  for (const id of ['a', 'b', 'c']) pool.add(id);
  const { flow } = makeFlow({
    pool,
    saturationDetector: () => 0,
    endpointPicker: { type: 'last', pick: (all) => all[all.length - 1] },
  });
  expect(runNow(flow).endpoint?.id).toBe('c');
  flow.reconfigure({ endpointPicker: leastLoaded() });
  expect(runNow(flow).endpoint?.id).toBe('a');
});

it('a smaller maxFlows makes new fairness IDs share', () => {
  const { flow } = makeFlow({ saturationDetector: dial(1, true) });
  for (const name of ['a', 'b', 'c']) void flow.enqueue(request, key(name));
  flow.reconfigure({ maxFlows: 2 });
  void flow.enqueue(request, key('d'));
  void flow.enqueue(request, key('a'));
  const names = overviewOf(flow, { flows: 'all' }).bands[0]?.flows.map(({ fairnessId }) => fairnessId);
  expect(names?.slice(0, 3)).toEqual(['a', 'b', 'c']);
  expect(names?.[3]).not.toBe('d');
});
