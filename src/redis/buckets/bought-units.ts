/**
 * The part of one quota that a replica has bought and not used, batch by batch, the oldest first.
 *
 * Invariant: `balance` is the sum of the batches; each unit was bought once, and is drawn or given back once.
 */
import type { FallbackShare, FallbackTaking } from './fallback-share.js';

/** Units that were bought together. */
export class BoughtBatch {
  amount: number;
  /** The bucket of the store that sold it; empty for units that are not paid for yet. */
  epoch: string;
  /** Its end on the scale of all that the bucket ever sold. */
  end: string;
  /** The fallback share that sold it while the store was away, and what it took for that. */
  readonly fallback: { readonly share: FallbackShare; readonly taking: FallbackTaking } | undefined;

  constructor(amount: number, epoch: string, end: string, fallback?: BoughtBatch['fallback']) {
    this.amount = amount;
    this.epoch = epoch;
    this.end = end;
    this.fallback = fallback;
  }

  /** The store has been told of it. */
  paid(epoch: string, end: string): void {
    this.epoch = epoch;
    this.end = end;
  }
}

/** Less than this is a sum of rounding errors. */
export const roundingError = 1e-9;

export class BoughtUnits {
  balance = 0;
  private readonly batches: BoughtBatch[] = [];

  add(batch: BoughtBatch): void {
    if (!(batch.amount > 0)) return;
    this.batches.push(batch);
    this.balance += batch.amount;
  }

  /**
   * Draws up to `amount`, from the oldest batches first, and calls `drawn` for each part. Returns the amount that is
   * missing. Amortized O(1).
   */
  draw(amount: number, drawn: (batch: BoughtBatch, part: number) => void): number {
    let left = amount;
    while (left > 0 && this.batches.length > 0) {
      const batch = this.batches[0] as BoughtBatch;
      const part = Math.min(batch.amount, left);
      batch.amount -= part;
      left -= part;
      if (batch.amount <= 0) this.batches.shift();
      drawn(batch, part);
    }
    this.balance = this.batches.length === 0 ? 0 : Math.max(0, this.balance - (amount - left));
    return left;
  }
}

/** Units that are to be given back, by the batches that they came from. */
export class ReturnedUnits {
  private byBatch = new Map<BoughtBatch, number>();

  get size(): number {
    return this.byBatch.size;
  }

  /** The store takes back what it sold, and this process what it sold itself. */
  add(batch: BoughtBatch, amount: number, nowMs: number): void {
    if (batch.fallback !== undefined) batch.fallback.share.takeBack(batch.fallback.taking, amount, nowMs);
    if (batch.fallback !== undefined || batch.epoch === '' || amount === 0) return;
    this.byBatch.set(batch, (this.byBatch.get(batch) ?? 0) + amount);
    // The oldest has leaked most, and is worth least.
    if (this.byBatch.size > mostReturns)
      for (const oldest of this.byBatch.keys()) return void this.byBatch.delete(oldest);
  }

  /** All of them, as arguments of the script; there are none afterwards. */
  drain(): readonly (readonly [batch: BoughtBatch, amount: number])[] {
    const all = [...this.byBatch];
    this.byBatch = new Map();
    return all;
  }
}

/** The most batches of which something is to be given back at a time. */
const mostReturns = 256;
