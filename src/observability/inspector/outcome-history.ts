/**
 * Outcomes over the last minutes, from totals that are read now and then.
 *
 *     null │ null │ [12, 0, 1] │ [9, 3, 0] │ [4, 0, 0] ← current        dispatched, rejected, evicted in each span of bucketMs
 *
 * Invariant: what happened while nobody looked is unknown: null, and not a heap on the first bucket afterwards.
 */
import type { FlowStats } from '../../index.js';

export type OutcomeBucket = readonly [dispatched: number, rejected: number, evicted: number] | null;

type Totals = Pick<FlowStats, 'dispatched' | 'rejected' | 'evicted'>;

export class OutcomeHistory {
  readonly bucketMs: number;
  private readonly length: number;
  /** By number of the span since time 0. */
  private readonly spans = new Map<number, readonly [number, number, number]>();
  private last: Totals | undefined = undefined;
  private lastSpan = 0;

  constructor(bucketMs: number, length: number) {
    this.bucketMs = bucketMs;
    this.length = length;
  }

  note({ dispatched, rejected, evicted }: Totals, nowMs: number): void {
    const span = Math.floor(nowMs / this.bucketMs);
    const { last } = this;
    // What came since the last look belongs to this span or to the one before: near enough.
    if (last !== undefined && span - this.lastSpan <= 1) {
      const [a, b, c] = this.spans.get(span) ?? [0, 0, 0];
      this.spans.set(span, [a + dispatched - last.dispatched, b + rejected - last.rejected, c + evicted - last.evicted]);
    }
    this.last = { dispatched, rejected, evicted };
    this.lastSpan = span;
    for (const old of this.spans.keys()) {
      if (old > span - this.length) break;
      this.spans.delete(old);
    }
  }

  /** Oldest first, the current one last. */
  buckets(nowMs: number): OutcomeBucket[] {
    const current = Math.floor(nowMs / this.bucketMs);
    return Array.from({ length: this.length }, (_, index) => this.spans.get(current - this.length + 1 + index) ?? null);
  }
}
