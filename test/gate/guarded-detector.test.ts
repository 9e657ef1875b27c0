import { describe, expect, it } from 'vitest';
import { GuardedDetector } from '../../src/gate/guarded-detector.js';
import type { EndpointView, SaturationDetector } from '../../src/index.js';
import { fakeEndpoint, poolOf } from '../support/fake-pool.js';

const [a, b, c] = ['a', 'b', 'c'].map((id, index) =>
  fakeEndpoint(id, { inFlightRequests: index + 1, inFlightTokens: 10 }),
) as [EndpointView, EndpointView, EndpointView];
const all = [a, b, c];

function guard(hooks: Record<string, unknown>, settings = { closeAt: 1, openAt: 1, failValue: 1 }) {
  const faults: string[] = [];
  let announced = 0;
  const detector = { type: 'x', saturation: () => 0, ...hooks } as unknown as SaturationDetector;
  const guarded = new GuardedDetector(
    detector,
    settings,
    { pluginFailed: (kind, type, error) => faults.push(`${kind} ${type}: ${String(error)}`) },
    () => announced++,
  );
  return { guarded, faults, announced: () => announced };
}

const throwing = (): never => {
  throw new Error('broken');
};

/**
 * Every question about single endpoints: how it is asked, an answer that is right, and what stands in for a
 * wrong one.
 */
const questions: readonly [
  hook: string,
  ask: (guarded: GuardedDetector) => unknown,
  right: unknown,
  fallback: unknown,
  rule: string,
][] = [
  [
    'filter',
    (guarded) => guarded.withRoom(all, 5),
    [b],
    all,
    'filter must return an array of the endpoints that it was given',
  ],
  ['seatsOf', (guarded) => guarded.seatsOf(a, 5), 0, undefined, 'seatsOf must return a number from 0 up, or undefined'],
];

describe.each(questions)('%s', (hook, ask, right, fallback, rule) => {
  it('is answered by the detector', () => {
    const { guarded, faults } = guard({ [hook]: () => right });
    expect(ask(guarded)).toEqual(right);
    expect(faults).toEqual([]);
  });

  it('needs no answer', () => {
    const { guarded, faults } = guard({});
    expect(ask(guarded)).toBe(fallback);
    expect(faults).toEqual([]);
  });

  it.each([['text'], [-1], [null], [[null]], [{}]])(
    'answered by %j is reported, and as if it had not been asked',
    (wrong) => {
      const { guarded, faults } = guard({ [hook]: () => wrong });
      expect(ask(guarded)).toBe(fallback);
      expect(faults).toEqual([expect.stringContaining(`saturationDetector x: TypeError: ${rule}; got`)]);
    },
  );

  it('answered by an exception is reported, and as if it had not been asked', () => {
    const { guarded, faults } = guard({ [hook]: throwing });
    expect(ask(guarded)).toBe(fallback);
    expect(faults).toEqual(['saturationDetector x: Error: broken']);
  });
});

describe('the endpoints that have room', () => {
  it.each<[string, readonly EndpointView[], boolean]>([
    ['none', [], true],
    ['all, the same array', all, true],
    ['some, in another order', [c, a], true],
    ['one that was not given', [a, fakeEndpoint('a')], false],
    ['one that was not given alone', [fakeEndpoint('z')], false],
  ])('may be %s', (_name, answer, isRight) => {
    const { guarded, faults } = guard({ filter: () => answer });
    expect(guarded.withRoom(all, 0)).toEqual(isRight ? answer : all);
    expect(faults).toHaveLength(isRight ? 0 : 1);
  });
});

describe('endpoints that the detector is blind to', () => {
  it('are left out of its reading, whose sums are those of the others', () => {
    const read: unknown[] = [];
    const { guarded } = guard({
      isBlindTo: ({ id }: EndpointView) => id === 'b',
      saturation: (pool: ReturnType<typeof poolOf>) => {
        read.push([pool.endpoints.map(({ id }) => id), pool.inFlightRequests, pool.inFlightTokens, pool.version]);
        return 0.5;
      },
    });
    expect(guarded.read({ ...poolOf(...all), version: 3 }, 0)).toBe(0.5);
    expect(read).toEqual([[['a', 'c'], 4, 20, 3]]);
    expect(guarded.visible(all, 0)).toEqual([a, c]);
  });

  it('are nobody for a detector that sees all, which gets the pool itself', () => {
    const seen: unknown[] = [];
    const pool = poolOf(...all);
    const saturation = (given: unknown): number => seen.push(given) && 0;
    guard({ saturation }).guarded.read(pool, 0);
    const { guarded } = guard({ saturation, isBlindTo: () => false });
    guarded.read(pool, 0);
    expect(seen).toEqual([pool, pool]);
    expect(guarded.visible(all, 0)).toBe(all);
  });

  it('make the same part of the pool the same object while nothing has changed', () => {
    const seen = new Set<unknown>();
    let blindTo = 'b';
    const { guarded } = guard({
      saturation: (given: unknown) => seen.add(given) && 0,
      isBlindTo: ({ id }: EndpointView) => id === blindTo,
    });
    const pool = { ...poolOf(...all), version: 1 };
    for (let i = 0; i < 3; i++) guarded.read(pool, 0);
    expect(seen.size).toBe(1);
    blindTo = 'c';
    guarded.read(pool, 0);
    expect(seen.size).toBe(2);
    guarded.read({ ...pool, version: 2 }, 0);
    expect(seen.size).toBe(3);
    blindTo = '';
    guarded.read(poolOf(a, b), 0);
    blindTo = 'b';
    guarded.read({ ...poolOf(a, b), version: 2 }, 0);
    expect(seen.size).toBe(5);
  });

  it('make a pool full when they are all of it, and an empty pool is full as well', () => {
    const { guarded } = guard({ isBlindTo: () => true });
    expect([guarded.read(poolOf(...all), 0), guarded.isBlindToAll(all, 0), guarded.isBlindToAll([], 0)]).toEqual([
      1,
      true,
      false,
    ]);
    const seeing = guard({}).guarded;
    expect([seeing.read(poolOf(), 0), seeing.saturation, seeing.isBlindToAll(all, 0)]).toEqual([1, 1, false]);
    expect(guard({ isBlindTo: ({ id }: EndpointView) => id !== 'b' }).guarded.isBlindToAll(all, 0)).toBe(false);
  });

  it.each([[undefined], [1], ['no']])('cannot be told by %j, which is reported and counts as seen', (answer) => {
    const { guarded, faults } = guard({ isBlindTo: () => answer });
    expect(guarded.visible([a], 0)).toEqual([a]);
    expect(faults[0]).toContain('isBlindTo must return true or false');
    const failing = guard({ isBlindTo: throwing });
    expect([failing.guarded.isBlindToAll([a], 0), failing.faults]).toEqual([
      false,
      ['saturationDetector x: Error: broken'],
    ]);
  });
});

