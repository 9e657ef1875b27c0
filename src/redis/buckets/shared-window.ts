/**
 * A quota from which all replicas take. This replica buys units ahead, dispatches requests with them, and gives back
 * what they did not use.
 *
 *     store ── chunk ──► balance here ── a request takes ──► settled ── what is too much ──► store
 *
 * Invariant: no request asks the store; between two calls the balance is at most a chunk more than what waits here. A
 * quota keeps one call outstanding, and makes none while nothing is taken and nothing waits.
 *
 * Longer than most files, because the balance and the one call that changes it are one state.
 */

import { letProcessEnd } from '../../base/clock.js';
import type { QuotaTerms, QuotaWindow } from '../../index.js';
import { StoreError } from '../store/store-problem.js';
import { BoughtBatch, BoughtUnits, ReturnedUnits, roundingError } from './bought-units.js';
import type { QuotaSettings } from './bucket-options.js';
import { FallbackShare } from './fallback-share.js';

/** The answer of the script. */
export interface PurchaseAnswer {
  readonly epoch: string;
  readonly end: string;
  readonly sold: number;
  readonly level: number;
}

/** The arguments of the script. */
export interface Purchase {
  /** Units per µs. */
  readonly rate: number;
  readonly burst: number;
  readonly charge: number;
  readonly leastLevel: number;
  readonly least: number;
  readonly most: number;
  readonly back: readonly (readonly [batch: BoughtBatch, amount: number])[];
}

/** Sends a purchase. Rejects with a StoreError. `onLate` gets an answer that came after the time limit. */
export type SendPurchase = (
  key: string,
  purchase: Purchase,
  onLate: (sale: PurchaseAnswer) => void,
) => Promise<PurchaseAnswer>;

/** The part of a batch that a running request took. */
interface Part {
  readonly batch: BoughtBatch;
  amount: number;
}

class SharedTaking {
  amount: number;
  /** They are in the order of drawing: the last has leaked least. */
  readonly parts: readonly Part[];

  constructor(amount: number, parts: readonly Part[]) {
    this.amount = amount;
    this.parts = parts;
  }
}

/**
 * The weights of a request in the typical amount: if it is larger than that, and if it is smaller. Six of seven
 * requests are then smaller.
 */
const larger = 0.3;
const smaller = 0.05;
/** The part of a burst that may lie unused in all replicas together. */
const mostAhead = 0.25;
/** A replica that got less than it asked for asks again after this part of a refresh at the earliest. */
const pollPart = 0.1;
/** Demand that is not met doubles the purchase, up to this many chunks; the burst bounds it too. */
const mostChunks = 2 ** 20;
/** The problems of calls that were not sent. */
const unsent: readonly string[] = ['breaker-open', 'busy'];

export class SharedWindow implements QuotaWindow {
  readonly kind = 'gcra';
  readonly isShared = true;
  limit: number;
  burst: number;
  perMs: number;
  private readonly terms: QuotaTerms;
  private readonly settings: QuotaSettings;
  private readonly sendPurchase: SendPurchase;
  private readonly onRetired: () => void;
  private readonly pollMs: number;
  private readonly units = new BoughtUnits();
  private readonly returns = new ReturnedUnits();
  /** The first chunk, until it is paid for. */
  private credit: BoughtBatch | undefined;
  /** Units that were taken before they were bought; the store is told with the next call. */
  private debt = 0;
  /** The store must raise its level to at least this. */
  private leastLevel = 0;
  /** The level of the store's bucket when it last answered. */
  private level = 0;
  private levelAtMs: number;
  private epoch = '';
  /** The largest amount for which there was no room since the last answer. */
  private needed = 0;
  private chunks = 1;
  /** Most requests take no more than this. */
  private typical: number;
  private fallback: FallbackShare | undefined = undefined;
  private isCalling = false;
  private isQueued = false;
  /** Resolves when the last call is over; never rejects. */
  private sending: Promise<void> = Promise.resolve();
  private isRetired = false;
  private notBeforeMs: number = Number.NEGATIVE_INFINITY;
  private dueAtMs: number = Number.POSITIVE_INFINITY;
  private timer: unknown = undefined;

