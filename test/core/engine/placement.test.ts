/** Endpoints marked as overloaded, and bands with a detector of their own. */
import { describe, expect, it } from 'vitest';
import {
  byStage,
  concurrencyDetector,
  type EndpointFilter,
  type EndpointPicker,
  EndpointPool,
  type EndpointView,
  explainWait,
  leastLoaded,
  maxOf,
  type SaturationDetector,
  shadow,
  utilizationDetector,
  withHysteresis,
} from '../../../src/index.js';
import { BlockedClock } from '../../support/clocks.js';
import type { JudgingDetector } from '../../support/constraints.js';
import { dial, dropOf, key, leaseOf, makeFlow, record, request, runNow, turns } from '../../support/flow.js';

function pair() {
  const pool = new EndpointPool();
  pool.add('a');
  pool.add('b');
  return pool;
}

it('a request goes when one endpoint has room for it in time, though others have it now and are full', async () => {
  const pool = pair();
  const saturationDetector: JudgingDetector = {
    type: 'full-a-and-later-b',
    saturation: () => 0,
    subscribe: () => () => {},
    filter: (endpoints) => endpoints.filter(({ id }) => id === 'b'),
    withRoomFor: (endpoints, _item, nowMs) => endpoints.filter(({ id }) => id === 'a' || nowMs >= 1000),
    waitOf: () => ({ atMs: 1000, notBeforeMs: 0, missing: 'time' }),
  };
  const { flow, clock } = makeFlow({ pool, saturationDetector, headroom: 'required' });
  const dispatched = record(flow, 'dispatched');
  void flow.enqueue(request, key());
  clock.advance(999);
  expect(dispatched).toEqual([]);
  clock.advance(1);
  expect(dispatched.map(({ endpoint }) => endpoint?.id)).toEqual(['b']);
});

describe('an endpoint that is marked as overloaded', () => {
  it('gets nothing until the time is up', () => {
    const pool = pair();
    const { flow, clock } = makeFlow({ pool, saturationDetector: concurrencyDetector({ maxConcurrency: 10 }) });
    pool.markOverloaded('a', 1000);
    const ids = () => leaseOf(flow.tryEnqueue(request, key())).endpoint?.id;
    expect([ids(), ids(), ids()]).toEqual(['b', 'b', 'b']);
    clock.advance(1000);
    expect([ids(), ids(), ids()]).toEqual(['a', 'a', 'a']);
  });

  it('holds requests back when all are marked, and lets them go when the first mark ends, without anybody calling', async () => {
    const pool = pair();
    const { flow, clock } = makeFlow({ pool, saturationDetector: concurrencyDetector({ maxConcurrency: 10 }) });
    pool.markOverloaded('a', 1000);
    pool.markOverloaded('b', 300);
    let endpoint: string | undefined;
    void flow.enqueue(request, key()).then((outcome) => {
      endpoint = leaseOf(outcome).endpoint?.id;
    });
    await turns();
    expect(endpoint).toBeUndefined();
    clock.advance(299);
    await turns();
    expect(endpoint).toBeUndefined();
    clock.advance(1);
    await turns();
    expect(endpoint).toBe('b');
  });

  it('comes back on time, whenever it was marked', async () => {
    const pool = new EndpointPool();
    pool.add('a');
    const { flow, clock } = makeFlow({
      pool,
      saturationDetector: dial(0, true),
      defaultRequestTtl: 0,
      noEndpointRequestTtl: 0,
    });
    clock.advance(5000);
    pool.markOverloaded('a', 1000);
    const outcome = flow.enqueue(request, key());
    clock.advance(1000);
    expect((await outcome).queuedMs).toBe(1000);
  });

  it('is capacity again for the first that comes when the time is up', async () => {
    const pool = new EndpointPool();
    pool.add('a');
    const { flow, clock } = makeFlow({ pool, limits: { maxRequests: 0 } });
    pool.markOverloaded('a', 1000);
    expect(dropOf(await flow.enqueue(request, key())).type).toBe('RejectedNoEndpoints');
    clock.advance(1000);
    expect(dropOf(await flow.enqueue(request, key())).type).toBe('RejectedCapacity');
  });

  it('lets those who waited for it go when somebody comes, though the timer is late', async () => {
    const pool = new EndpointPool();
    pool.add('a');
    const clock = new BlockedClock();
    const { flow } = makeFlow({ pool, clock, saturationDetector: dial(0, true) });
    pool.markOverloaded('a', 1000);
    const first = flow.enqueue(request, key());
    clock.block(1000);
    void flow.enqueue(request, key('b', -1));
    expect(await first).toMatchObject({ type: 'Dispatched', queuedMs: 1000 });
    expect(flow.stats().waiting).toBe(0);
  });

  it('comes back at once when the mark is cleared', async () => {
    const pool = new EndpointPool();
    pool.add('a');
    const { flow } = makeFlow({ pool, saturationDetector: concurrencyDetector({ maxConcurrency: 10 }) });
    pool.markOverloaded('a', 1000);
    const outcome = flow.enqueue(request, key());
    pool.clearOverloaded('a');
    expect(leaseOf(await outcome).endpoint?.id).toBe('a');
  });

  it("is an overload to a controller in mode 'admission'", async () => {
    const pool = new EndpointPool();
    pool.add('a');
    const { flow } = makeFlow({ pool, mode: 'admission' });
    pool.markOverloaded('a', 1000);
    expect(dropOf(await flow.enqueue(request, key()))).toMatchObject({
      type: 'RejectedCapacity',
      reason: 'overloaded',
    });
  });
});

