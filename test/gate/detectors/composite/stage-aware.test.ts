import { describe, expect, it } from 'vitest';
import { partitionByRole } from '../../../../src/gate/detectors/composite/stage-aware.js';
import {
  byStage,
  concurrencyDetector,
  EndpointPool,
  type EndpointView,
  explainWait,
  type PoolView,
  roleLabel,
  type SaturationDetector,
  utilizationDetector,
} from '../../../../src/index.js';
import { announces, constraintsIn, type JudgingDetector, listenersIn } from '../../../support/constraints.js';
import { fakeItem } from '../../../support/fake-item.js';
import { fakeEndpoint, poolOf as viewOf } from '../../../support/fake-pool.js';
import { fakeSeat } from '../../../support/fake-seat.js';
import { key, makeFlow, request } from '../../../support/flow.js';

function poolOf(...roles: (string | undefined)[]): EndpointPool {
  const pool = new EndpointPool();
  roles.forEach((role, index) => {
    pool.add(`${role ?? 'none'}-${index}`, role === undefined ? {} : { labels: { [roleLabel]: role } });
  });
  return pool;
}
const ids = (endpoints: readonly { readonly id: string }[]): string[] => endpoints.map(({ id }) => id);

/** Reads what the test says for each stage, and notes what it was shown. */
function spy(readings: Partial<Record<string, number>>): SaturationDetector & { readonly seen: string[] } {
  const seen: string[] = [];
  return {
    type: 'spy',
    seen,
    saturation(pool: PoolView) {
      seen.push(`${pool.stage ?? 'whole'}: ${ids(pool.endpoints).join(' ')}`);
      return readings[pool.stage ?? 'whole'] ?? 0;
    },
  };
}

