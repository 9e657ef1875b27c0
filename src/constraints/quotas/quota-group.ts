/**
 * The quotas of one group: takes from all of them at once, rests after a refusal, and learns from answers.
 *
 *     open ──429, 529──► resting until the told instant ──► one request goes ahead ──its answer──► open
 *
 * Invariant: a group that knows nothing yet, or has just rested, has one request under way at most until its server has
 * answered.
 */
import { GcraWindow } from '../../base/gcra-window.js';
import type { QuotaSource, QuotaWindow } from '../../base/quota-window.js';
import type { RequestWait } from '../../gate/constraint.js';
import type { QuotaFigure } from '../../gate/reported-figures.js';
import { FixedWindow } from './fixed-window.js';
import { type Hold, Quota } from './quota.js';
import type { ResolvedGroup, ResolvedQuota } from './quota-options.js';
import type { QuotaUnit, RateLimitReport, ReportedQuota } from './rate-limit-headers.js';
import type { Amounts } from './request-estimate.js';
import { SlidingWindow } from './sliding-window.js';

/** The span of a limit, if an answer does not tell it: most limits of providers are for a minute. */
const toldPerMs = 60_000;
/** A request that goes first, alone, has this long to bring an answer; then another one may go. */
const longestProbeMs = 10_000;
/** Doubling ends here: 2^20 of any cooldown is beyond every maximum. */
const mostDoublings = 20;

/** When a group has room for a request. */
export interface GroupRoom {
  readonly atMs: number;
  /** Not before this instant, even if everything that is under way comes back. */
  readonly earliestMs: number;
  /** The amount that is missing, for a sentence: `1,200 input tokens of account A`. */
  readonly missing: string;
}

export class QuotaGroup {
  readonly name: string;
  readonly learns: boolean;
  readonly quotas: Quota[];
  restsUntilMs: number = -Infinity;
  /** True while at most one request may be under way, until there is an answer. */
  private mustProbe: boolean;
  private probeSinceMs: number = -Infinity;
  private doublings = 0;
  private refusedAtMs: number = -Infinity;
  /** What is used of a subscription, 0…1, as its last answer told, and until when that holds. */
  private usedShare = 0;
  private shareUntilMs: number = -Infinity;

  /** `windowOf` makes the window of a configured quota. */
  constructor(name: string, { quotas, learn }: ResolvedGroup, windowOf: WindowFactory) {
    this.name = name;
    this.learns = learn;
    this.quotas = quotas.map((quota) => new Quota(quota.unit, windowOf(quota, name), quota.per));
    this.mustProbe = learn && quotas.length === 0;
  }

  /** True when nothing is used, held or awaited: a new group would do, but for the limits this one learnt. */
  isAsNew(nowMs: number): boolean {
    if (nowMs < Math.max(this.restsUntilMs, this.shareUntilMs) || this.isProbed(nowMs)) return false;
    return this.quotas.every(({ reserved, window }) => reserved === 0 && window.used(nowMs) === 0);
  }

  /** True when a request of these amounts may go now. */
  hasRoom(amounts: Amounts, nowMs: number): boolean {
    if (nowMs < this.restsUntilMs || this.isProbed(nowMs)) return false;
    let hasRoom = true;
    for (const { unit, window } of this.quotas) {
      if (window.roomAtMs(amounts[unit], nowMs) <= nowMs) continue;
      hasRoom = false;
      window.wants?.(amounts[unit], nowMs);
    }
    return hasRoom;
  }

  /** The instant at which it may go, and what it waits for. */
  room(amounts: Amounts, nowMs: number): GroupRoom {
    let atMs = nowMs;
    let earliestMs = nowMs;
    let missing = '';
    if (this.isProbed(nowMs)) {
      atMs = this.probeSinceMs + longestProbeMs;
      missing = `the answer to the request that went ahead to ${this.name}`;
    }
    for (const { unit, window, reserved, isLearnt } of this.quotas) {
      const amount = amounts[unit];
      const roomAtMs = window.roomAtMs(amount, nowMs);
      if (roomAtMs > atMs) {
        atMs = roomAtMs;
        missing = `${inWhole(amount)} ${nouns[unit][amount === 1 ? 0 : 1]} of ${this.name}`;
      }
      // The span of a limit that was learnt from answers is a guess, so no request is dropped because of it.
      if (isLearnt && window.isGuessing === true) continue;
      // This process does not know how much of a shared limit others may still give back; of requests they give back
      // none.
      if (window.isShared === true && unit !== 'requests') continue;
      // Units of requests come back only when a request was never sent, which cannot be counted on; tokens come back
      // all the time.
      earliestMs = Math.max(earliestMs, window.roomAtMs(amount, nowMs, unit === 'requests' ? 0 : reserved));
    }
    if (this.restsUntilMs > atMs) {
      atMs = this.restsUntilMs;
      missing = `the rest that ${this.name} was told to take`;
    }
    return { atMs, earliestMs: Math.max(earliestMs, this.restsUntilMs), missing };
  }

  /** Takes from all quotas, whether they have room or not: the request goes. */
  hold(amounts: Amounts, nowMs: number): Hold[] {
    if (this.mustProbe) this.probeSinceMs = nowMs;
    return this.quotas.map((quota) => quota.hold(amounts[quota.unit], nowMs));
  }

  /** Its server answered a request that was no refusal. */
  accepted(dispatchedAtMs: number): void {
    if (dispatchedAtMs < this.refusedAtMs) return;
    this.mustProbe = false;
    this.doublings = 0;
  }

