/** A replica's part of a bucket without the store. Invariant: it begins with that part of what was used. */
import { GcraWindow } from '../../base/gcra-window.js';
import type { Taking } from '../../base/quota-window.js';
import type { BucketTerms } from './bucket-store.js';

export class FallbackShare extends GcraWindow {
  private readonly part: number;

  /** `part` of the limit, 0…1, or Infinity for no limit; `used` is what all replicas had used. */
  constructor({ limit, perMs, burst }: BucketTerms, part: number, used: number, nowMs: number) {
    super(limit * part, perMs, burst * part);
    this.part = part;
    if (part < Infinity) this.take(used * part, nowMs);
  }

  sell(most: number, nowMs: number): Taking | undefined {
    const amount = Math.min(most, this.burst - this.used(nowMs));
    return amount > 0 ? this.take(amount, nowMs) : undefined;
  }

  /** A share of nothing is to be asked again later. */
  override roomAtMs(amount: number, nowMs: number): number {
    return this.part === 0 ? nowMs + 1_000 : super.roomAtMs(amount, nowMs);
  }

  /** The amount that all replicas have used, if each took as much as this one. */
  usedByAll(nowMs: number): number {
    return this.part === 0 ? 0 : this.used(nowMs) / this.part;
  }
}
