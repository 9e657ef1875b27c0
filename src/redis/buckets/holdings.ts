/** What a replica holds of a bucket: batches, returns, debt. Invariant: `balance` sums them; a unit counts once. */
import type { Taking } from '../../base/quota-window.js';
import type { Sale, SoldPart } from './bucket-store.js';
import type { FallbackShare } from './fallback-share.js';

const mostReturns = 256;

/** Units that were bought together. */
interface Batch {
  amount: number;
  /** The bucket of the store that sold it; empty for units that are not paid for yet. */
  epoch: string;
  /** Its end on the scale of all that the bucket ever sold. */
  end: string;
  /** The fallback share that sold it while the store was away, and what it took for that. */
  readonly fallback: { readonly share: FallbackShare; readonly taking: Taking } | undefined;
}

const unpaid = (amount: number, fallback?: Batch['fallback']): Batch => ({ amount, epoch: '', end: '', fallback });

/** What a running request took, in the order of drawing: the last part has leaked least. */
export type HeldTaking = { amount: number; readonly parts: { readonly batch: Batch; amount: number }[] };

export class Holdings {
  balance = 0;
  /** Units that were taken before they were bought. */
  debt: number;
  private readonly batches: Batch[] = [];
  /** By epoch and end of the batches that they came from. */
  private returns = new Map<string, SoldPart>();
  /** Units for a request that is larger than a chunk. They are bought, and their turn has not come. */
  private reserved: Batch | undefined = undefined;
  /** What the debt has bought; and what a call that has no answer yet pays for. */
  private owed: Batch;
  private charged: Batch | undefined = undefined;

  /** `credit`: units that are used before they are paid for. */
  constructor(credit: number) {
    this.debt = credit;
    this.owed = unpaid(credit);
    this.add(this.owed);
  }

  get hasReturns(): boolean {
    return this.returns.size > 0;
  }

  get reservedAmount(): number {
    return this.reserved?.amount ?? 0;
  }

  get reservedEnd(): number | undefined {
    return this.reserved?.epoch ? Number(this.reserved.end) : undefined;
  }

  /** Takes a place in the bucket, behind all that was taken before. */
  reserve(amount: number): void {
    this.debt += amount;
    this.reserved = unpaid(amount);
  }

  /** The turn of what is reserved has come. */
  redeem(): void {
    if (this.reserved !== undefined) this.add(this.reserved);
    this.reserved = undefined;
  }

  /** What is reserved was not bought, or the store has lost it. Returns the amount. */
  dropReserved(): number {
    const { reservedAmount } = this;
    this.reserved = undefined;
    return reservedAmount;
  }

  bought({ epoch, end, sold }: Sale): void {
    const paid = { epoch, end: String(Number(end) - sold) };
    if (this.charged !== undefined) Object.assign(this.charged, paid);
    this.charged = undefined;
    if (this.reserved?.epoch === '') Object.assign(this.reserved, paid);
    this.add({ amount: sold, epoch, end, fallback: undefined });
  }

  /** The store is away, and this replica's share sold. What was owed is not given back. */
  boughtHere(share: FallbackShare, taking: Taking | undefined): void {
    this.charged = undefined;
    if (taking !== undefined) this.add(unpaid(taking.amount, { share, taking }));
  }

  /** Draws from the oldest batches first; up to `slack` may be missing, and more is debt. Amortized O(1). */
  take(amount: number, slack: number): HeldTaking {
    const parts: { batch: Batch; amount: number }[] = [];
    const missing = this.draw(amount, (batch, part) => parts.push({ batch, amount: part }));
    if (missing > slack) {
      this.debt += missing;
      parts.push({ batch: this.owed, amount: missing });
    }
    return { amount, parts };
  }

  /** Makes `taking` count for `amount`: what is too much is to be given back, and what is missing is taken. */
  settle(taking: HeldTaking, amount: number, slack: number, nowMs: number): void {
    let excess = taking.amount - amount;
    taking.amount = amount;
    if (excess < 0) taking.parts.push(...this.take(-excess, slack).parts);
    for (let i = taking.parts.length - 1; i >= 0 && excess > 0; i--) {
      const part = taking.parts[i] as HeldTaking['parts'][number];
      const back = Math.min(part.amount, excess);
      part.amount -= back;
      excess -= back;
      this.giveBack(part.batch, back, nowMs);
    }
  }

  shrink(most: number, nowMs: number): void {
    this.draw(this.balance - most, (batch, part) => this.giveBack(batch, part, nowMs));
  }

  /** What exceeds `most` is worth nothing. */
  lose(most: number): void {
    this.draw(this.balance - most, () => {});
  }

  /** What the store is to be told with the next call. */
  takeOwed(): { readonly charge: number; readonly back: readonly SoldPart[] } {
    const owed = { charge: this.debt, back: [...this.returns.values()] };
    this.debt = 0;
    this.returns = new Map();
    this.charged = this.owed;
    this.owed = unpaid(0);
    return owed;
  }

  toReturn(parts: readonly SoldPart[]): void {
    for (const { epoch, end, amount } of parts) {
      if (!(amount > 0)) continue;
      const key = `${epoch} ${end}`;
      this.returns.set(key, { epoch, end, amount: (this.returns.get(key)?.amount ?? 0) + amount });
      // The oldest has leaked most, and is worth least.
      if (this.returns.size > mostReturns)
        for (const oldest of this.returns.keys()) return void this.returns.delete(oldest);
    }
  }

  /** The store takes back what it sold, and this process what it sold itself. What is still owed is owed no more. */
  private giveBack(batch: Batch, amount: number, nowMs: number): void {
    const { fallback, epoch, end } = batch;
    if (batch === this.owed) this.debt = Math.max(0, this.debt - amount);
    else if (fallback !== undefined)
      fallback.share.settle(fallback.taking, Math.max(0, fallback.taking.amount - amount), nowMs);
    else if (epoch !== '') this.toReturn([{ epoch, end, amount }]);
  }

  private add(batch: Batch): void {
    if (!(batch.amount > 0)) return;
    this.batches.push(batch);
    this.balance += batch.amount;
  }

  /** Calls `drawn` for each part. Returns the amount that is missing. */
  private draw(amount: number, drawn: (batch: Batch, part: number) => void): number {
    let left = amount;
    while (left > 0 && this.batches.length > 0) {
      const batch = this.batches[0] as Batch;
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