  /** A request ended and no answer was reported; perhaps the host never reports answers. */
  unanswered(isUnsent: boolean): void {
    this.probeSinceMs = -Infinity;
    if (!isUnsent && this.refusedAtMs === -Infinity) this.mustProbe = false;
  }

  /** It rests for `waitMs`, else `restMs` of the refusals in a row; never shortened; those at once count once. */
  refused(dispatchedAtMs: number, nowMs: number, waitMs: number | undefined, restMs: (times: number) => number): void {
    const isNew = dispatchedAtMs >= this.refusedAtMs;
    const ms = waitMs ?? restMs(this.doublings);
    if (isNew) this.doublings = Math.min(this.doublings + 1, mostDoublings);
    if (isNew || waitMs !== undefined) this.restsUntilMs = Math.max(this.restsUntilMs, nowMs + ms);
    this.refusedAtMs = nowMs;
    this.mustProbe = true;
    this.probeSinceMs = -Infinity;
  }

  learn(told: readonly ReportedQuota[], nowMs: number, share?: RateLimitReport['share']): void {
    if (share !== undefined) {
      this.usedShare = share.used;
      this.shareUntilMs = nowMs + share.resetInMs;
    }
    for (const each of told) {
      const known = this.quotas.filter(({ unit }) => unit === each.unit);
      // A provider may have several limits of one unit, and an answer tells one without its name. Servers tell the one
      // with the shortest span.
      const [quota] = known.sort((a, b) => a.window.perMs - b.window.perMs);
      if (quota !== undefined) quota.learn(each, nowMs);
      else if (each.limit !== undefined) this.adopt(each, each.limit, nowMs);
    }
  }

  /** The wait after a refusal that does not tell one: until the used-up quotas of its headers are reset. */
  static untilReset(told: readonly ReportedQuota[]): number | undefined {
    const waits = told.filter(({ remaining }) => remaining === 0).map(({ resetInMs }) => resetInMs ?? 0);
    return Math.max(0, ...waits) || undefined;
  }

  /** 0 for nothing used; 1 when nothing is left, and while it rests. */
  fullness(nowMs: number): number {
    if (nowMs < this.restsUntilMs) return 1;
    const share = nowMs < this.shareUntilMs ? this.usedShare : 0;
    return this.quotas.reduce((most, quota) => Math.max(most, quota.fullness(nowMs)), share);
  }

  figures(nowMs: number): QuotaFigure[] {
    const restsForMs = Math.max(this.restsUntilMs - nowMs, 0);
    return this.quotas.map(({ unit, isLearnt, reserved, window, perMs }) => {
      const used = window.used(nowMs);
      return {
        group: this.name,
        unit,
        limit: window.limit,
        perMs,
        used: Math.max(used - reserved, 0),
        reserved: Math.min(reserved, used),
        resetsInMs: Math.max(window.freeAtMs(nowMs) - nowMs, 0),
        waitMs: Math.max(window.roomAtMs(1, nowMs) - nowMs, restsForMs),
        restsForMs,
        isLearnt,
        ...(window.isShared === true && { isShared: true }),
      };
    });
  }

  /** The group is removed: nothing is taken from its windows any more. */
  end(): void {
    for (const { window } of this.quotas) window.retire?.();
  }

  private isProbed(nowMs: number): boolean {
    return this.mustProbe && nowMs < this.probeSinceMs + longestProbeMs;
  }

  private adopt(told: ReportedQuota, limit: number, nowMs: number): void {
    const quota = new Quota(told.unit, new FixedWindow(limit, told.perMs ?? toldPerMs));
    quota.learn(told, nowMs);
    this.quotas.push(quota);
  }
}

/** When all of the groups have room, and what is missing until then. */
export function waitIn(groups: readonly QuotaGroup[], amounts: Amounts, nowMs: number): RequestWait {
  let atMs = nowMs;
  let notBeforeMs = nowMs;
  let missing = '';
  for (const group of groups) {
    const room = group.room(amounts, nowMs);
    notBeforeMs = Math.max(notBeforeMs, room.earliestMs);
    if (room.atMs > atMs) ({ atMs, missing } = room);
  }
  return { atMs, notBeforeMs, missing };
}

const nouns: Readonly<Record<QuotaUnit, readonly [one: string, several: string]>> = {
  requests: ['request', 'requests'],
  inputTokens: ['input token', 'input tokens'],
  outputTokens: ['output token', 'output tokens'],
  tokens: ['token', 'tokens'],
  cost: ['unit of cost', 'units of cost'],
};

/** `12,400`; small costs keep their figures. */
function inWhole(amount: number): string {
  if (amount >= 1 || amount === 0) return Math.round(amount).toLocaleString('en-US');
  return String(Number(amount.toPrecision(2)));
}

export type WindowFactory = (quota: ResolvedQuota, group: string) => QuotaWindow;

/** Windows of this process, or of `source` for `gcra`. What counts up to `travelMs` later must fit the provider's. */
export function windowsOf(travelMs: number, source?: QuotaSource, onRoom: () => void = () => {}): WindowFactory {
  return ({ unit, limit, per: perMs, burst: given = limit, window }, group) => {
    if (window === 'fixed') return new FixedWindow(limit, perMs + travelMs);
    if (window === 'sliding') return new SlidingWindow(limit, perMs + travelMs);
    const burst = Math.max(given - (limit * travelMs) / perMs, Math.min(given, 1));
    if (source === undefined) return new GcraWindow(limit, perMs, burst);
    return source.window({ key: `${group} ${unit} ${perMs}`, limit, perMs, burst, onRoom });
  };
}
