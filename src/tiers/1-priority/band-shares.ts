/** Guaranteed shares, which keep a low band from starving under strict priority. */
import type { PriorityBand } from '../priority-band.js';
import type { ItemView } from '../views.js';

/** The unit that shares are counted in. */
export type ShareUnit = 'requests' | 'tokens';

/** A band, or the template of bands that are made later. */
export interface Sharing {
  readonly settings: { readonly minShare: number };
}

/** The most credit of a band, in largest costs: more lets it burst behind its ceiling, less loses what it earns. */
const mostCredit = 2;
/** A report of more tokens than this is not valid. */
const mostTokens = 2 ** 53;
/** Shares add up in binary. */
const rounding = 1e-9;
/** Dispatches between two looks at the largest cost. */
const reviewEvery = 1024;

/**
 * Gives each band that has a `minShare` that part of all that is dispatched while it waits, whatever the order of bands
 * says.
 *
 * Every dispatch adds `minShare` of its cost to the credit of each waiting band and takes its cost from the band that
 * was served; the lowest band that is due goes first. Requests cost 1 each, and a band is due when its credit pays for
 * one. In tokens, the cost is known only when a request is chosen. A band is then due as soon as it has any credit, and
 * pays afterwards.
 *
 * The credit of a band is 0 while nothing of it waits. By tokens it keeps what it owes: a band that empties with each
 * request would be due again at once otherwise, without ever having paid.
 *
 * Over any dispatches of cost N in all during which band i keeps requests waiting it is served at least
 * `minShare · N − (2 + minShare · b) · e`, b being the bands with a share and e the largest cost of a request.
 */
export class BandShares {
  private readonly credits = new Map<PriorityBand, number>();
  /** False when no band has a share: the order of bands decides alone. */
  isUsed = false;
  /** True when shares are parts of tokens, and what a request cost is put right at its end. */
  countsTokens = false;
  /** Reports above 2^53 in bands whose fairness policy keeps no account, and so does not count them. */
  ignoredReports = 0;
  /** The largest cost of late. */
  private largest = 1;
  private largestSinceReview = 1;
  private dispatches = 0;

  /** Takes the shares anew, those of templates too, and their unit, else requests. A new unit forgets credits. */
  configure(bands: readonly Sharing[], unit?: ShareUnit): void {
    const before = this.countsTokens;
    this.isUsed = bands.some((band) => band.settings.minShare > 0);
    this.countsTokens = this.isUsed && unit === 'tokens';
    if (!this.isUsed || this.countsTokens !== before) this.credits.clear();
    this.largest = 1;
    this.largestSinceReview = 1;
  }

  /** The lowest due band; undefined when the order of bands decides. O(waiting bands), nothing without shares. */
  due(open: readonly PriorityBand[]): PriorityBand | undefined {
    if (!this.isUsed) return undefined;
    for (let i = open.length - 1; i >= 0; i--) {
      const band = open[i] as PriorityBand;
      if (band.settings.minShare === 0) continue;
      const credit = this.credits.get(band) ?? 0;
      if (credit >= (this.countsTokens ? rounding : 1 - rounding)) return band;
    }
    return undefined;
  }

  dispatched(served: PriorityBand, waiting: readonly PriorityBand[], item: ItemView): void {
    if (!this.isUsed) return;
    const cost = this.countsTokens ? tokensOf(item) : 1;
    this.noteCost(cost);
    this.charge(served, waiting, cost);
  }

  /** A request ended that consumed `tokens`; undefined: nothing is known of it. Call it where `countsTokens`. */
  settled(served: PriorityBand, waiting: readonly PriorityBand[], item: ItemView, tokens: number | undefined): void {
    if (tokens === undefined) return;
    if (tokens > mostTokens) {
      if (!served.policies.selector?.keepsAccount) this.ignoredReports++;
      return;
    }
    this.noteCost(tokens);
    this.charge(served, waiting, tokens - tokensOf(item));
  }

  /** The band has nothing waiting any more: what it had saved is gone, and by count what it owes. */
  emptied(band: PriorityBand): void {
    if (this.isUsed && (!this.countsTokens || (this.credits.get(band) ?? 0) > 0)) this.credits.delete(band);
  }

  removed(band: PriorityBand): void {
    this.credits.delete(band);
  }

  private charge(served: PriorityBand, waiting: readonly PriorityBand[], cost: number): void {
    for (const band of waiting) {
      const { minShare } = band.settings;
      if (minShare > 0) this.credits.set(band, this.bounded((this.credits.get(band) ?? 0) + minShare * cost));
    }
    if (served.settings.minShare === 0) return;
    this.credits.set(served, this.bounded((this.credits.get(served) ?? 0) - cost));
    if (served.waiting === 0) this.emptied(served);
  }

  /** Soon forgives a band what it received while others were idle. */
  private bounded(credit: number): number {
    return Math.max(Math.min(credit, mostCredit * this.largest), -this.largest);
  }

  private noteCost(cost: number): void {
    if (cost > this.largest) this.largest = cost;
    if (cost > this.largestSinceReview) this.largestSinceReview = cost;
    this.dispatches++;
    if (this.dispatches % reviewEvery !== 0) return;
    this.largest = Math.max(this.largestSinceReview, this.largest / 2);
    this.largestSinceReview = 1;
  }
}

function tokensOf({ tokens }: ItemView): number {
  return Math.max(tokens, 1);
}
