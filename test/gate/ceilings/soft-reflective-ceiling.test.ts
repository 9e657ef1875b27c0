import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readBy } from '../../../src/base/schema/element.js';
import {
  openingPeriod,
  reflectiveCeiling,
  softReflectiveCeilingPlugin,
} from '../../../src/gate/ceilings/soft-reflective-ceiling.js';
import { concurrencyDetector, softReflectiveCeiling, type UsageLimitPolicy } from '../../../src/index.js';
import { dial, key, makeFlow, request, turns } from '../../support/flow.js';

function look(policy: UsageLimitPolicy, saturation: number, priorities: readonly number[] = [100, 0]): number[] {
  const found = priorities.map(() => 1);
  policy.computeLimits(saturation, priorities, found);
  return found;
}

/** One look and one release after it, `count` times: the lowest ceilings. */
function rhythm(policy: UsageLimitPolicy, saturation: number, count: number): number[] {
  return Array.from({ length: count }, () => {
    const lowest = look(policy, saturation).at(-1) ?? Number.NaN;
    policy.dispatched?.(100);
    return lowest;
  });
}

describe('softReflectiveCeiling', () => {
  it('opens gated bands for one release in every period', () => {
    expect(openingPeriod(0.75)).toBe(3);
    expect(rhythm(softReflectiveCeiling(), 0.75, 9)).toEqual([0, 0, 1, 0, 0, 1, 0, 0, 1]);
    expect(rhythm(softReflectiveCeiling(), 0.5, 3)).toEqual([1, 1, 1]);
    expect(rhythm(softReflectiveCeiling(), 1, 3)).toEqual([0, 0, 0]);
  });

  it('counts only releases at which the lowest band could be gated', () => {
    const afterwards = (saturation: number | undefined, priorities?: readonly number[]): number[] => {
      const policy = softReflectiveCeiling();
      if (saturation !== undefined) look(policy, saturation, priorities);
      for (let i = 0; i < 2; i++) policy.dispatched?.(100);
      return rhythm(policy, 0.75, 3);
    };
    expect(afterwards(0.75)).toEqual([1, 0, 0]);
    expect([undefined, 0.3, 1].map((saturation) => afterwards(saturation))).toEqual(Array(3).fill([0, 0, 1]));
    expect([[], [100]].map((alone) => afterwards(0.75, alone))).toEqual(Array(2).fill([0, 0, 1]));
  });

  it('gates a band from its ceiling up, which is the mirror image of the saturation by its rank', () => {
    expect([0, 1, 2].map((rank) => reflectiveCeiling(rank, 0.6, 3))).toEqual([1, 0.7, 0.4]);
    expect(reflectiveCeiling(0, 0.6, 1)).toBe(1);
    // The second of four has its ceiling at 0.75.
    expect(look(softReflectiveCeiling(), 0.74, [3, 2, 1, 0])).toEqual([1, 1, 0, 0]);
    expect(look(softReflectiveCeiling(), 0.75, [3, 2, 1, 0])).toEqual([1, 0, 0, 0]);
  });

  it('opens ever more rarely as the pool fills up, and has a period at every saturation below 1', () => {
    expect([0, 0.4, 0.5, 0.8, 0.9].map(openingPeriod)).toEqual([1, 1, 1, 4, 9]);
    expect(openingPeriod(1 - 1e-6)).toBe(999_000);
    expect(openingPeriod(1 - Number.EPSILON / 2)).toBeGreaterThan(9e8);
  });

  it('finds the same at every look between two releases', () => {
    const policy = softReflectiveCeiling();
    for (const expected of [0, 0, 1, 0, 0, 1]) {
      expect([look(policy, 0.75), look(policy, 0.75), look(policy, 0.75)]).toEqual([1, 2, 3].map(() => [1, expected]));
      policy.dispatched?.(100);
    }
  });

  it('opens after one fruitless period of looks, for one release', () => {
    const policy = softReflectiveCeiling();
    expect([1, 2, 3, 4, 5].map(() => look(policy, 0.75)[1])).toEqual([0, 0, 0, 1, 1]);
    policy.dispatched?.(0);
    expect(look(policy, 0.75)).toEqual([1, 0]);
  });

  it('never opens gated bands of a full pool, however often it is looked at', () => {
    const policy = softReflectiveCeiling();
    for (let i = 0; i < 50; i++) expect(look(policy, 1.2)).toEqual([1, 0]);
  });

  it('never rises as priority falls, never gates the highest band, and writes nothing else', () => {
    const step = fc.record({
      saturation: fc.double({ min: 0, max: 2, noNaN: true }),
      bands: fc.integer({ min: 0, max: 6 }),
      isReleased: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const policy = softReflectiveCeiling();
        for (const { saturation, bands, isReleased } of steps) {
          const found = look(
            policy,
            saturation,
            Array.from({ length: bands }, (_, rank) => -rank),
          );
          expect(found).toHaveLength(bands);
          if (bands > 0) expect(found[0]).toBe(1);
          expect([...found].sort((a, b) => b - a)).toEqual(found);
          if (isReleased) policy.dispatched?.(0);
        }
      }),
    );
  });

  it.each([
    ['is silent', false],
    ['announces its changes', true],
  ])(
    'does not strand a gated band that waits alone while a saturation below 1 stands still: its detector %s',
    async (_, announces) => {
      const { flow, clock } = makeFlow({
        saturationDetector: dial(0.75, announces),
        usageLimitPolicy: softReflectiveCeiling(),
        bands: [{ priority: 100 }, { priority: 0 }],
      });
      let done = 0;
      for (let i = 0; i < 10; i++) void flow.enqueue(request, key('a', 0)).then(() => done++);
      await turns();
      expect(done).toBeLessThan(10);
      clock.advance(10_000);
      await turns();
      expect(done).toBe(10);
      await flow.close();
    },
  );

  it('progresses on releases alone, without a timer, where the controller counts what is in flight', async () => {
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 4 }),
      usageLimitPolicy: softReflectiveCeiling(),
      bands: [{ priority: 100 }, { priority: 0 }],
    });
    let done = 0;
    for (let i = 0; i < 25; i++) {
      void flow.enqueue(request, key('a', 0)).then((outcome) => {
        done++;
        if (outcome.type === 'Dispatched') outcome.lease.release();
      });
    }
    await turns(200);
    expect(done).toBe(25);
    await flow.close();
  });

  /** docs/policies/soft-reflective-ceiling-policy.md */
  it('gives the lower of two bands a quarter of the releases at a saturation of 0.8', () => {
    const { flow } = makeFlow({
      saturationDetector: dial(0.8),
      usageLimitPolicy: softReflectiveCeiling(),
      bands: [{ priority: 100 }, { priority: 0 }],
    });
    const order: string[] = [];
    while (order.length < 12) {
      if (flow.tryEnqueue(request, key('batch', 0)) !== undefined) order.push('batch');
      else if (flow.tryEnqueue(request, key('chat', 100)) !== undefined) order.push('chat');
    }
    expect(order.join(' ')).toBe('chat chat chat batch chat chat chat batch chat chat chat batch');
  });
});

describe('the parameters of softReflectiveCeiling', () => {
  function reportsOf(parameters: unknown): [expected: string, path: readonly PropertyKey[]][] {
    const reports: [string, readonly PropertyKey[]][] = [];
    readBy(
      softReflectiveCeilingPlugin.parameters,
      parameters,
      (expected, path = []) => void reports.push([expected, path]),
    );
    return reports;
  }

  it('are an object without keys, and nothing else', () => {
    expect(reportsOf({})).toEqual([]);
    for (const wrong of [undefined, null, [], ['x'], 'x', () => {}])
      expect(reportsOf(wrong)).toEqual([['an object without keys', []]]);
  });

  it('are rejected key by key', () => {
    expect(reportsOf({ threshold: 1, period: 2 })).toEqual(
      ['threshold', 'period'].map((name) => ['nothing: soft-reflective-ceiling-policy takes no parameters', [name]]),
    );
  });
});
