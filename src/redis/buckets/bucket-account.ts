/** What is known of a bucket of the store: the level that it told last, which leaks, and the level it must be told. */
import type { BucketTerms, Sale } from './bucket-store.js';

export class BucketAccount {
  /** The store must raise its level to at least this. */
  leastLevel = 0;
  private readonly terms: BucketTerms;
  private level = 0;
  private end = 0;
  private atMs: number;
  private epoch = '';

  /** `terms` may change. */
  constructor(terms: BucketTerms, nowMs: number) {
    this.terms = terms;
    this.atMs = nowMs;
  }

  levelAt(nowMs: number): number {
    return Math.max(0, this.level - ((nowMs - this.atMs) * this.terms.limit) / this.terms.perMs);
  }

  /** The provider, which counts for all, knows a higher level. */
  raise(level: number, nowMs: number): void {
    this.level = Math.max(this.levelAt(nowMs), level);
    this.atMs = nowMs;
    this.leastLevel = Math.max(this.leastLevel, level);
  }

  /** `toldLevel`: the least level of the call that is answered. Returns whether the store lost the bucket before. */
  answered({ epoch, end, level }: Sale, toldLevel: number, nowMs: number): boolean {
    const expected = this.levelAt(nowMs);
    const isNew = epoch !== this.epoch && this.epoch !== '';
    this.epoch = epoch;
    this.level = level;
    this.end = Number(end);
    this.atMs = nowMs;
    if (this.leastLevel <= toldLevel) this.leastLevel = 0;
    // The store lost the bucket before all of it had leaked: the level that is known here is restored.
    if (isNew && expected > level) this.leastLevel = Math.max(this.leastLevel, expected);
    return isNew;
  }

  /** The amount that must leak until what ended at `end` when it was sold is within `most`; others may give back. */
  beyond(end: number, most: number, nowMs: number): number {
    return this.levelAt(nowMs) - (this.end - end) - most;
  }

  /** The ms that it takes until there is room, of which `missing` is missing now. */
  leakMs(missing: number): number {
    return (missing * this.terms.perMs) / this.terms.limit;
  }
}