describe('byStage', () => {
  it('sorts endpoints by their role', () => {
    const pool = poolOf(
      'prefill',
      'encode-prefill',
      'decode',
      '',
      undefined,
      'prefill-decode',
      'both',
      'encode',
      'other',
      'encode-prefill-decode',
    );
    const { prefill, decode } = partitionByRole(pool.endpoints);
    expect(ids(prefill)).toEqual([
      'prefill-0',
      'encode-prefill-1',
      'prefill-decode-5',
      'both-6',
      'encode-prefill-decode-9',
    ]);
    expect(ids(decode)).toEqual(['decode-2', '-3', 'none-4', 'prefill-decode-5', 'both-6', 'encode-prefill-decode-9']);
  });

  it('answers with the fuller stage, and shows what each reads', () => {
    const child = spy({ prefill: 1.5, decode: 0.3 });
    const detector = byStage(child);
    expect(detector.saturation(poolOf('prefill', 'decode', 'both'), 0)).toBe(1.5);
    expect(child.seen).toEqual(['prefill: prefill-0 both-2', 'decode: decode-1 both-2']);
    expect(detector.stageSaturation).toEqual({ prefill: 1.5, decode: 0.3 });
  });

  it('ignores an empty stage, and judges a pool of neither as a whole', () => {
    const child = spy({ prefill: 9, decode: 0.4, whole: 0.7 });
    expect(byStage(child).saturation(poolOf('decode'), 0)).toBe(0.4);
    expect(byStage(child).saturation(poolOf('encode'), 0)).toBe(0.7);
    expect(byStage(concurrencyDetector()).saturation(new EndpointPool(), 0)).toBe(1);
  });

  it('sorts anew only when the membership changes', () => {
    const child = spy({});
    const detector = byStage(child);
    const pool = poolOf('prefill', 'decode');
    let labelsRead = 0;
    const counted = pool.endpoints.map((endpoint) => ({
      ...endpoint,
      unsampledRequests: 0,
      get labels() {
        labelsRead++;
        return endpoint.labels;
      },
    }));
    const view: PoolView = { endpoints: counted, inFlightRequests: 0, inFlightTokens: 0 };
    detector.saturation(view, 0);
    const once = labelsRead;
    detector.saturation(view, 0);
    expect(labelsRead).toBe(once);
    detector.saturation(pool, 0);
    pool.add('late', { labels: { [roleLabel]: 'prefill' } });
    detector.saturation(pool, 0);
    expect(child.seen.at(-2)).toBe('prefill: prefill-0 late');
  });

  it('sorts anew when an endpoint changes its role in place', () => {
    const child = spy({});
    const detector = byStage(child);
    const pool = poolOf('prefill', 'decode', 'decode');
    detector.saturation(pool, 0);
    pool.update('decode-2', { labels: { [roleLabel]: 'prefill' } });
    detector.saturation(pool, 0);
    expect(child.seen.slice(-2)).toEqual(['prefill: prefill-0 decode-2', 'decode: decode-1']);
  });

  it('sums up the tokens in flight of a stage', () => {
    const detector = byStage(concurrencyDetector({ concurrencyMode: 'tokens', maxTokenConcurrency: 100 }));
    const endpoints = ['prefill', 'prefill', 'decode'].map((role, index) =>
      fakeEndpoint(role, { labels: { [roleLabel]: role }, inFlightTokens: 10 + index }),
    );
    detector.saturation(viewOf(...endpoints), 0);
    expect(detector.stageSaturation).toEqual({ prefill: 0.105, decode: 0.12 });
  });

  it.each([['0.5'], [undefined]])('passes the reading %j on to the gate as no number', (reading) => {
    const odd = { type: 'odd', saturation: () => reading } as unknown as SaturationDetector;
    expect(byStage({ prefill: odd, decode: spy({}) }).saturation(poolOf('prefill', 'decode'), 0)).toBeNaN();
  });

  it('passes a reading that is no number on to the gate', () => {
    expect(byStage(spy({ prefill: Number.NaN, decode: 0.5 })).saturation(poolOf('prefill', 'decode'), 0)).toBeNaN();
  });

  it('keeps what the detectors of all stages of an endpoint keep, and none that serves no stage', () => {
    const dropping = (role: string): SaturationDetector => ({
      type: `no-${role}`,
      saturation: () => 0,
      filter: (endpoints) => endpoints.filter(({ labels }) => labels[roleLabel] !== role),
    });
    const pool = poolOf('prefill', 'decode', 'both', 'encode');
    const left = byStage({ prefill: dropping('both'), decode: dropping('nobody') }).filter?.(pool.endpoints, 0) ?? [];
    expect(ids(left)).toEqual(['prefill-0', 'decode-1']);
    const full = byStage({ prefill: dropping('prefill'), decode: dropping('nobody') });
    expect(ids(full.filter?.(poolOf('prefill', 'decode').endpoints, 0) ?? [])).toEqual(['decode-1']);
    expect(byStage(dropping('prefill')).filter?.(poolOf('prefill').endpoints, 0)).toEqual([]);
    expect(ids(byStage(dropping('x')).filter?.(poolOf('encode').endpoints, 0) ?? [])).toEqual(['encode-0']);
  });

  it('tells a detector of its own stage only, and each detector once', () => {
    const heard: string[] = [];
    const named = (name: string): SaturationDetector => ({
      type: name,
      saturation: () => 0,
      dispatched: ({ id }) => void heard.push(`${name} +${id}`),
      released: ({ id }) => void heard.push(`${name} -${id}`),
    });
    const two = byStage({ prefill: named('p'), decode: named('d') });
    const one = byStage(named('one'));
    for (const endpoint of poolOf('prefill', 'decode', 'both').endpoints) {
      listenersIn(two).tell('dispatched', endpoint, 0, fakeSeat());
      listenersIn(one).tell('released', endpoint, 0, fakeSeat());
    }
    expect(heard).toEqual([
      'p +prefill-0',
      'one -prefill-0',
      'd +decode-1',
      'one -decode-1',
      'p +both-2',
      'd +both-2',
      'one -both-2',
    ]);
  });

  it('announces changes and needs a pool as its detectors do', () => {
    expect(announces(byStage(concurrencyDetector()))).toBe(true);
    expect(byStage(concurrencyDetector()).needsPool).toBeUndefined();
    expect(byStage(concurrencyDetector()).isGuessing).toBe(false);
    expect(byStage({ ...concurrencyDetector(), isGuessing: true }).isGuessing).toBe(true);
    const mixed = byStage({ prefill: utilizationDetector(), decode: concurrencyDetector() });
    expect(announces(mixed)).toBe(false);
    expect(mixed.needsPool).toBe(true);
    expect(() => byStage({ prefill: concurrencyDetector() } as never)).toThrow(
      'byStage: decode: expected a saturation detector; got nothing',
    );
  });

  /** docs/policies/stage-aware-saturation-detector.md */
  it('closes the gate when the one prefill server is full, though the whole pool reads a third', () => {
    const pool = poolOf('prefill', 'decode', 'decode');
    const whole = concurrencyDetector({ maxConcurrency: 4 });
    const { flow } = makeFlow({ pool, saturationDetector: byStage(whole) });
    for (let i = 0; i < 4; i++) {
      const outcome = flow.tryEnqueue(request, key());
      if (outcome?.type === 'Dispatched') outcome.lease.bind('prefill-0');
    }
    expect(whole.saturation(pool, 0)).toBeCloseTo(1 / 3, 12);
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
    expect(flow.stats().saturation).toBe(1);
  });
});

