import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  EndpointPool,
  type EndpointView,
  maxOf,
  meanOf,
  roleLabel,
  type SaturationDetector,
  utilizationDetector,
} from '../../../../src/index.js';
import { endpointView } from '../../../../src/testing/contracts/views.js';
import { announces, constraintsIn, listenersIn } from '../../../support/constraints.js';
import { fakeItem } from '../../../support/fake-item.js';
import { fakeSeat } from '../../../support/fake-seat.js';

const pool = new EndpointPool();
pool.add('a');
pool.add('b');
pool.add('c');

function constant(saturation: number, extra: Partial<SaturationDetector> = {}): SaturationDetector {
  return { type: `reads-${saturation}`, saturation: () => saturation, ...extra };
}
const broken: SaturationDetector = {
  type: 'broken',
  saturation() {
    throw new Error('no reading');
  },
};
const keeping = (...ids: string[]): Partial<SaturationDetector> => ({
  filter: (endpoints) => endpoints.filter(({ id }) => ids.includes(id)),
});
const kept = (detector: SaturationDetector): string[] | undefined =>
  detector.filter?.(pool.endpoints, 0).map(({ id }) => id);

describe('the readings of the parts', () => {
  const reading = (value: number) => ({ type: 'fixed', saturation: () => value });
  const pool = (stage?: 'prefill' | 'decode') => ({ endpoints: [], version: 0, ...(stage && { stage }) }) as never;

  it('are those of the last time, by stage where stages are judged at one instant', () => {
    const detector = maxOf(
      { detector: reading(0.25), name: 'a' },
      { detector: reading(2), name: 'b', stages: ['decode'] },
    );
    expect(detector.readings).toEqual([]);
    detector.saturation(pool('prefill'), 5);
    detector.saturation(pool('decode'), 5);
    expect(detector.readings).toEqual([
      { detector: 'a', stage: 'prefill', saturation: 0.25 },
      { detector: 'a', stage: 'decode', saturation: 0.25 },
      { detector: 'b', stage: 'decode', saturation: 2 },
    ]);
    detector.saturation(pool('decode'), 5);
    expect(detector.readings).toHaveLength(3);
    detector.saturation(pool(), 6);
    expect(detector.readings.map(({ stage }) => stage)).toEqual([undefined, undefined]);
  });
});