describe('why a request has nowhere to go', () => {
  /** Two servers that a request may go to, and one that it may not. */
  function waitingFor(change: (pool: EndpointPool) => unknown) {
    const pool = pair();
    const onlyA: EndpointFilter = {
      type: 'only-a',
      classOf: () => '',
      keep: (all) => all.filter(({ id }) => id !== 'b'),
    };
    pool.add('c');
    const detector: SaturationDetector = { type: 'roomless', saturation: () => 0, filter: () => [] };
    const { flow } = makeFlow({ pool, endpointFilters: [onlyA], saturationDetector: detector, headroom: 'required' });
    change(pool);
    const asked = { ...request };
    void flow.enqueue(asked, key());
    return explainWait(flow, asked)?.text;
  }

  it.each([
    ['are full', () => {}, 'full'],
    [
      'are ill',
      (pool: EndpointPool) => [pool.update('a', { state: 'ill' }), pool.update('c', { state: 'ill' })],
      'are ill, draining',
    ],
    [
      'rejected work',
      (pool: EndpointPool) => [pool.markOverloaded('a', 1000), pool.markOverloaded('c', 1000)],
      'are marked as overloaded',
    ],
    [
      'rejected work or are ill',
      (pool: EndpointPool) => [pool.markOverloaded('a', 1000), pool.update('c', { state: 'ill' })],
      'are ill, draining',
    ],
  ])('is told where its servers %s', (_, change, word) => {
    expect(waitingFor(change)).toContain(word);
  });
});

describe('a marked server that is ill', () => {
  it("is no overload to a controller in mode 'admission', but a want of servers", async () => {
    const pool = new EndpointPool();
    pool.add('a');
    const { flow } = makeFlow({ pool, mode: 'admission' });
    pool.markOverloaded('a', 1000);
    pool.update('a', { state: 'ill' });
    expect(dropOf(await flow.enqueue(request, key()))).toMatchObject({
      type: 'RejectedNoEndpoints',
      reason: 'no-endpoints',
    });
  });
});

