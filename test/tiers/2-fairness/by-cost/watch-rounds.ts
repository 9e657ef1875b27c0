/** A guard for tests: a pick that would go on for ever fails instead. */
import { vi } from 'vitest';
import { DeficitRounds } from '../../../../src/tiers/2-fairness/by-cost/deficit-rounds.js';

/**
 * From now on a pick that looks for whoever comes next more than `most` times throws. Call `reset` before each pick,
 * and `vi.restoreAllMocks()` at the end.
 */
export function watchRounds(most = 16): { reset: () => void } {
  const rounds = DeficitRounds.prototype as unknown as { candidate: () => unknown };
  const { candidate } = rounds;
  let looks = 0;
  vi.spyOn(rounds, 'candidate').mockImplementation(function (this: typeof rounds) {
    if (++looks > most) throw new Error(`a pick takes more than ${most} looks`);
    return candidate.call(this);
  });
  return {
    reset: () => {
      looks = 0;
    },
  };
}