describe('maxOf and meanOf', () => {
  it('answer with the highest reading and with the mean, and name the highest child', () => {
    const max = maxOf(constant(0.3), constant(0.9), constant(0.6));
    const mean = meanOf(constant(0.3), constant(0.9), constant(0.6));
    expect(max.winner).toBeUndefined();
    expect(max.saturation(pool, 0)).toBe(0.9);
    expect(mean.saturation(pool, 0)).toBeCloseTo(0.6, 12);
    expect([max.winner, mean.winner]).toEqual(['reads-0.9', 'reads-0.9']);
  });

  it('read a child that fails as full, say which, and ask the others all the same', () => {
    const nan = { ...constant(Number.NaN), type: 'nan' };
    const detector = maxOf(broken, nan, constant(1.4));
    expect(detector.saturation(pool, 0)).toBe(1.4);
    expect([...detector.failures.keys()]).toEqual(['broken', 'nan']);
    expect(detector.isGuessing).toBe(true);
    expect(maxOf(constant(-1), constant(0.2)).saturation(pool, 0)).toBe(1);
    expect(meanOf(broken, constant(0.5)).saturation(pool, 0)).toBe(0.75);
  });

  it('forget a failure that has passed', () => {
    let reading = Number.POSITIVE_INFINITY;
    const detector = maxOf({ type: 'flaky', saturation: () => reading });
    expect(detector.saturation(pool, 0)).toBe(1);
    reading = 0.4;
    expect(detector.saturation(pool, 0)).toBe(0.4);
    expect(detector.isGuessing).toBe(false);
  });

  it('never answer lower because one child reads higher', () => {
    const reading = fc.double({ min: 0, max: 3, noNaN: true });
    fc.assert(
      fc.property(fc.array(reading, { minLength: 1, maxLength: 5 }), fc.nat(), reading, (readings, at, more) => {
        const raised = readings.map((value, index) => (index === at % readings.length ? value + more : value));
        for (const combine of [maxOf, meanOf]) {
          const before = combine(...readings.map((value) => constant(value))).saturation(pool, 0);
          expect(combine(...raised.map((value) => constant(value))).saturation(pool, 0)).toBeGreaterThanOrEqual(
            before - 1e-12,
          );
        }
      }),
    );
  });

  it('announce changes when every child does, and stop all of them', () => {
    expect(announces(maxOf(constant(0), constant(0, { subscribe: () => () => {} })))).toBe(false);
    const heard: string[] = [];
    const child = (name: string): SaturationDetector =>
      constant(0, {
        subscribe(listener) {
          listener();
          return () => heard.push(`stop ${name}`);
        },
      });
    expect(announces(maxOf(child('a'), child('b')), () => heard.push('changed'))).toBe(true);
    expect(heard).toEqual(['changed', 'changed', 'stop a', 'stop b']);
  });

  it('keep the endpoints that all children keep, none included; a child that fails has no say', () => {
    expect(kept(maxOf(constant(0, keeping('a', 'b')), constant(0), constant(0, keeping('b', 'c'))))).toEqual(['b']);
    expect(kept(maxOf(constant(0, keeping('a')), constant(0, keeping('c'))))).toEqual([]);
    expect(kept(maxOf(constant(0, keeping()), constant(0, keeping('c'))))).toEqual([]);
    const failing: Partial<SaturationDetector> = {
      filter: () => {
        throw new Error('no');
      },
    };
    expect(kept(maxOf(constant(0, failing), constant(0, keeping('a'))))).toEqual(['a']);
  });

  it('need a pool when a child does, and each child hears what the controller did', () => {
    expect(maxOf(concurrencyDetector()).needsPool).toBeUndefined();
    expect(maxOf(concurrencyDetector(), utilizationDetector()).needsPool).toBe(true);
    const heard: string[] = [];
    const listening = (name: string): Partial<SaturationDetector> => ({
      dispatched: ({ id }: EndpointView) => void heard.push(`${name} +${id}`),
      released: ({ id }: EndpointView) => void heard.push(`${name} -${id}`),
    });
    const failing: Partial<SaturationDetector> = {
      dispatched: () => {
        throw new Error('deaf');
      },
    };
    const detector = maxOf(constant(0, listening('x')), constant(0, failing), constant(0, listening('y')));
    const endpoint = pool.endpoints[0] as EndpointView;
    const listeners = listenersIn(detector);
    listeners.tell('dispatched', endpoint, 0, fakeSeat());
    listeners.tell('released', endpoint, 0, fakeSeat());
    expect(heard).toEqual(['x +a', 'y +a', 'x -a', 'y -a']);
  });

  it('leave out the children of another stage, and read 0 where nobody judges', () => {
    const decode = maxOf({ detector: constant(1.2), stages: ['decode'], name: 'decode-only' });
    expect(decode.saturation({ ...pool, endpoints: pool.endpoints, stage: 'prefill' }, 0)).toBe(0);
    expect(decode.winner).toBeUndefined();
    expect(decode.saturation({ ...pool, endpoints: pool.endpoints, stage: 'decode' }, 0)).toBe(1.2);
    expect(
      meanOf({ detector: constant(1.2), stages: ['decode'] }).saturation(
        { ...pool, endpoints: pool.endpoints, stage: 'prefill' },
        0,
      ),
    ).toBe(0);
    expect(decode.saturation(pool, 0)).toBe(1.2);
    expect(decode.winner).toBe('decode-only');
  });

  it('number children of one type, and reject what is no detector', () => {
    const twins = maxOf(constant(0.5), { ...constant(0.5), saturation: () => 0.7 });
    twins.saturation(pool, 0);
    expect(twins.winner).toBe('reads-0.5-2');
    expect(() => maxOf()).toThrow('max-saturation-detector: detectors: expected at least one entry; got none');
    expect(() => meanOf({} as SaturationDetector)).toThrow(
      'mean-saturation-detector: detectors[0]: expected a saturation detector',
    );
    expect(() => maxOf(undefined as unknown as SaturationDetector)).toThrow(
      'detectors[0]: expected a saturation detector; got nothing',
    );
    expect(() => maxOf({ detector: constant(0), stages: [] })).toThrow('detectors[0].stages: expected at least one of');
    expect(() => maxOf({ detector: constant(0), name: 'x' }, { detector: constant(0), name: 'x' })).toThrow(
      'detectors[1].name',
    );
  });

  /** docs/policies/max-saturation-detector.md */
  it('judge seven requests of ten on a server whose cache is nine tenths full', () => {
    const server = new EndpointPool();
    server.add('gpu-0');
    server.report('gpu-0', { waitingQueueSize: 0, runningRequests: 7, kvCacheUsage: 0.72, sampledAtMs: 0 });
    const seven = { endpoints: server.endpoints, inFlightRequests: 7, inFlightTokens: 0 };
    const children = [concurrencyDetector({ maxConcurrency: 10 }), utilizationDetector({ kvCacheUtilThreshold: 0.8 })];
    const max = maxOf(...children);
    expect(max.saturation(seven, 0)).toBeCloseTo(0.9, 12);
    expect(max.winner).toBe('utilization-detector');
    expect(meanOf(...children).saturation(seven, 0)).toBeCloseTo(0.8, 12);
  });

  it('asks a child about single requests only where it judges a stage of the endpoint', () => {
    const byTokens = (maxTokenConcurrency: number): SaturationDetector =>
      concurrencyDetector({ concurrencyMode: 'tokens', maxTokenConcurrency, countIncoming: true });
    const detector = maxOf(
      { detector: byTokens(100), stages: ['prefill'] },
      { detector: byTokens(1000), stages: ['decode'] },
    );
    const endpoints = ['prefill', 'decode', 'prefill-decode'].map((role) =>
      endpointView(role, { labels: { [roleLabel]: role }, inFlightTokens: 60 }),
    );
    const roomFor = (tokens: number): string[] | undefined =>
      constraintsIn([detector])
        .withRoomFor(endpoints, fakeItem({ tokens }), undefined, 0)
        .map(({ id }) => id);
    expect(roomFor(40)).toEqual(['prefill', 'decode', 'prefill-decode']);
    expect(roomFor(50)).toEqual(['decode']);
    expect(roomFor(950)).toEqual([]);
    expect(constraintsIn([detector]).waitOf(endpoints, fakeItem({ tokens: 950 }), undefined, 0)?.missing).toContain(
      '950 tokens',
    );
  });
});