describe('endpoints without room', () => {
  /** `a` is full, `b` idle: on the whole the pool is not. Requests may go to `a` only. */
  function aIsFull(saturationDetector: SaturationDetector, headroom?: 'preferred' | 'required') {
    const pool = pair();
    const onlyA: EndpointFilter = {
      type: 'only-a',
      classOf: () => '',
      keep: ([first]) => (first === undefined ? [] : [first]),
    };
    const { flow } = makeFlow({ pool, saturationDetector, endpointFilters: [onlyA], headroom });
    pool.report('a', { waitingQueueSize: 5, runningRequests: 9, kvCacheUsage: 0.5 });
    pool.report('b', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
    return { flow, pool };
  }
  const detectors: [string, () => SaturationDetector][] = [
    ['utilization-detector', () => utilizationDetector({ queueDepthThreshold: 5 })],
    ['max-saturation-detector', () => maxOf(utilizationDetector({ queueDepthThreshold: 5 }), concurrencyDetector())],
    ['stage-aware-saturation-detector', () => byStage(utilizationDetector({ queueDepthThreshold: 5 }))],
    ['hysteresis-saturation-detector', () => withHysteresis(utilizationDetector({ queueDepthThreshold: 5 }))],
  ];

  it.each(detectors)('get nothing where headroom is required, by %s', (_, make) => {
    const { flow, pool } = aIsFull(make());
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
    pool.report('a', { waitingQueueSize: 0, runningRequests: 9, kvCacheUsage: 0.5 });
    expect(leaseOf(flow.tryEnqueue(request, key())).endpoint?.id).toBe('a');
  });

  it.each(detectors)('take what has nowhere else to go where headroom is preferred, by %s', (_, make) => {
    expect(leaseOf(aIsFull(make(), 'preferred').flow.tryEnqueue(request, key())).endpoint?.id).toBe('a');
  });
});

describe('filters', () => {
  const serving = (labels: string, part?: string): EndpointFilter => ({
    type: `serving-${labels}`,
    classOf: () => part,
    keep: (endpoints) => endpoints.filter(({ id }) => labels.includes(id)),
  });

  it('of one class restrict a request of which the others say nothing', () => {
    const { flow } = makeFlow({
      pool: pair(),
      endpointFilters: [serving('a'), serving('b', 'class')],
      saturationDetector: dial(0),
    });
    for (let i = 0; i < 4; i++) expect(leaseOf(flow.tryEnqueue(request, key())).endpoint?.id).toBe('b');
  });

  it('that are replaced are asked anew, however few changes the pool has seen', () => {
    const pool = new EndpointPool();
    pool.add('a');
    const { flow } = makeFlow({ pool, endpointFilters: [serving('nobody', 'class')], saturationDetector: dial(0) });
    expect(dropOf(flow.tryEnqueue(request, key())).type).toBe('RejectedNoEndpoints');
    flow.reconfigure({ endpointFilters: [serving('a', 'class')] });
    expect(leaseOf(flow.tryEnqueue(request, key())).endpoint?.id).toBe('a');
  });
});

describe('a filter that fails', () => {
  const throws = () => {
    throw new Error('broken filter');
  };
  const keepsAll = (all: readonly EndpointView[]) => all;

  it.each([
    ['throws at the class', { classOf: throws, keep: keepsAll }, 'broken filter'],
    [
      'names no class',
      { classOf: () => 5 as never, keep: keepsAll },
      'classOf must return a text, or undefined; got 5',
    ],
    ['throws at the endpoints', { classOf: () => '', keep: throws }, 'broken filter'],
    ['keeps no list', { classOf: () => '', keep: () => 'all' as never }, 'keep must return an array; got all'],
  ])('because it %s restricts nobody, and is reported', (_, filter, message) => {
    const { flow } = makeFlow({
      pool: pair(),
      endpointFilters: [{ type: 'broken', ...filter }],
      saturationDetector: dial(0),
    });
    const errors = record(flow, 'pluginError');
    leaseOf(flow.tryEnqueue(request, key()));
    expect(errors[0]).toMatchObject({
      kind: 'endpointFilter',
      type: 'broken',
      error: { message: expect.stringContaining(message) },
    });
  });

  it('because it keeps a stranger restricts to those of the pool', () => {
    const strange: EndpointFilter = { type: 'strange', classOf: () => '', keep: (all) => [{ ...all[0]! }, all[1]!] };
    const { flow } = makeFlow({ pool: pair(), endpointFilters: [strange], saturationDetector: dial(0) });
    for (let i = 0; i < 3; i++) expect(leaseOf(flow.tryEnqueue(request, key())).endpoint?.id).toBe('b');
  });
});

describe('of several servers', () => {
  /** A picker that takes the first, and a detector that has room where it is told. */
  function rooms(roomy: readonly string[], headroom: 'preferred' | 'required') {
    const pool = pair();
    const saturationDetector: SaturationDetector = {
      type: 'rooms',
      saturation: () => 0,
      filter: (endpoints) => endpoints.filter(({ id }) => roomy.includes(id)),
    };
    const endpointPicker = { type: 'first', pick: (candidates: readonly EndpointView[]) => candidates[0]! };
    return { pool, ...makeFlow({ pool, headroom, saturationDetector, endpointPicker }) };
  }

  it.each(['preferred', 'required'] as const)('those with room get the request where headroom is %s', (headroom) => {
    expect(leaseOf(rooms(['b'], headroom).flow.tryEnqueue(request, key())).endpoint?.id).toBe('b');
  });

  it('any gets it where none has room and headroom is preferred only', () => {
    expect(leaseOf(rooms([], 'preferred').flow.tryEnqueue(request, key())).endpoint?.id).toBe('a');
    expect(rooms([], 'required').flow.tryEnqueue(request, key())).toBeUndefined();
  });

  it('those that are well get it, also where a filter is asked', () => {
    const pool = pair();
    const all: EndpointFilter = { type: 'all', classOf: () => '', keep: (endpoints) => endpoints };
    const { flow } = makeFlow({ pool, endpointFilters: [all], saturationDetector: dial(0) });
    pool.update('a', { state: 'ill' });
    for (let i = 0; i < 3; i++) expect(leaseOf(flow.tryEnqueue(request, key())).endpoint?.id).toBe('b');
  });

  it('one that the picker makes up gets nothing', () => {
    const endpointPicker = {
      type: 'inventive',
      pick: (candidates: readonly EndpointView[]) => ({ ...candidates[0]! }),
    };
    const pool = pair();
    const { flow } = makeFlow({ pool, endpointPicker, saturationDetector: dial(0) });
    const errors = record(flow, 'pluginError');
    const lease = runNow(flow);
    expect(pool.get(lease.endpoint?.id ?? '')).toBe(lease.endpoint);
    expect(errors).toMatchObject([
      { error: { message: expect.stringContaining('pick must return one of the endpoints it was given') } },
    ]);
  });

  it('there is nothing to pick where the pool has one', () => {
    const pool = new EndpointPool();
    pool.add('a');
    let picks = 0;
    const endpointPicker = { type: 'counts', pick: (candidates: readonly EndpointView[]) => candidates[picks++]! };
    const { flow } = makeFlow({ pool, endpointPicker, saturationDetector: dial(0) });
    runNow(flow);
    expect(picks).toBe(0);
  });
});

describe('a picker that fails', () => {
  it('is reported as one, also once it was replaced', () => {
    const broken = { type: 'broken', pick: () => undefined as never };
    const { flow } = makeFlow({ pool: pair(), endpointPicker: broken, saturationDetector: dial(0) });
    const errors = record(flow, 'pluginError');
    runNow(flow);
    flow.reconfigure({ endpointPicker: { ...broken, type: 'as broken' } });
    runNow(flow);
    expect(errors).toMatchObject([
      { kind: 'endpointPicker', type: 'broken' },
      { kind: 'endpointPicker', type: 'as broken' },
    ]);
  });

  it('costs its choice, and not the headroom that is required', () => {
    const roomy: SaturationDetector = {
      type: 'roomy',
      saturation: () => 0,
      filter: (endpoints) => endpoints.filter(({ id }) => id === 'a'),
    };
    const pick = () => {
      throw new Error('broken');
    };
    const { flow } = makeFlow({
      pool: pair(),
      headroom: 'required',
      endpointPicker: { type: 'broken', pick },
      saturationDetector: roomy,
    });
    const ids = [1, 2, 3].map(() => leaseOf(flow.tryEnqueue(request, key())).endpoint?.id);
    expect(ids).toEqual(['a', 'a', 'a']);
  });
});

describe('a band with a detector of its own', () => {
  it('is judged by it, the others by the shared one', async () => {
    const shared = dial(0);
    const own = dial(1);
    const { flow } = makeFlow({
      saturationDetector: shared,
      bands: [{ priority: 0 }, { priority: -1, saturationDetector: own }],
    });
    expect(flow.tryEnqueue(request, key('a', 0))?.type).toBe('Dispatched');
    expect(flow.tryEnqueue(request, key('a', -1))).toBeUndefined();
    own.value = 0;
    shared.value = 1;
    expect(flow.tryEnqueue(request, key('a', 0))).toBeUndefined();
    expect(flow.tryEnqueue(request, key('a', -1))?.type).toBe('Dispatched');
  });

  it('waits behind a band above that waits', async () => {
    const shared = dial(1);
    const { flow, clock } = makeFlow({
      saturationDetector: shared,
      bands: [{ priority: 0 }, { priority: -1, saturationDetector: () => 0 }],
    });
    const order: string[] = [];
    void flow.enqueue(request, key('high', 0)).then(() => order.push('high'));
    void flow.enqueue(request, key('low', -1)).then(() => order.push('low'));
    clock.advance(100);
    await turns();
    expect(order).toEqual([]);
    shared.value = 0;
    clock.advance(100);
    await turns();
    expect(order).toEqual(['high', 'low']);
  });

  it.each(['fifo', 'aging'] as const)(
    "waits behind nobody whose gate is closed with bandOrder '%s'",
    async (bandOrder) => {
      const [shared, own] = [dial(1, true), dial(1, true)];
      const { flow } = makeFlow({
        saturationDetector: shared,
        bandOrder,
        bands: [{ priority: 5, saturationDetector: own }],
      });
      const order: string[] = [];
      void flow.enqueue(request, key('high', 5)).then(() => order.push('high'));
      void flow.enqueue(request, key('low', 0)).then(() => order.push('low'));
      shared.turnTo(0);
      await turns();
      expect(order).toEqual(['low']);
      own.turnTo(0);
      await turns();
      expect(order).toEqual(['low', 'high']);
    },
  );

  it('hears what every band dispatches, and is unsubscribed when it is replaced', () => {
    const own = { ...dial(0, true), dispatches: 0, dispatched: () => own.dispatches++ };
    const announcing = dial(0, true);
    const { flow } = makeFlow({
      saturationDetector: () => 0,
      bands: [
        { priority: 0, saturationDetector: own },
        { priority: -1, saturationDetector: announcing },
      ],
    });
    flow.tryEnqueue(request, key('a', 5));
    flow.tryEnqueue(request, key('a', -1));
    expect(own.dispatches).toBe(2);
    expect(announcing.subscribers).toBe(1);
    flow.reconfigure({ bands: [{ priority: 0, saturationDetector: own }] });
    expect(announcing.subscribers).toBe(0);
  });
});

describe('the endpoints of a class', () => {
  /** One server, and a filter that says how often it was asked which servers it keeps. */
  function asking() {
    const pool = new EndpointPool();
    pool.add('a');
    const asked: string[] = [];
    const byFairnessId: EndpointFilter = {
      type: 'by-fairness-id',
      classOf: (item) => item.fairnessId,
      keep: (endpoints, requestClass) => {
        asked.push(requestClass);
        return endpoints;
      },
    };
    const { flow } = makeFlow({ pool, endpointFilters: [byFairnessId], saturationDetector: dial(0) });
    return { pool, asked, send: (fairnessId: string) => runNow(flow, { fairnessId }) };
  }

  it('are worked out once, until the pool changes', () => {
    const { pool, asked, send } = asking();
    for (const id of ['x', 'y', 'x', 'y']) send(id);
    expect(asked).toEqual(['x', 'y']);
    pool.add('b');
    send('x');
    expect(asked).toEqual(['x', 'y', 'x']);
  });

  it('are remembered for a thousand classes, and worked out again where there are more', () => {
    const { asked, send } = asking();
    for (let i = 0; i < 1000; i++) send(`class-${i}`);
    send('class-0');
    expect(asked).toHaveLength(1000);
    send('class-1000');
    send('class-0');
    expect(asked.slice(1000)).toEqual(['class-1000', 'class-0']);
  });

  it('are all of the pool where the filter does not restrict the request, which is no fault', () => {
    const silent: EndpointFilter = { type: 'silent', classOf: () => undefined, keep: () => [] };
    const { flow } = makeFlow({ pool: pair(), endpointFilters: [silent], saturationDetector: dial(0) });
    const errors = record(flow, 'pluginError');
    expect([runNow(flow), runNow(flow)].map(({ endpoint }) => endpoint?.id).sort()).toEqual(['a', 'b']);
    expect(errors).toEqual([]);
  });
});

describe('a picker that throws', () => {
  it('is reported', () => {
    const pick = () => {
      throw new Error('broken picker');
    };
    const { flow } = makeFlow({
      pool: pair(),
      endpointPicker: { type: 'throwing', pick },
      saturationDetector: dial(0),
    });
    const errors = record(flow, 'pluginError');
    runNow(flow);
    expect(errors).toMatchObject([
      { kind: 'endpointPicker', type: 'throwing', error: { message: expect.stringContaining('broken picker') } },
    ]);
  });
});

describe('a controller without a pool', () => {
  it('has one place, which a detector of single requests judges and no filter of servers', () => {
    const judge: JudgingDetector = {
      type: 'judge',
      saturation: () => 0,
      withRoomFor: (endpoints, { tokens }) => (tokens > 1 ? [] : endpoints),
      filter: () => [],
    };
    const { flow } = makeFlow({ headroom: 'required', saturationDetector: judge });
    expect(flow.tryEnqueue({ ...request, tokens: 2 }, key())).toBeUndefined();
    expect(leaseOf(flow.tryEnqueue({ ...request, tokens: 1 }, key())).endpoint).toBeUndefined();
  });
});

describe('in shadow mode a request that would wait', () => {
  /** Two servers behind a closed gate. */
  function closedGate(endpointFilters: readonly EndpointFilter[] = []) {
    const pool = pair();
    const { flow } = makeFlow({ pool, endpointFilters, mode: shadow(), saturationDetector: dial(1) });
    return { pool, send: () => leaseOf(flow.tryEnqueue(request, key())).endpoint?.id };
  }

  it('goes to a server that is well', () => {
    const { pool, send } = closedGate();
    pool.update('a', { state: 'ill' });
    expect([send(), send()]).toEqual(['b', 'b']);
  });

  it('goes to any server where none is well', () => {
    const { pool, send } = closedGate();
    for (const id of ['a', 'b']) pool.update(id, { state: 'ill' });
    expect([send(), send()].sort()).toEqual(['a', 'b']);
  });

  it('is asked for its class once', () => {
    let asked = 0;
    const classOf = () => {
      asked++;
      return 'class';
    };
    const onlyB: EndpointFilter = {
      type: 'only-b',
      classOf,
      keep: (endpoints) => endpoints.filter(({ id }) => id === 'b'),
    };
    const { send } = closedGate([onlyB]);
    expect([send(), send(), asked]).toEqual(['b', 'b', 2]);
  });
});

describe('a pool of a thousand endpoints', () => {
  function thousand(maxConcurrency: number) {
    const pool = new EndpointPool();
    for (let i = 0; i < 1000; i++) pool.add(`e${i}`);
    const seen: number[] = [];
    const { pick, ...picker } = leastLoaded();
    const endpointPicker: EndpointPicker = {
      ...picker,
      pick(endpoints, item, nowMs) {
        seen.push(endpoints.length);
        return pick(endpoints, item, nowMs);
      },
    };
    const { flow } = makeFlow({ pool, endpointPicker, saturationDetector: concurrencyDetector({ maxConcurrency }) });
    return { pool, seen, ask: () => leaseOf(flow.tryEnqueue(request, key())) };
  }

  it('shows eight of them to a picker that takes samples, and the load is even', () => {
    const { pool, seen, ask } = thousand(64);
    for (let i = 0; i < 10_000; i++) ask();
    expect(Math.max(...seen)).toBe(8);
    const loads = pool.endpoints.map(({ inFlightRequests }) => inFlightRequests);
    expect(Math.max(...loads)).toBeLessThanOrEqual(12);
    expect(Math.min(...loads)).toBeGreaterThanOrEqual(6);
  });

  it('is used to its last seat, and never beyond one', () => {
    const { pool, seen, ask } = thousand(2);
    for (let i = 0; i < 2_000; i++) ask();
    expect(pool.endpoints.every(({ inFlightRequests }) => inFlightRequests === 2)).toBe(true);
    expect(Math.max(...seen)).toBeLessThanOrEqual(1000);
  });

  it('shows all of them to other pickers', () => {
    const pool = new EndpointPool();
    for (let i = 0; i < 65; i++) pool.add(`e${i}`);
    const seen: number[] = [];
    const last: EndpointPicker = {
      type: 'last',
      pick(endpoints) {
        seen.push(endpoints.length);
        return endpoints.at(-1);
      },
    };
    const { flow } = makeFlow({ pool, endpointPicker: last, saturationDetector: concurrencyDetector() });
    expect(leaseOf(flow.tryEnqueue(request, key())).endpoint?.id).toBe('e64');
    expect(seen).toEqual([65]);
  });
});
