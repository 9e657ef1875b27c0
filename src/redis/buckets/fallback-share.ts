/** A replica's part of a bucket without the store. Invariant: it begins with that part of what was used. */
import { GcraWindow } from '../../base/gcra-window.js';
import type { BucketTerms } from './bucket-store.js';

export type FallbackTaking = { amount: number };

export class FallbackShare {
  private readonly part: number;
  private readonly window: GcraWindow | undefined;

  /** `part` of the limit, 0…1, or Infinity for no limit; `used` is what all replicas had used. */
  constructor({ limit, perMs, burst }: BucketTerms, part: number, used: number, nowMs: number) {
    this.part = part;
    this.window = part === Infinity ? undefined : new GcraWindow(limit * part, perMs, burst * part);
    if (used * part > 0) this.window?.take(used * part, nowMs);
  }

  sell(most: number, nowMs: number): FallbackTaking | undefined {
    const { window } = this;
    const amount = window === undefined ? most : Math.min(most, window.burst - window.used(nowMs));
    return amount > 0 ? this.take(amount, nowMs) : undefined;
  }

  /** Takes whether there is room or not. */
  take(amount: number, nowMs: number): FallbackTaking {
    return this.window?.take(amount, nowMs) ?? { amount };
  }

  takeBack(taking: FallbackTaking, amount: number, nowMs: number): void {
    const left = Math.max(0, taking.amount - amount);
    if (this.window === undefined) taking.amount = left;
    else this.window.settle(taking, left, nowMs);
  }

  /** When `amount` fits, if nothing else is taken. A share of nothing is to be asked again later. */
  roomAtMs(amount: number, nowMs: number): number {
    if (this.part === 0) return nowMs + 1_000;
    return this.window?.roomAtMs(amount, nowMs) ?? nowMs;
  }

  /** The amount that all replicas have used, if each took as much as this one. */
  usedByAll(nowMs: number): number {
    return this.window === undefined || this.part === 0 ? 0 : this.window.used(nowMs) / this.part;
  }
}