describe('a composite of one stage or both', () => {
  const [prefill, decode, both] = ['prefill', 'decode', 'prefill-decode'].map((role) =>
    endpointView(role, { labels: { [roleLabel]: role } }),
  ) as [EndpointView, EndpointView, EndpointView];
  const all = [prefill, decode, both];
  const seats = (maxConcurrency: number): SaturationDetector => concurrencyDetector({ maxConcurrency });
  const blindTo = (id: string): SaturationDetector => constant(0, { isBlindTo: (endpoint) => endpoint.id === id });

  it('asks children of no stage in particular at every stage', () => {
    const detector = maxOf(constant(0.7), { detector: constant(0.2), stages: ['prefill'] });
    expect(detector.saturation({ ...pool, endpoints: pool.endpoints, stage: 'decode' }, 0)).toBe(0.7);
  });

  it('is blind to an endpoint that one of its judges is blind to', () => {
    const detector = maxOf(
      constant(0),
      blindTo('prefill'),
      { detector: blindTo('decode'), stages: ['prefill'] },
      { detector: blindTo('prefill-decode'), stages: ['decode'] },
    );
    expect(all.map((endpoint) => detector.isBlindTo?.(endpoint, 0))).toEqual([true, false, true]);
    expect(maxOf(constant(0), constant(0)).isBlindTo).toBeUndefined();
  });

  it('is not blind by a child that fails to say so', () => {
    const failing = constant(0, {
      isBlindTo: () => {
        throw new Error('no');
      },
    });
    expect(maxOf(failing).isBlindTo?.(prefill, 0)).toBe(false);
    expect(maxOf(failing, blindTo('prefill')).isBlindTo?.(prefill, 0)).toBe(true);
  });

  it('has the seats of the strictest judge of an endpoint', () => {
    const detector = maxOf(
      seats(9),
      constant(0),
      { detector: seats(2), stages: ['prefill'] },
      { detector: seats(4), stages: ['decode'] },
    );
    expect(all.map((endpoint) => detector.seatsOf?.(endpoint, 0))).toEqual([2, 4, 2]);
    expect(maxOf(constant(0)).seatsOf).toBeUndefined();
  });

  it('asks a filter about the endpoints that it judges, and keeps the others', () => {
    const asked: string[][] = [];
    const filter: SaturationDetector['filter'] = (endpoints) => {
      asked.push(endpoints.map(({ id }) => id));
      return [];
    };
    const detector = maxOf({ detector: constant(0, { filter }), stages: ['prefill'] });
    expect(detector.filter?.(all, 0)).toEqual([decode]);
    expect(asked).toEqual([['prefill', 'prefill-decode']]);
  });
});

