/** The token bucket against GCRA with costs, debts and refunds. */
import { expect, it } from 'vitest';
import { tokenBucket } from '../../../src/index.js';

interface Gcra {
  readonly rate: number;
  readonly burst: number;
  readonly rows: readonly (readonly [
    tMs: number,
    op: readonly ['take' | 'settle', number],
    allowed: 0 | 1 | null,
    after: number,
    retryAfterMs: number,
  ])[];
}

type Admit = ReturnType<typeof tokenBucket>['admit'];
type View = Parameters<Admit>[2];

export function gcra({ rate, burst, rows }: Gcra): void {
  it('admits, refuses and settles as the rows say', () => {
    const bucket = tokenBucket<{ tokens: number }>({
      capacity: burst,
      refillPerSecond: rate,
      settle: true,
      oversized: 'borrow',
    });
    const key = { fairnessId: 'a', priority: 0 };
    const viewAt = (nowMs: number): View => ({ nowMs }) as View;
    const found = rows.map(([nowMs, [op, amount], allowed]) => {
      if (op === 'settle') {
        // A booking of nothing brings the bucket up to date; then the request turns out to have cost more, or less.
        bucket.admit({ tokens: 0 }, key, viewAt(nowMs));
        const usage = { promptTokens: Math.max(amount, 0), completionTokens: 0 };
        if (amount > 0) bucket.released?.({ tokens: 0 }, key, usage);
        else bucket.released?.({ tokens: -amount }, key, undefined);
        return [allowed, bucket.tokens, 0];
      }
      const answer = bucket.admit({ tokens: amount }, key, viewAt(nowMs));
      const refusal = answer === 'admit' ? undefined : (answer as { retryAfterMs?: number });
      return [refusal === undefined ? 1 : 0, bucket.tokens, refusal?.retryAfterMs ?? 0];
    });
    for (const [i, [, , allowed, after, retryAfterMs]] of rows.entries()) {
      const [was, tokens, retry] = found[i] as [number | null, number, number];
      expect(was).toBe(allowed);
      expect(tokens).toBeCloseTo(after, 6);
      expect(retry).toBe(Math.ceil(retryAfterMs));
    }
  });
}