  /**
   * `hasCredit`: the first chunk is used before it is paid for, so that the first request need not wait; it is paid for
   * at once.
   */
  constructor(
    terms: QuotaTerms,
    settings: QuotaSettings,
    sendPurchase: SendPurchase,
    hasCredit: boolean,
    onRetired: () => void,
  ) {
    const { limit, burst, perMs } = terms;
    this.limit = limit;
    this.burst = burst;
    this.perMs = perMs;
    this.terms = terms;
    this.settings = settings;
    this.sendPurchase = sendPurchase;
    this.onRetired = onRetired;
    this.typical = Math.min(1, burst);
    this.pollMs = settings.refreshMs * pollPart;
    this.levelAtMs = settings.clock.now();
    this.credit = new BoughtBatch(hasCredit ? this.chunk() : 0, '', '');
    this.debt = this.credit.amount;
    this.units.add(this.credit);
    this.callIn(0);
  }

  get key(): string {
    return this.terms.key;
  }

  /** Bought, and not used. */
  get balance(): number {
    return this.units.balance;
  }

  /** True while this replica's fallback share is in force. */
  get isAway(): boolean {
    return this.fallback !== undefined;
  }

  used(nowMs: number): number {
    return Math.max(0, this.levelAt(nowMs) + this.debt - this.units.balance);
  }

  roomAtMs(amount: number, nowMs: number, returning?: number): number {
    const need = Math.min(amount, this.mostAtOnce());
    const missing = need - this.units.balance;
    if (missing <= this.burst * roundingError) return nowMs;
    if (this.fallback !== undefined) return Math.max(this.fallback.roomAtMs(missing, nowMs), nowMs + this.pollMs);
    // Others may give their chunks back.
    const hoped = returning === undefined ? 0 : returning + this.replicas() * this.chunk();
    const over = missing - hoped - Math.max(0, this.mostAtOnce() - this.levelAt(nowMs));
    const waitMs = Math.max(0, (over * this.perMs) / this.limit);
    return nowMs + (returning === undefined ? Math.max(waitMs, this.pollMs) : waitMs);
  }

  wants(amount: number): void {
    this.needed = Math.max(this.needed, Math.min(amount, this.mostAtOnce()));
    this.callIn(0);
  }

  take(amount: number): SharedTaking {
    this.typical += (amount - this.typical) * (amount > this.typical ? larger : smaller);
    const parts: Part[] = [];
    this.draw(amount, (batch, part) => parts.push({ batch, amount: part }));
    return new SharedTaking(amount, parts);
  }

  settle(taking: SharedTaking, amount: number, nowMs: number): void {
    let excess = taking.amount - amount;
    taking.amount = amount;
    if (excess < 0) this.draw(-excess, () => {});
    if (!(excess > 0)) return;
    for (let i = taking.parts.length - 1; i >= 0 && excess > 0; i--) {
      const part = taking.parts[i] as Part;
      const back = Math.min(part.amount, excess);
      part.amount -= back;
      excess -= back;
      this.returns.add(part.batch, back, nowMs);
    }
    this.callIn(this.needed > 0 ? 0 : this.settings.refreshMs);
  }

  freeAtMs(nowMs: number): number {
    return nowMs + (this.used(nowMs) * this.perMs) / this.limit;
  }

  /** Raises the level for all replicas. Units that were bought beyond `amount` are lost. */
  leaves(amount: number, nowMs: number): void {
    const level = this.limit - amount;
    if (level - this.used(nowMs) <= this.limit * roundingError) return;
    this.units.draw(this.units.balance - amount, () => {});
    this.setLevel(Math.max(this.levelAt(nowMs), level), nowMs);
    this.leastLevel = Math.max(this.leastLevel, level);
    this.callIn(this.pollMs);
  }

