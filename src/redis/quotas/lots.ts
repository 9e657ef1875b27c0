/**
 * The part of one quota that a replica has bought and not used: lots, the oldest first.
 *
 * Invariant: `balance` is the sum of the lots; each unit was bought once, and is drawn or given back once.
 */
import type { OwnPart, OwnTaking } from './own-part.js';

/** Units that were bought together. */
export class Lot {
  amount: number;
  /** The bucket of the engine that sold it; empty for units that are not paid for yet. */
  epoch: string;
  /** Its end on the scale of all that the bucket ever sold. */
  end: string;
  /** The own part that sold it while the engine was away, and its sale. */
  readonly own: { readonly part: OwnPart; readonly taking: OwnTaking } | undefined;

  constructor(amount: number, epoch: string, end: string, own?: Lot['own']) {
    this.amount = amount;
    this.epoch = epoch;
    this.end = end;
    this.own = own;
  }

  /** The engine has been told of it. */
  paid(epoch: string, end: string): void {
    this.epoch = epoch;
    this.end = end;
  }
}

/** Less than this is a sum of rounding errors. */
export const dust = 1e-9;

export class Lots {
  balance = 0;
  private readonly lots: Lot[] = [];

  add(lot: Lot): void {
    if (!(lot.amount > 0)) return;
    this.lots.push(lot);
    this.balance += lot.amount;
  }

  /**
   * Draws up to `amount`, from the oldest lots first, and tells of each part. The amount that there was not. Amortized
   * O(1).
   */
  draw(amount: number, drawn: (lot: Lot, part: number) => void): number {
    let left = amount;
    while (left > 0 && this.lots.length > 0) {
      const lot = this.lots[0] as Lot;
      const part = Math.min(lot.amount, left);
      lot.amount -= part;
      left -= part;
      if (lot.amount <= 0) this.lots.shift();
      drawn(lot, part);
    }
    this.balance = this.lots.length === 0 ? 0 : Math.max(0, this.balance - (amount - left));
    return left;
  }
}

/** Units that are to be given back, by the lots that they came from. */
export class Returns {
  private byLot = new Map<Lot, number>();

  get size(): number {
    return this.byLot.size;
  }

  /** The engine takes back what it sold, and this process what it sold itself. */
  add(lot: Lot, amount: number, nowMs: number): void {
    if (lot.own !== undefined) lot.own.part.takeBack(lot.own.taking, amount, nowMs);
    if (lot.own !== undefined || lot.epoch === '' || amount === 0) return;
    this.byLot.set(lot, (this.byLot.get(lot) ?? 0) + amount);
    // The oldest has leaked most, and is worth least.
    if (this.byLot.size > mostReturns) for (const oldest of this.byLot.keys()) return void this.byLot.delete(oldest);
  }

  /** All of them, as arguments of the script; there are none afterwards. */
  drain(): readonly (readonly [lot: Lot, amount: number])[] {
    const all = [...this.byLot];
    this.byLot = new Map();
    return all;
  }
}

/** Lots of which something is to be given back at a time. */
const mostReturns = 256;
