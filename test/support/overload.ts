/** What happened at three times a quota, and the measures of it. Instants are those of a clock that the test moves. */
import { expect } from 'vitest';
import type { Drop } from '../../src/index.js';

export interface Sent {
  readonly atMs: number;
  readonly priority: number;
}

export interface Dropped {
  readonly drop: Drop;
  readonly cameAtMs: number;
  readonly atMs: number;
}

/**
 * How many dispatches later than at best the premium requests went: at best each has the first dispatch after it came
 * that no other one has. What goes at one instant goes together.
 */
export function dispatchesLate(sent: readonly Sent[], premiumCameAtMs: readonly number[]): number[] {
  const went = sent.filter(({ priority }) => priority === 100);
  let next = 0;
  return went.map(({ atMs }, rank) => {
    while ((sent[next] as Sent).atMs < (premiumCameAtMs[rank] as number)) next++;
    const bestAtMs = (sent[next++] as Sent).atMs;
    return sent.filter((each) => each.atMs > bestAtMs && each.atMs <= atMs).length;
  });
}

/** Nobody was dropped whose turn came within the time to live: it was over, or nothing at all went until then. */
export function expectNobodyDroppedInVain(
  { sent, dropped }: { readonly sent: readonly Sent[]; readonly dropped: readonly Dropped[] },
  ttlMs: number,
): void {
  for (const { drop, cameAtMs, atMs } of dropped) {
    if (drop.reason === 'over-quota')
      expect(sent.filter((each) => each.atMs > atMs && each.atMs <= cameAtMs + ttlMs)).toEqual([]);
    else expect([drop.reason, atMs - cameAtMs]).toEqual(['ttl-expired', ttlMs]);
  }
}
