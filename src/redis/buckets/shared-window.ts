/**
 * A bucket of all replicas. This one buys units ahead for its requests, and gives back what they did not use.
 *
 *     store ── chunk ──► holdings ── a request takes ──► settled ── what is too much ──► store
 *
 * Invariant: no request asks the store; between two calls the balance is at most a chunk more than what waits here. A
 * request that waits has its place in the store: it goes when all that was taken before it, and itself, fit into the
 * burst. A bucket keeps one call outstanding, and makes none while nothing is taken and nothing waits.
 */
import { type QuotaTerms, type QuotaWindow, rounding } from '../../base/quota-window.js';
import { CallSchedule } from '../store/call-schedule.js';
import { StoreError } from '../store/store-problem.js';
import { BucketAccount } from './bucket-account.js';
import { type BucketSettings, fallbackPart } from './bucket-options.js';
import { type BucketStore, type Purchase, purchaseOf, type Sale } from './bucket-store.js';
import { FallbackShare } from './fallback-share.js';
import { type HeldTaking, Holdings } from './holdings.js';

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

interface WindowSettings extends BucketSettings {
  /** A replica that waits for units asks at least this often. */
  readonly refreshInterval: number;
}

/** Weights of a larger and of a smaller request in the typical amount: six of seven are then smaller. */
const larger = 0.3;
const smaller = 0.05;
/** The part of a burst that may lie unused in all replicas together. */
const mostAhead = 0.25;
/** A replica that got less than it asked for asks again after this part of a refresh at the earliest. */
const pollPart = 0.1;

export class SharedWindow implements QuotaWindow {
  readonly kind = 'gcra';
  readonly isShared = true;
  limit: number;
  burst: number;
  perMs: number;
  private readonly settings: WindowSettings;
  private readonly buy: (purchase: Purchase, onLate: (sale: Sale) => void) => Promise<Sale>;
  private readonly onRoom: () => void;
  private readonly onRetired: () => unknown;
  private readonly pollMs: number;
  private readonly account: BucketAccount;
  private readonly holdings: Holdings;
  private readonly schedule: CallSchedule;
  /** The largest amount for which there was no room, and until when it is kept for the request that wants it. */
  private needed = 0;
  private neededUntilMs = 0;
  /** Demand that is not met doubles the purchase; the burst bounds it. */
  private chunks = 1;
  /** Most requests take no more than this. */
  private typical: number;
  private fallback: FallbackShare | undefined = undefined;
  private isRetired = false;

  /** `hasCredit`: the first chunk is used before it is paid for, which is at once: the first request need not wait. */
  constructor(
    { limit, burst, perMs, onRoom }: Omit<QuotaTerms, 'key'>,
    settings: WindowSettings,
    store: BucketStore,
    key: string,
    hasCredit: boolean,
    onRetired: () => unknown,
  ) {
    this.limit = limit;
    this.burst = burst;
    this.perMs = perMs;
    this.settings = settings;
    this.buy = (purchase, onLate) => store.buyOne(key, purchase, onLate);
    this.onRoom = onRoom;
    this.onRetired = onRetired;
    this.typical = Math.min(1, burst);
    this.pollMs = settings.refreshInterval * pollPart;
    this.account = new BucketAccount(this, settings.clock.now());
    this.holdings = new Holdings(hasCredit ? this.chunk() : 0);
    this.schedule = new CallSchedule(settings.clock, () => this.send());
    this.schedule.callIn(0);
  }

  status(nowMs: number): WindowStatus {
    const { balance } = this.holdings;
    return { balance, used: this.used(nowMs), limit: this.limit, isLocal: this.fallback !== undefined };
  }

  used(nowMs: number): number {
    const { debt, balance, reservedAmount } = this.holdings;
    return Math.max(0, this.account.levelAt(nowMs) + debt - balance - reservedAmount);
  }

