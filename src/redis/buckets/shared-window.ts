/**
 * A bucket from which all replicas take. This replica buys units ahead, lets requests go with them, and gives back what
 * they did not use.
 *
 *     store ── chunk ──► holdings ── a request takes ──► settled ── what is too much ──► store
 *
 * Invariant: no request asks the store; between two calls the balance is at most a chunk more than what waits here. A
 * bucket keeps one call outstanding, and makes none while nothing is taken and nothing waits.
 */
import { type QuotaWindow, rounding } from '../../base/quota-window.js';
import { CallSchedule } from '../store/call-schedule.js';
import { StoreError } from '../store/store-problem.js';
import { BucketAccount } from './bucket-account.js';
import type { BucketSettings } from './bucket-options.js';
import { type BucketTerms, type Purchase, purchaseOf, type Sale } from './bucket-store.js';
import { FallbackShare } from './fallback-share.js';
import { type HeldTaking, Holdings } from './holdings.js';

export interface WindowSettings extends BucketSettings {
  /** A replica that waits for units asks at least this often. */
  readonly refreshMs: number;
  /**
   * The amount that is bought ahead, as ms of the rate, and on top of the burst. Undefined: half a refresh of this
   * replica's part, or two requests if that is more; all chunks together are at most a part of the burst.
   */
  readonly chunkMs?: number | undefined;
}

/** The part of one bucket that a replica has. */
export interface WindowStatus {
  /** Units that were bought here and not used. */
  readonly balance: number;
  /** Units that all replicas have used, as far as this replica knows. */
  readonly used: number;
  readonly limit: number;
  /** True while this replica's fallback share is in force, because the store is away. */
  readonly isLocal: boolean;
}

interface WindowHooks {
  /** There may be room where there was none. */
  readonly onRoom?: () => void;
  readonly onRetired?: () => unknown;
}

/** Sends a purchase. Rejects with a StoreError. `onLate` gets an answer that came after the time limit. */
export type SendPurchase = (purchase: Purchase, onLate: (sale: Sale) => void) => Promise<Sale>;

/** Weights of a larger and of a smaller request in the typical amount: six of seven are then smaller. */
const larger = 0.3;
const smaller = 0.05;
/** The part of a burst that may lie unused in all replicas together. */
const mostAhead = 0.25;
/** A replica that got less than it asked for asks again after this part of a refresh at the earliest. */
const pollPart = 0.1;
/** Demand that is not met doubles the purchase, up to this many chunks; the burst bounds it too. */
const mostChunks = 2 ** 20;
/** The problems of calls that were not sent. */
const unsent: readonly string[] = ['connecting', 'breaker-open', 'busy'];

export class SharedWindow implements QuotaWindow {
  readonly kind = 'gcra';
  readonly isShared = true;
  limit: number;
  burst: number;
  perMs: number;
  private readonly settings: WindowSettings;
  private readonly sendPurchase: SendPurchase;
  private readonly hooks: WindowHooks;
  private readonly pollMs: number;
  private readonly account: BucketAccount;
  private readonly holdings: Holdings;
  private readonly schedule: CallSchedule;
  /** The largest amount for which there was no room since the last answer. */
  private needed = 0;
  private chunks = 1;
  /** Most requests take no more than this. */
  private typical: number;
  private fallback: FallbackShare | undefined = undefined;
  private isRetired = false;

  /** `hasCredit`: the first chunk is used before it is paid for, which is at once: the first request need not wait. */
  constructor(
    { limit, burst, perMs }: BucketTerms,
    settings: WindowSettings,
    sendPurchase: SendPurchase,
    hasCredit: boolean,
    hooks: WindowHooks = {},
  ) {
    this.limit = limit;
    this.burst = burst;
    this.perMs = perMs;
    this.settings = settings;
    this.sendPurchase = sendPurchase;
    this.hooks = hooks;
    this.typical = Math.min(1, burst);
    this.pollMs = settings.refreshMs * pollPart;
    this.account = new BucketAccount(this, settings.clock.now());
    this.holdings = new Holdings(hasCredit ? this.chunk() : 0);
    this.schedule = new CallSchedule(settings.clock, () => this.send());
    this.schedule.callIn(0);
  }

