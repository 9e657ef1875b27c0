/**
 * Histories of real replicas on real stores are linearizable: there is one order of their calls in which each grant is
 * what `checker/model.go` allows. The checker is porcupine. Source: Wing and Gong, "Testing and Verifying Concurrent
 * Objects" (1993); Lowe, "Testing for Linearizability" (2017).
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withoutStepFive } from '../support/control.js';
import { storeKinds } from '../support/stores.js';
import { buildChecker, type Checker, hasGo } from './checker.js';
import type { LeaseCall } from './lease-call.js';
import type { RecordedCall } from './recorded-store.js';
import { type Play, play } from './world.js';

const plays: readonly (readonly [string, Play])[] = [
  ['calls are late, lost and repeated', { seed: 1, calls: 350 }],
  ['the store is flushed', { seed: 2, calls: 350, store: 'flushed' }],
  ['the store is killed and comes back empty', { seed: 3, calls: 350, store: 'killed' }],
];

/** The wall clock, by which stores go, beside the one of the histories, ms. */
const clockGap = (): number => Date.now() - performance.now();

describe.runIf(hasGo && storeKinds.length > 0)('a history of leases', () => {
  let checker: Checker;
  beforeAll(async () => {
    checker = await buildChecker();
  });
  afterAll(() => checker?.close());

  for (const kind of storeKinds) {
    it.concurrent.each(plays)(`on ${kind.name} is linearizable while %s`, async (_name, plan) => {
      for (let plays = 1; ; plays++) {
        const gap = clockGap();
        const { history, dispatched } = await play(kind, plan);
        const verdict = await checker.check(history);
        // A wall clock that was set meanwhile puts the instants of the store outside of its calls.
        if (verdict.result !== 'Ok' && Math.abs(clockGap() - gap) > 2 && plays < 3) continue;
        expect(verdict).toEqual({ result: 'Ok', calls: history.calls.length });
        expect(dispatched).toBeGreaterThan(30);
        return;
      }
    });
  }

  // A store is flushed while the first of two replicas holds 12 of 16; the second has all of them after it.
  it.each([
    ['is', 'nobody that calls', 0, 'Ok'],
    ['is not', 'the one that calls', 1, 'Illegal'],
  ] as const)('%s linearizable if %s remembers what the store has lost', async (_is, _who, remembers, result) => {
    const call = (
      replica: number,
      atMs: number,
      told: Partial<LeaseCall>,
      grant: number,
      epoch: number,
    ): RecordedCall => {
      const spans = { leaseUs: 200_000, drainUs: 300_000, forgetUs: 900_000, callUs: atMs * 1_000 };
      const figures = { cap: 0, inFlight: 0, safeShare: 0, limit: 16, isLeaving: false, remembers: 0 };
      const answer = { grant, safeShare: 0, epoch };
      return {
        ...figures,
        ...spans,
        sequence: atMs,
        ...told,
        replica,
        name: `${replica}`,
        returnUs: atMs * 1_000 + 900,
        answer,
      };
    };
    const calls = [call(0, 10, {}, 12, 1), call(1, 60, { remembers }, 0, 50), call(1, 90, { remembers: 50 }, 16, 50)];
    expect((await checker.check({ replicas: 2, losesState: true, calls })).result).toBe(result);
  });

  it.concurrent('is not linearizable by the control, which does not hold the cap that a replica goes on with', async () => {
    const { history } = await play(storeKinds[0]!, { seed: 1, calls: 250, edit: withoutStepFive });
    expect((await checker.check(history)).result).toBe('Illegal');
  });
});