  roomAtMs(amount: number, nowMs: number, returning?: number): number {
    this.redeem(nowMs, amount);
    const missing = Math.min(amount, this.burst) - this.holdings.balance;
    if (missing <= this.slack()) return nowMs;
    const { reservedEnd, reservedAmount } = this.holdings;
    if (this.fallback !== undefined) return Math.max(this.fallback.roomAtMs(missing, nowMs), nowMs + this.pollMs);
    // Others may give their chunks back.
    const hoped = returning === undefined ? 0 : returning + this.settings.replicas() * this.chunk();
    const isReserved = reservedEnd !== undefined && missing - reservedAmount <= this.slack();
    const most = this.mostAtOnce();
    const over = isReserved
      ? this.account.beyond(reservedEnd, most, nowMs)
      : missing - Math.max(0, most - this.account.levelAt(nowMs));
    const waitMs = Math.max(0, this.account.leakMs(over - hoped));
    const isTold = returning !== undefined || (isReserved && over > this.slack());
    return nowMs + (isTold ? waitMs : Math.max(waitMs, this.pollMs));
  }

  wants(amount: number, nowMs: number): void {
    this.typical = Math.max(this.typical, larger * amount);
    this.needed = Math.max(this.needed, Math.min(amount, this.burst));
    this.neededUntilMs = nowMs + this.settings.refreshInterval;
    this.schedule.callIn(0);
  }

  take(amount: number): HeldTaking {
    this.typical += (amount - this.typical) * (amount > this.typical ? larger : smaller);
    if (amount >= this.needed) this.needed = 0;
    const taking = this.holdings.take(amount, this.slack());
    this.refill();
    return taking;
  }

  settle(taking: HeldTaking, amount: number, nowMs: number): void {
    const excess = taking.amount - amount;
    this.holdings.settle(taking, amount, this.slack(), nowMs);
    if (excess < 0) this.refill();
    if (excess > 0) this.schedule.callIn(this.needed > 0 ? 0 : this.settings.refreshInterval);
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
    this.onRetired();
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
    const { replicas, refreshInterval } = this.settings;
    const ofRate = (this.limit / this.perMs) * (refreshInterval / (2 * replicas()));
    return Math.min(Math.max(ofRate, 2 * this.typical), (this.burst * mostAhead) / replicas());
  }

  /** The burst, less the chunks that may lie unused. */
  private mostAtOnce(): number {
    return this.burst - this.settings.replicas() * this.chunk();
  }

  /** Once all that was sold before and itself fit, it is there: for its request, unless that does not come. */
  private redeem(nowMs: number, amount = Infinity): void {
    const { holdings, account, settings } = this;
    const { reservedEnd, reservedAmount, balance } = holdings;
    if (reservedEnd === undefined) return;
    const over = this.isRetired ? 0 : account.beyond(reservedEnd, this.mostAtOnce(), nowMs);
    const isOwn = reservedAmount <= this.chunk() || balance + reservedAmount - amount <= this.slack();
    if (over > this.slack() || (!isOwn && account.leakMs(-over) < this.pollMs)) return;
    this.neededUntilMs = Math.max(this.neededUntilMs, nowMs + settings.refreshInterval);
    holdings.redeem();
  }

  private slack(): number {
    return this.burst * rounding;
  }

  private refill(): void {
    if (this.holdings.debt > 0 || this.holdings.balance < this.chunk() / 2) this.schedule.callIn(0);
  }

  private send(): Promise<void> | undefined {
    const { holdings } = this;
    const { clock } = this.settings;
    const purchase = this.purchase(clock.now());
    if (purchase === undefined) return undefined;
    const reserved = holdings.reservedEnd === undefined ? holdings.reservedAmount : 0;
    // What was sold and what was reserved stand next to each other.
    const onLate = ({ epoch, end, sold }: Sale): void => holdings.toReturn([{ epoch, end, amount: sold + reserved }]);
    return this.buy(purchase, onLate).then(
      (sale) => this.bought(sale, purchase, clock.now()),
      (error) => this.missed(purchase, error instanceof StoreError && error.isUnsent, clock.now()),
    );
  }

