/** A guard for tests: a pick that would go on for ever fails instead. */
import { vi } from 'vitest';
import { ShareHeap } from '../../../../src/tiers/2-fairness/by-cost/share-heap.js';

/**
 * From now on a pick that looks for whoever comes next more than `most` times throws. Call `reset` before each pick,
 * and `vi.restoreAllMocks()` at the end.
 */
export function watchRounds(most = 16): { reset: () => void } {
  const { get } = Object.getOwnPropertyDescriptor(ShareHeap.prototype, 'firstKey') as { get(): number };
  let looks = 0;
  // Each look asks for the first of those that sit out.
  vi.spyOn(ShareHeap.prototype, 'firstKey', 'get').mockImplementation(function (this: ShareHeap<{ slot: number }>) {
    if (++looks > most) throw new Error(`a pick takes more than ${most} looks`);
    return get.call(this);
  });
  return {
    reset: () => {
      looks = 0;
    },
  };
}
