import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../../src/config/index.js';
import type { HysteresisOptions } from '../../../../src/gate/detectors/composite/hysteresis.js';
import {
  concurrencyDetector,
  type EndpointView,
  FlowConfigError,
  maxOf,
  type SaturationDetector,
  utilizationDetector,
  withHysteresis,
} from '../../../../src/index.js';
import { announces, constraintsIn, listenersIn } from '../../../support/constraints.js';
import { fakeItem } from '../../../support/fake-item.js';
import { fakePool } from '../../../support/fake-pool.js';
import { fakeSeat } from '../../../support/fake-seat.js';
import { dial, key, leaseOf, makeFlow, request, runNow, turns } from '../../../support/flow.js';

const pool = fakePool([[0, 0]]);

/** What it reads when the detector inside reads these, one each `everyMs`. */
function readingsOf(options: HysteresisOptions, readings: readonly number[], everyMs = 100): number[] {
  const inner = dial(0);
  const detector = withHysteresis(inner, options);
  return readings.map((reading, i) => {
    inner.value = reading;
    return detector.saturation(pool, i * everyMs);
  });
}

const reading = fc.double({ min: 0, max: 2, noNaN: true });

describe('withHysteresis', () => {
  it('is full from 1 up, and free from 0.9 down', () => {
    expect(readingsOf({}, [0.95, 1, 0.95, 0.91, 0.9, 0.95, 1.3])).toEqual([0.95, 1, 1, 1, 0.9, 0.95, 1.3]);
  });

  it('has levels of its own, and reads 1 at the upper one', () => {
    expect(readingsOf({ closeAt: 2 }, [2, 1.81, 1.8])).toEqual([1, 1, 0.9]);
    expect(readingsOf({ closeAt: 2, openAt: 1 }, [1, 1.8, 3, 1.5, 1])).toEqual([0.5, 0.9, 1.5, 1, 0.5]);
  });

  it('stays full while it reads its one level, where both levels are the same', () => {
    expect(readingsOf({ closeAt: 1, openAt: 1 }, [1, 1, 1, 0.9, 1, 1])).toEqual([1, 1, 1, 0.9, 1, 1]);
  });

  it('stays what it is for minDwellMs', () => {
    const free = 1 - Number.EPSILON / 2;
    // It closes at 0, may open from 250 on, and close again from 550 on.
    expect(readingsOf({ minDwellMs: 250 }, [1, 0, 0, 0, 1.5, 1.5, 1.5])).toEqual([1, 1, 1, 0, free, free, 1.5]);
  });

  it('flips at most T / minDwellMs + 1 times', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(reading, fc.nat(300)), { maxLength: 200 }),
        fc.integer({ min: 1, max: 1000 }),
        (steps, minDwellMs) => {
          const inner = dial(0);
          const detector = withHysteresis(inner, { minDwellMs });
          let nowMs = 0;
          for (const [value, elapsedMs] of steps) {
            nowMs += elapsedMs;
            inner.value = value;
            detector.saturation(pool, nowMs);
            expect(detector.flips).toBeLessThanOrEqual(nowMs / minDwellMs + 1);
          }
        },
      ),
    );
  });

  it('never flips again while the reading stays between the levels', () => {
    const between = fc.double({ min: 0.9, max: 1, minExcluded: true, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.constantFrom(0, 1), fc.array(between), (first, readings) => {
        const inner = dial(first);
        const detector = withHysteresis(inner);
        detector.saturation(pool, 0);
        for (const [i, value] of readings.entries()) {
          inner.value = value;
          expect(detector.saturation(pool, i) >= 1).toBe(first === 1);
        }
        expect(detector.flips).toBe(first);
      }),
    );
  });

  it('reads full exactly while it is closed, and never less for more', () => {
    fc.assert(
      fc.property(fc.array(reading), reading, reading, fc.nat(1000), (history, a, b, minDwellMs) => {
        const detectors = [Math.min(a, b), Math.max(a, b)].map((last) => {
          const inner = dial(0);
          const detector = withHysteresis(inner, { minDwellMs });
          const all = [...history, last].map((value, i) => {
            inner.value = value;
            const answer = detector.saturation(pool, i * 100);
            expect(answer >= 1).toBe(detector.isClosed);
            return answer;
          });
          return all.at(-1) as number;
        });
        expect(detectors[1]).toBeGreaterThanOrEqual(detectors[0] as number);
      }),
    );
  });

  it('passes on what is no reading, and keeps its mind', () => {
    expect(readingsOf({}, [1, Number.NaN, 0.95])).toEqual([1, Number.NaN, 1]);
    expect(readingsOf({}, [0.95, Number.POSITIVE_INFINITY, 0.95])).toEqual([0.95, Number.POSITIVE_INFINITY, 0.95]);
  });

  it('looks again by a timer only while it would be free and may not say so', async () => {
    const detector = withHysteresis(concurrencyDetector({ maxConcurrency: 1 }), { minDwellMs: 1000 });
    const { flow, clock } = makeFlow({ saturationDetector: detector });
    const running = runNow(flow);
    const waits = flow.enqueue(request, key());
    expect(detector.isClosed).toBe(true);
    clock.advance(400);
    expect([detector.isGuessing, clock.pendingTimers]).toEqual([false, 1]); // for the TTL
    running.release();
    expect([detector.isGuessing, clock.pendingTimers]).toEqual([true, 2]);
    clock.advance(599);
    expect(flow.stats().waiting).toBe(1);
    clock.advance(10);
    expect(flow.stats().waiting).toBe(0);
    leaseOf(await waits).release();
    await turns();
    expect([detector.isGuessing, clock.pendingTimers]).toEqual([false, 0]);
  });

  it('is what the detector inside is, in all else', () => {
    const inner = concurrencyDetector({ maxConcurrency: 1 });
    const kept = withHysteresis(inner).filter?.(fakePool([[0, 0], [1, 0]]).endpoints, 0); // biome-ignore format: two endpoints
    expect(kept?.map(({ id }) => id)).toEqual(['e0']);
    expect(withHysteresis(inner).inner).toBe(inner);
    expect(withHysteresis(inner).needsPool).toBeUndefined();
    expect(withHysteresis(utilizationDetector()).needsPool).toBe(true);
    expect(announces(withHysteresis(dial(0)))).toBe(false);
    expect(withHysteresis(dial(0)).filter).toBeUndefined();
    const heard: string[] = [];
    const announcing: SaturationDetector = {
      ...dial(0, true),
      dispatched: ({ id }) => heard.push(`dispatched ${id}`),
      released: ({ id }) => heard.push(`released ${id}`),
    };
    const wrapped = withHysteresis(announcing);
    for (const endpoint of pool.endpoints) {
      listenersIn(wrapped).tell('dispatched', endpoint, 0, fakeSeat());
      listenersIn(wrapped).tell('released', endpoint, 0, fakeSeat());
    }
    expect(heard).toEqual(['dispatched e0', 'released e0']);
    expect(announces(maxOf(wrapped))).toBe(true);
  });

  it('guesses while the detector inside does', () => {
    expect([withHysteresis(dial(0)).isGuessing, withHysteresis({ ...dial(0), isGuessing: true }).isGuessing]).toEqual([
      false,
      true,
    ]);
  });

  it('is blind, has seats and judges single requests where the detector inside does', () => {
    const inner = {
      ...dial(0),
      blind: 'e0',
      isBlindTo({ id }: EndpointView) {
        return id === this.blind;
      },
      seatsOf({ id }: EndpointView) {
        return id === this.blind ? 3 : 4;
      },
      withRoomFor: () => [],
    };
    const [first, second] = fakePool([[0, 0], [0, 0]]).endpoints as [EndpointView, EndpointView]; // biome-ignore format: two endpoints
    const wrapped = withHysteresis(inner);
    const asked = [first, second].map((endpoint) => [wrapped.isBlindTo?.(endpoint, 0), wrapped.seatsOf?.(endpoint, 0)]);
    expect(asked).toEqual([
      [true, 3],
      [false, 4],
    ]);
    expect(constraintsIn([wrapped]).withRoomFor([first], fakeItem(), undefined, 0)).toEqual([]);
    const { isBlindTo, seatsOf } = withHysteresis(dial(0));
    expect([isBlindTo, seatsOf]).toEqual([undefined, undefined]);
  });

  it('is made of another one by name', () => {
    const { options } = loadConfig(`
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
featureGates: [flowControl]
plugins:
  - type: hysteresis-saturation-detector
    parameters: { detector: seats, openAt: 0.5, minDwellMs: 100 }
  - type: concurrency-detector
    name: seats
    parameters: { maxConcurrency: 4 }
flowControl:
  saturationDetector: { pluginRef: hysteresis-saturation-detector }
`);
    const detector = options.saturationDetector as SaturationDetector;
    expect(detector.saturation(fakePool([[4, 0]]), 0)).toBe(1);
    expect(detector.saturation(fakePool([[3, 0]]), 100)).toBe(1);
    expect(detector.saturation(fakePool([[2, 0]]), 200)).toBe(0.5);
  });

  it.each<[object, string]>([
    [{ closeAt: 0 }, 'closeAt'],
    [{ closeAt: 0.5, openAt: 0.6 }, 'openAt'],
    [{ openAt: -1 }, 'openAt'],
    [{ minDwellMs: Number.NaN }, 'minDwellMs'],
    [{ dwell: 5 }, 'dwell'],
  ])('refuses %o', (options, path) => {
    expect(() => withHysteresis(dial(0), options)).toThrow(
      expect.objectContaining({ issues: expect.arrayContaining([expect.objectContaining({ path })]) }),
    );
  });

  it('rejects what is no detector', () => {
    expect(() => withHysteresis({} as never)).toThrow(FlowConfigError);
    expect(() => withHysteresis(undefined as never)).toThrow(
      'withHysteresis: detector: expected a saturation detector; got nothing',
    );
    expect(() => withHysteresis(dial(0), { closeAt: 0 })).toThrow(/^withHysteresis: closeAt/);
  });
});