  private purchase(nowMs: number): Purchase | undefined {
    const { holdings } = this;
    this.redeem(nowMs);
    if (this.isRetired || (nowMs > this.neededUntilMs && holdings.reservedAmount === 0)) this.needed = 0;
    const chunk = this.isRetired ? 0 : this.chunk();
    const isEnough = this.needed - holdings.balance <= this.slack() || this.fallback !== undefined;
    const kept = isEnough ? Math.max(chunk, this.needed) : chunk;
    if (holdings.balance - kept > this.slack()) holdings.shrink(kept, nowMs);
    const missing = Math.max(0, this.needed - holdings.balance - holdings.reservedAmount);
    // It is bought at once, and waits for its turn: a large request is not passed by smaller ones, nor they by it.
    const atLeast = (this.limit / this.perMs) * this.pollMs;
    const isMissing = missing > this.slack();
    if (isMissing && holdings.reservedAmount === 0) holdings.reserve(Math.max(missing, atLeast));
    const ahead = Math.min(chunk * this.chunks, this.mostAtOnce()) - holdings.balance - holdings.reservedAmount;
    const most = isMissing || holdings.balance < chunk / 2 ? Math.max(0, ahead) : 0;
    const { charge, back } = holdings.takeOwed();
    if (most + charge + this.account.leastLevel + back.length + holdings.reservedAmount === 0) return undefined;
    // If this replica took so much by itself while the store was away, the others did too: it must not be sold again.
    const byAll = this.fallback === undefined ? 0 : Math.min(this.fallback.usedByAll(nowMs), this.burst);
    const leastLevel = Math.max(this.account.leastLevel, byAll);
    return purchaseOf(this, { burst: this.mostAtOnce(), charge, leastLevel, most, back });
  }

  private bought(sale: Sale, { most, leastLevel }: Purchase, nowMs: number): void {
    if (this.account.answered(sale, leastLevel, nowMs) && this.holdings.reservedEnd !== undefined)
      this.holdings.dropReserved();
    this.fallback = undefined;
    this.holdings.bought(sale);
    this.follow(sale.sold, most, nowMs);
  }

  private missed({ charge, most, back }: Purchase, isUnsent: boolean, nowMs: number): void {
    const { holdings } = this;
    this.fallback ??= new FallbackShare(this, fallbackPart(this.settings), this.account.levelAt(nowMs), nowMs);
    // A purchase that was sent may have been given back: twice would be too much.
    if (isUnsent) holdings.toReturn(back);
    const reserved = holdings.reservedEnd === undefined ? holdings.dropReserved() : 0;
    if (charge > reserved) this.fallback.take(charge - reserved, nowMs);
    const taking = this.fallback.sell(most + reserved, nowMs);
    holdings.boughtHere(this.fallback, taking);
    this.follow(taking?.amount ?? 0, most + reserved, nowMs);
  }

  /** Tells that there may be room after a purchase, and sets the time of the next call. */
  private follow(sold: number, most: number, nowMs: number): void {
    const { schedule, settings, holdings } = this;
    this.redeem(nowMs);
    const isMet = sold >= most - this.slack() && holdings.reservedAmount === 0;
    const isRoom = sold > 0 || this.needed > 0;
    // A request that still finds no room asks again.
    this.needed = 0;
    if (isRoom) this.onRoom();
    schedule.over(isMet ? 0 : this.pollMs);
    const { balance, reservedEnd } = holdings;
    const missing = this.needed - balance - holdings.reservedAmount;
    const chunk = this.chunk();
    // Where requests wait, another replica may give back sooner.
    const callFor = (amount: number): void =>
      schedule.callIn(Math.min(this.roomAtMs(amount, nowMs) - nowMs, settings.refreshInterval));
    const isMissing = missing > this.slack();
    this.chunks = isMissing && isMet ? Math.min(this.chunks * 2, 2 ** 20) : 1;
    if (this.isRetired) void schedule.call();
    else if (isMissing && isMet) schedule.callIn(0);
    else if (isMissing) callFor(this.needed);
    else if (reservedEnd !== undefined) schedule.callIn(settings.refreshInterval);
    else if (this.needed > 0) schedule.callIn(Math.max(0, this.neededUntilMs - nowMs) + 1);
    else if (holdings.debt > 0 || balance > chunk * (1 + rounding)) schedule.callIn(0);
    else if (this.account.leastLevel > 0) schedule.callIn(this.pollMs);
    else if (balance < chunk / 2) callFor(chunk);
    else if (holdings.hasReturns) schedule.callIn(settings.refreshInterval);
  }
}