describe('servers that do not report', () => {
  const idle = { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 };

  function gated(...roles: string[]) {
    const pool = poolOf(...roles);
    const made = makeFlow({
      pool,
      saturationDetector: byStage(utilizationDetector({ queueDepthThreshold: 5 })),
      headroom: 'required',
    });
    const report = (...reporting: string[]): void => {
      for (const id of reporting) pool.report(id, idle);
    };
    return { ...made, pool, report };
  }

  it('are no capacity of their stage', () => {
    const { flow, report } = gated('prefill', 'prefill', 'decode');
    report('prefill-0', 'decode-2');
    expect(flow.figures()).toMatchObject({ stats: { saturation: 0 }, pool: { endpoints: 3, available: 2 } });
  });

  it('leave the pool empty when all of them are such', () => {
    const { flow } = gated('prefill', 'decode');
    expect(flow.figures()).toMatchObject({ stats: { saturation: 1 }, pool: { available: 0 } });
    void flow.enqueue(request, key());
    expect(explainWait(flow, request)).toMatchObject({ decidedBy: 'pool' });
  });

  it('make their stage full when it has no others, and free when one of them reports', () => {
    const { flow, report } = gated('prefill', 'decode');
    report('decode-1');
    void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ waiting: 1, saturation: 1 });
    report('prefill-0');
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 1 });
  });
});

describe('seats', () => {
  it('are those of the stage that an endpoint serves, and the fewer of both', () => {
    const detector = byStage({
      prefill: concurrencyDetector({ maxConcurrency: 2 }),
      decode: concurrencyDetector({ maxConcurrency: 8 }),
    });
    const seats = poolOf('prefill', 'decode', 'both').endpoints.map((endpoint) => detector.seatsOf?.(endpoint, 0));
    expect(seats).toEqual([2, 8, 2]);
    expect(byStage(utilizationDetector()).seatsOf).toBeUndefined();
  });
});

describe('detectors of which one alone', () => {
  const [prefill, decode, both] = ['prefill', 'decode', 'both'].map((role) =>
    fakeEndpoint(role, { labels: { [roleLabel]: role } }),
  ) as [EndpointView, EndpointView, EndpointView];
  const all = [prefill, decode, both];
  const plain: SaturationDetector = { type: 'plain', saturation: () => 0.25 };
  const blind: SaturationDetector = { ...plain, type: 'blind', isBlindTo: ({ id }) => id !== 'nobody' };

  it('guesses guess', () => {
    expect(byStage({ prefill: plain, decode: { ...plain, isGuessing: true } }).isGuessing).toBe(true);
  });

  it('filters keep all endpoints of the other stage, and are not asked about an empty stage', () => {
    const asked: string[][] = [];
    const filter: SaturationDetector['filter'] = (endpoints) => {
      asked.push(ids(endpoints));
      return [];
    };
    const detector = byStage({ prefill: plain, decode: { ...plain, filter } });
    expect([detector.filter?.(all, 0), detector.filter?.([prefill], 0)]).toEqual([[prefill], [prefill]]);
    expect(asked).toEqual([['decode', 'both']]);
  });

  it('are blind to the endpoints of their stage, to those of both as well', () => {
    const detector = byStage({ prefill: blind, decode: plain });
    expect(all.map((endpoint) => detector.isBlindTo?.(endpoint, 0))).toEqual([true, false, true]);
    expect(byStage(plain).isBlindTo).toBeUndefined();
  });

  it('have seats say how many there are', () => {
    const detector = byStage({ prefill: plain, decode: concurrencyDetector({ maxConcurrency: 3 }) });
    expect(all.map((endpoint) => detector.seatsOf?.(endpoint, 0))).toEqual([undefined, 3, 3]);
  });

  it('judges single requests judges those at the endpoints of its stage', () => {
    const judge: JudgingDetector = { ...plain, withRoomFor: () => [] };
    const detector = byStage({ prefill: judge, decode: plain });
    expect(constraintsIn([detector]).withRoomFor(all, fakeItem(), undefined, 0)).toEqual([decode]);
  });

  it('is blind makes its stage full while nothing of that is seen, and only at that reading', () => {
    const detector = byStage({ prefill: blind, decode: plain });
    for (const endpoint of all) detector.isBlindTo?.(endpoint, 5);
    expect([detector.saturation(viewOf(decode), 5), detector.stageSaturation]).toEqual([
      1,
      { prefill: 1, decode: 0.25 },
    ]);
    expect([detector.saturation(viewOf(decode), 6), detector.stageSaturation]).toEqual([0.25, { decode: 0.25 }]);
    // Another prefill server is seen.
    for (const endpoint of all) detector.isBlindTo?.(endpoint, 7);
    expect(detector.saturation(viewOf(prefill), 7)).toBe(1);
    expect(detector.stageSaturation).toEqual({ prefill: 0.25, decode: 1 });
  });

  it('sees an endpoint does not make its stage full when that is not judged', () => {
    const detector = byStage({ prefill: { ...plain, isBlindTo: () => false }, decode: plain });
    detector.isBlindTo?.(prefill, 5);
    expect(detector.saturation(viewOf(decode), 5)).toBe(0.25);
  });

  it('is blind to some of a stage, which is not full for that', () => {
    const detector = byStage({ ...plain, isBlindTo: ({ id }) => id === 'prefill' });
    const other = fakeEndpoint('other', { labels: prefill.labels });
    for (const endpoint of [prefill, other]) detector.isBlindTo?.(endpoint, 5);
    expect([detector.saturation(viewOf(other), 5), detector.stageSaturation]).toEqual([0.25, { prefill: 0.25 }]);
  });
});