  status(nowMs: number): WindowStatus {
    const { limit, fallback, holdings } = this;
    return { balance: holdings.balance, used: this.used(nowMs), limit, isLocal: fallback !== undefined };
  }

  used(nowMs: number): number {
    return Math.max(0, this.account.levelAt(nowMs) + this.holdings.debt - this.holdings.balance);
  }

  roomAtMs(amount: number, nowMs: number, returning?: number): number {
    const missing = Math.min(amount, this.mostNeeded()) - this.holdings.balance;
    if (missing <= this.slack()) return nowMs;
    if (this.fallback !== undefined) return Math.max(this.fallback.roomAtMs(missing, nowMs), nowMs + this.pollMs);
    // Others may give their chunks back.
    const hoped = returning === undefined ? 0 : returning + this.settings.replicas() * this.chunk();
    const waitMs = Math.max(0, this.leakMs(missing - hoped, nowMs));
    return nowMs + (returning === undefined ? Math.max(waitMs, this.pollMs) : waitMs);
  }

  wants(amount: number): void {
    this.needed = Math.max(this.needed, Math.min(amount, this.mostNeeded()));
    this.schedule.callIn(0);
  }

  take(amount: number): HeldTaking {
    this.typical += (amount - this.typical) * (amount > this.typical ? larger : smaller);
    const taking = this.holdings.take(amount, this.slack());
    this.refill();
    return taking;
  }

  settle(taking: HeldTaking, amount: number, nowMs: number): void {
    const excess = taking.amount - amount;
    this.holdings.settle(taking, amount, this.slack(), nowMs);
    if (excess < 0) this.refill();
    if (excess > 0) this.schedule.callIn(this.needed > 0 ? 0 : this.settings.refreshMs);
  }

  freeAtMs(nowMs: number): number {
    return nowMs + this.account.leakMs(this.used(nowMs));
  }

  /** Raises the level for all replicas. Units that were bought beyond `amount` are lost. */
  leaves(amount: number, nowMs: number): void {
    const level = this.limit - amount;
    if (level - this.used(nowMs) <= this.limit * rounding) return;
    this.holdings.lose(amount);
    this.account.raise(level, nowMs);
    this.schedule.callIn(this.pollMs);
  }

  retire(): void {
    if (this.isRetired) return;
    this.isRetired = true;
    this.hooks.onRetired?.();
    void this.schedule.call();
  }

  /** Gives back what is not used. Never rejects. */
  async close(): Promise<void> {
    this.retire();
    await this.schedule.call();
    await this.schedule.call();
    this.schedule.stop();
  }

  private chunk(): number {
    const { replicas, refreshMs, chunkMs } = this.settings;
    if (chunkMs !== undefined) return Math.min(this.burst, Math.max(1, (this.limit / this.perMs) * chunkMs));
    const ofRate = (this.limit / this.perMs) * (refreshMs / (2 * replicas()));
    return Math.min(Math.max(ofRate, 2 * this.typical), (this.burst * mostAhead) / replicas());
  }

  /** The burst, less the chunks that may lie unused, unless they come on top of it. */
  private mostAtOnce(): number {
    return this.settings.chunkMs === undefined ? this.burst - this.settings.replicas() * this.chunk() : this.burst;
  }

  /** A larger request goes when this much is there. */
  private mostNeeded(): number {
    return this.settings.chunkMs === undefined ? this.mostAtOnce() : this.chunk();
  }

  private slack(): number {
    return this.burst * rounding;
  }

  private refill(): void {
    if (this.holdings.debt > 0 || this.holdings.balance < this.chunk() / 2) this.schedule.callIn(0);
  }

  /** The time until the store has this much, if no other replica takes. */
  private leakMs(amount: number, nowMs: number): number {
    return this.account.leakMs(amount - Math.max(0, this.mostAtOnce() - this.account.levelAt(nowMs)));
  }

  private send(): Promise<void> | undefined {
    const { clock } = this.settings;
    const purchase = this.purchase(clock.now());
    if (purchase === undefined) return undefined;
    const onLate = ({ epoch, end, sold }: Sale): void => this.holdings.toReturn([{ epoch, end, amount: sold }]);
    return this.sendPurchase(purchase, onLate).then(
      (sale) => this.bought(sale, purchase, clock.now()),
      (error) => this.missed(purchase, error instanceof StoreError && unsent.includes(error.problem.code), clock.now()),
    );
  }