  retire(): void {
    if (this.isRetired) return;
    this.isRetired = true;
    this.onRetired();
    this.call();
  }

  /** Gives back what is not used. Never rejects. */
  async close(): Promise<void> {
    this.retire();
    await this.sending;
    this.call();
    await this.sending;
    this.settings.clock.clearTimeout(this.timer);
  }

  private replicas(): number {
    return Math.max(1, this.settings.replicas());
  }

  /**
   * The amount that is bought ahead: half a refresh of this replica's part, or two requests if that is more; at most a
   * part of the burst.
   */
  private chunk(): number {
    const ofRate = (this.limit / this.perMs) * (this.settings.refreshMs / (2 * this.replicas()));
    return Math.min(Math.max(ofRate, 2 * this.typical), (this.burst * mostAhead) / this.replicas());
  }

  /** The burst, less the chunks that may lie unused. A larger request goes when all of this is there. */
  private mostAtOnce(): number {
    return this.burst - this.replicas() * this.chunk();
  }

  private levelAt(nowMs: number): number {
    return Math.max(0, this.level - ((nowMs - this.levelAtMs) * this.limit) / this.perMs);
  }

  private setLevel(level: number, nowMs: number): void {
    this.level = level;
    this.levelAtMs = nowMs;
  }

  private draw(amount: number, drawn: (batch: BoughtBatch, part: number) => void): void {
    const missing = this.units.draw(amount, drawn);
    if (missing > this.burst * roundingError) this.debt += missing;
    if (this.debt > 0 || this.units.balance < this.chunk() / 2) this.callIn(0);
  }

  /** 0: in a microtask. */
  private callIn(delayMs: number): void {
    const { clock } = this.settings;
    if (this.isCalling || this.isQueued) return;
    const nowMs = clock.now();
    const atMs = Math.max(nowMs + delayMs, this.notBeforeMs);
    if (atMs <= nowMs) {
      this.isQueued = true;
      queueMicrotask(() => this.call());
      return;
    }
    if (atMs >= this.dueAtMs) return;
    clock.clearTimeout(this.timer);
    this.dueAtMs = atMs;
    this.timer = clock.setTimeout(() => {
      this.dueAtMs = Number.POSITIVE_INFINITY;
      this.call();
    }, atMs - nowMs);
    letProcessEnd(this.timer);
  }

  private call(): void {
    this.isQueued = false;
    if (this.isCalling) return;
    const purchase = this.purchase(this.settings.clock.now());
    if (purchase === undefined) return;
    this.isCalling = true;
    this.sending = this.send(purchase);
  }

  /** Never rejects. */
  private async send(purchase: Purchase): Promise<void> {
    const { clock } = this.settings;
    const onLate = (late: PurchaseAnswer): void => this.returns.add(batchOf(late), late.sold, clock.now());
    await this.sendPurchase(this.terms.key, purchase, onLate).then(
      (sale) => this.bought(sale, purchase, clock.now()),
      (error) => this.missed(purchase, error instanceof StoreError && unsent.includes(error.problem.code), clock.now()),
    );
  }

  /** Undefined when there is nothing to do. */
  private purchase(nowMs: number): Purchase | undefined {
    const { units, isRetired, debt: charge } = this;
    const chunk = isRetired ? 0 : this.chunk();
    const needed = isRetired ? 0 : this.needed;
    const surplus = units.balance - Math.max(chunk, needed);
    if (surplus > this.burst * roundingError)
      units.draw(surplus, (batch, part) => this.returns.add(batch, part, nowMs));
    const missing = Math.max(0, needed - units.balance);
    const isLow = missing > 0 || units.balance < chunk / 2;
    const ahead = Math.min(Math.max(needed, chunk * this.chunks), this.mostAtOnce());
    const most = isLow && !isRetired ? Math.max(0, ahead - units.balance, missing) : 0;
    const back = this.returns.drain();
    if (most === 0 && charge === 0 && this.leastLevel === 0 && back.length === 0) return undefined;
    this.debt = 0;
    // If this replica took so much by itself while the store was away, the others did too: it must not be sold again.
    const byAll = this.fallback === undefined ? 0 : Math.min(this.fallback.usedByAll(nowMs), this.burst);
    const leastLevel = Math.max(this.leastLevel, byAll);
    const least = Math.min(missing, Math.max(chunk, this.typical));
    return { rate: this.limit / (this.perMs * 1_000), burst: this.mostAtOnce(), charge, leastLevel, least, most, back };
  }