describe('what a composite is', () => {
  it('follows from its children: it is heard, guesses and fails as they do', () => {
    expect(listenersIn(maxOf(concurrencyDetector())).hears.dispatched).toBe(false);
    const { hears } = listenersIn(maxOf(constant(0), constant(0, { answered: () => {} })));
    expect([hears.answered, hears.dispatched]).toEqual([true, false]);
    expect(maxOf(constant(0), constant(0)).isGuessing).toBe(false);
    expect(maxOf(constant(0), constant(0, { isGuessing: true })).isGuessing).toBe(true);
    const idle = maxOf(constant(0), constant(0));
    expect([idle.saturation(pool, 0), idle.failures.size, idle.winner]).toEqual([0, 0, 'reads-0']);
  });

  it('names the first of equal children, and numbers those of one type', () => {
    const [low, high] = [constant(0.5), { ...constant(0.5), saturation: () => 0.7 }];
    const twins = maxOf(low, high, high);
    twins.saturation(pool, 0);
    expect(twins.winner).toBe('reads-0.5-2');
    const triplets = maxOf(low, low, high);
    triplets.saturation(pool, 0);
    expect(triplets.winner).toBe('reads-0.5-3');
  });

  it.each([['0.5'], [null], [Number.NaN]])('fails in a child that reads %j, and says so', (reading) => {
    const detector = maxOf({ type: 'odd', saturation: () => reading as number });
    expect(detector.saturation(pool, 0)).toBe(1);
    expect(String(detector.failures.get('odd'))).toBe(
      `RangeError: saturation must be a finite number from 0 up; got ${reading}`,
    );
  });

  it.each<[unknown, string]>([
    [null, 'detectors[0]: expected a saturation detector; got null'],
    [
      { detector: constant(0), stages: ['prefill', 'encode'] },
      'detectors[0].stages: expected at least one of "prefill" and "decode"; got ["prefill","encode"]',
    ],
  ])('is not made of %j', (child, message) => {
    expect(() => maxOf(child as SaturationDetector)).toThrow(message);
  });

  it('is not made of two children of one name', () => {
    expect(() => maxOf({ detector: constant(0), name: 'x' }, { detector: constant(0), name: 'x' })).toThrow(
      'detectors[1].name: expected a name that no other child has; got "x"',
    );
  });
});