describe('announcements', () => {
  it('are passed on but for those that are part of a reading, until they are stopped', () => {
    let announce = (): void => {};
    let stops = 0;
    const { guarded, announced } = guard({
      saturation() {
        announce();
        return 0;
      },
      subscribe: (listener: () => void) => {
        announce = listener;
        return () => void stops++;
      },
    });
    announce();
    expect(announced()).toBe(1);
    guarded.read(poolOf(a), 0);
    expect([announced(), guarded.announces]).toEqual([1, true]);
    announce();
    expect(announced()).toBe(2);
    guarded.stop();
    guarded.stop();
    expect(stops).toBe(1);
    guarded.read(poolOf(a), 0);
    expect(guarded.announces).toBe(false);
  });

  it('go on after a reading that failed', () => {
    let announce = (): void => {};
    const subscribe = (listener: () => void) => {
      announce = listener;
      return () => {};
    };
    const { guarded, announced } = guard({ saturation: throwing, subscribe });
    guarded.read(poolOf(a), 0);
    announce();
    expect([announced(), guarded.announces]).toEqual([1, false]);
  });

  it('are none of a detector that guesses, or that cannot be stopped', () => {
    const guessing = guard({ subscribe: () => () => {}, isGuessing: true }).guarded;
    guessing.read(poolOf(a), 0);
    expect(guessing.announces).toBe(false);
    for (const subscribe of [() => undefined, throwing]) {
      const { guarded, faults } = guard({ subscribe });
      guarded.read(poolOf(a), 0);
      expect([guarded.announces, faults.length]).toEqual([false, 1]);
    }
  });

  it('that cannot be stopped without an exception are stopped all the same', () => {
    const { guarded, faults } = guard({ subscribe: () => throwing });
    guarded.stop();
    guarded.stop();
    expect(faults).toEqual(['saturationDetector x: Error: broken']);
  });
});

describe('a reading', () => {
  it('is scaled by closeAt, and a failing one is not', () => {
    let reading: unknown = 0.4;
    const { guarded, faults } = guard({ saturation: () => reading }, { closeAt: 0.5, openAt: 0.5, failValue: 0.3 });
    expect([guarded.read(poolOf(a), 0), guarded.isFailing]).toEqual([0.8, false]);
    reading = 'much';
    expect([guarded.read(poolOf(a), 0), guarded.isFailing, guarded.holdsBackAll]).toEqual([0.3, true, false]);
    expect(faults).toEqual([
      'saturationDetector x: RangeError: saturation must be a finite number from 0 up; got much',
    ]);
    guarded.configure({ closeAt: 1, openAt: 1, failValue: 1 });
    expect(guarded.holdsBackAll).toBe(true);
    reading = 0.4;
    expect([guarded.read(poolOf(a), 0), guarded.isFailing, guarded.holdsBackAll]).toEqual([0.4, false, false]);
  });

  it('stays full until it has fallen to openAt, through a change of the fail value, and not through one of the levels', () => {
    let reading = 0.9;
    const { guarded } = guard({ saturation: () => reading }, { closeAt: 0.8, openAt: 0.4, failValue: 1 });
    const read = (next: number): number => {
      reading = next;
      return guarded.read(poolOf(a), 0);
    };
    expect([0.6, 0.8, 0.6, 0.41, 0.4, 0.6].map(read)).toEqual([0.6 / 0.8, 1, 1, 1, 0.5, 0.6 / 0.8]);
    read(1.6);
    expect(guarded.saturation).toBe(2);
    guarded.configure({ closeAt: 0.8, openAt: 0.4, failValue: 0.5 });
    expect(read(0.6)).toBe(1);
    guarded.configure({ closeAt: 0.8, openAt: 0.5, failValue: 0.5 });
    expect(read(0.6)).toBe(0.6 / 0.8);
    read(0.9);
    guarded.configure({ closeAt: 0.9, openAt: 0.5, failValue: 0.5 });
    expect(read(0.6)).toBe(0.6 / 0.9);
  });
});