  private bought(sale: PurchaseAnswer, { most, leastLevel }: Purchase, nowMs: number): void {
    const { epoch } = this;
    const expected = this.levelAt(nowMs);
    const isNew = sale.epoch !== epoch && epoch !== '';
    this.epoch = sale.epoch;
    this.setLevel(sale.level, nowMs);
    this.fallback = undefined;
    this.credit?.paid(sale.epoch, String(Number(sale.end) - sale.sold));
    this.credit = undefined;
    if (this.leastLevel <= leastLevel) this.leastLevel = 0;
    // The store lost the bucket before all of it had leaked: the level that is known here is restored.
    if (isNew && expected > sale.level) this.leastLevel = Math.max(this.leastLevel, expected);
    this.units.add(batchOf(sale));
    this.follow(sale.sold, most, nowMs);
  }

  /** Without the store this replica's fallback share sells. */
  private missed(purchase: Purchase, isUnsent: boolean, nowMs: number): void {
    const { charge, least, most, back } = purchase;
    const part = this.settings.fallbackShare();
    this.fallback ??= new FallbackShare(this.terms, part, this.levelAt(nowMs), nowMs);
    const { fallback } = this;
    // A purchase that was sent may have been given back: twice would be too much.
    if (isUnsent) for (const [batch, amount] of back) this.returns.add(batch, amount, nowMs);
    if (charge > 0) fallback.take(charge, nowMs);
    this.credit = undefined;
    const taking = fallback.sell(least, most, nowMs);
    if (taking !== undefined) this.units.add(new BoughtBatch(taking.amount, '', '', { share: fallback, taking }));
    this.follow(taking?.amount ?? 0, most, nowMs);
  }

  /** Tells that there may be room after a purchase, and sets the time of the next call. */
  private follow(sold: number, most: number, nowMs: number): void {
    const wasNeeded = this.needed > 0;
    this.needed = 0;
    const isMet = sold >= most - this.burst * roundingError;
    this.notBeforeMs = isMet ? Number.NEGATIVE_INFINITY : nowMs + this.pollMs;
    // A request that still finds no room asks again.
    if (sold > 0 || wasNeeded) this.terms.onRoom();
    this.isCalling = false;
    const { needed, units } = this;
    this.chunks = needed > 0 && isMet && most > 0 ? Math.min(this.chunks * 2, mostChunks) : 1;
    if (this.isRetired) this.call();
    else if (needed > 0) this.callIn(isMet ? 0 : this.waitMs(needed - units.balance, nowMs));
    else if (this.debt > 0 || units.balance > this.chunk() * (1 + roundingError)) this.callIn(0);
    else if (this.leastLevel > 0) this.callIn(this.pollMs);
    else if (units.balance < this.chunk() / 2) this.callIn(this.waitMs(this.chunk() - units.balance, nowMs));
    else if (this.returns.size > 0) this.callIn(this.settings.refreshMs);
  }

  /** The time until the store has this much, if no other replica takes; at most a refresh. */
  private waitMs(amount: number, nowMs: number): number {
    const { fallback, settings } = this;
    const over = amount - Math.max(0, this.mostAtOnce() - this.levelAt(nowMs));
    const waitMs = fallback === undefined ? (over * this.perMs) / this.limit : fallback.roomAtMs(amount, nowMs) - nowMs;
    return Math.min(Math.max(waitMs, this.pollMs), settings.refreshMs);
  }
}

function batchOf({ sold, epoch, end }: PurchaseAnswer): BoughtBatch {
  return new BoughtBatch(sold, epoch, end);
}