  private purchase(nowMs: number): Purchase | undefined {
    const { holdings, isRetired } = this;
    const chunk = isRetired ? 0 : this.chunk();
    const needed = isRetired ? 0 : this.needed;
    const kept = Math.max(chunk, needed);
    if (holdings.balance - kept > this.slack()) holdings.shrink(kept, nowMs);
    const missing = Math.max(0, needed - holdings.balance);
    const isLow = missing > 0 || holdings.balance < chunk / 2;
    const ahead = Math.min(Math.max(needed, chunk * this.chunks), this.mostAtOnce());
    const most = isLow && !isRetired ? Math.max(0, ahead - holdings.balance, missing) : 0;
    const { charge, back } = holdings.takeOwed();
    if (most === 0 && charge === 0 && this.account.leastLevel === 0 && back.length === 0) return undefined;
    // If this replica took so much by itself while the store was away, the others did too: it must not be sold again.
    const byAll = this.fallback === undefined ? 0 : Math.min(this.fallback.usedByAll(nowMs), this.burst);
    const leastLevel = Math.max(this.account.leastLevel, byAll);
    const least = Math.min(missing, Math.max(chunk, this.typical));
    return purchaseOf(this, { burst: this.mostAtOnce(), charge, leastLevel, least, most, back });
  }

  private bought(sale: Sale, { most, leastLevel }: Purchase, nowMs: number): void {
    this.account.answered(sale, leastLevel, nowMs);
    this.fallback = undefined;
    this.holdings.bought(sale);
    this.follow(sale.sold, most, nowMs);
  }

  /** Without the store this replica's fallback share sells. */
  private missed({ charge, least, most, back }: Purchase, isUnsent: boolean, nowMs: number): void {
    this.fallback ??= new FallbackShare(this, this.settings.fallbackPart(), this.account.levelAt(nowMs), nowMs);
    // A purchase that was sent may have been given back: twice would be too much.
    if (isUnsent) this.holdings.toReturn(back);
    if (charge > 0) this.fallback.take(charge, nowMs);
    const taking = this.fallback.sell(least, most, nowMs);
    this.holdings.boughtHere(this.fallback, taking);
    this.follow(taking?.amount ?? 0, most, nowMs);
  }

  /** Tells that there may be room after a purchase, and sets the time of the next call. */
  private follow(sold: number, most: number, nowMs: number): void {
    const { schedule, settings, holdings } = this;
    const wasNeeded = this.needed > 0;
    this.needed = 0;
    const isMet = sold >= most - this.slack();
    // A request that still finds no room asks again.
    if (sold > 0 || wasNeeded) this.hooks.onRoom?.();
    schedule.over(isMet ? 0 : this.pollMs);
    const { needed } = this;
    const { balance } = holdings;
    const chunk = this.chunk();
    this.chunks = needed > 0 && isMet && most > 0 ? Math.min(this.chunks * 2, mostChunks) : 1;
    if (this.isRetired) void schedule.call();
    else if (needed > 0) schedule.callIn(isMet ? 0 : this.waitMs(needed - balance, nowMs));
    else if (holdings.debt > 0 || balance > chunk * (1 + rounding)) schedule.callIn(0);
    else if (this.account.leastLevel > 0) schedule.callIn(this.pollMs);
    else if (balance < chunk / 2) schedule.callIn(this.waitMs(chunk - balance, nowMs));
    else if (holdings.hasReturns) schedule.callIn(settings.refreshMs);
  }

  /** As `leakMs`; where requests wait at most a refresh, because another replica may give back. */
  private waitMs(amount: number, nowMs: number): number {
    const { fallback, settings } = this;
    const waitMs = fallback === undefined ? this.leakMs(amount, nowMs) : fallback.roomAtMs(amount, nowMs) - nowMs;
    const longest = settings.chunkMs === undefined ? settings.refreshMs : Number.POSITIVE_INFINITY;
    return Math.min(Math.max(waitMs, this.pollMs), longest);
  }
}
