/** The fallback shares of payers, while the store is away: of each rate a part. */
import { FallbackShare } from '../buckets/fallback-share.js';
import type { BudgetSettings } from './budget-options.js';

interface Shares {
  readonly part: number;
  readonly ofRates: readonly FallbackShare[];
}

export class FallbackShares {
  private readonly byPayer = new Map<string, Shares>();
  private readonly settings: BudgetSettings;

  constructor(settings: BudgetSettings) {
    this.settings = settings;
  }

  /** Takes all costs or none. Returns the ms until the request would pass; 0 when it did. O(rates). */
  take(payer: string, costs: readonly number[]): number {
    const { clock, maxPayers } = this.settings;
    const nowMs = clock.now();
    const shares = this.sharesOf(payer, nowMs);
    const roomAtMs = shares.ofRates.map((share, index) => {
      const cost = costs[index] as number;
      return cost === 0 ? nowMs : share.roomAtMs(cost, nowMs);
    });
    const waitMs = Math.max(nowMs, ...roomAtMs) - nowMs;
    if (waitMs > 0) return Math.ceil(waitMs);
    for (const [index, share] of shares.ofRates.entries()) share.take(costs[index] as number, nowMs);
    this.byPayer.delete(payer);
    this.byPayer.set(payer, shares);
    // The payer that has not paid for the longest time is removed first.
    if (this.byPayer.size > maxPayers)
      for (const oldest of this.byPayer.keys()) {
        this.byPayer.delete(oldest);
        break;
      }
    return 0;
  }

  /** The number of replicas may have changed; what was used counts on. */
  private sharesOf(payer: string, nowMs: number): Shares {
    const { rates, fallbackPart } = this.settings;
    const part = fallbackPart();
    const known = this.byPayer.get(payer);
    if (known?.part === part) return known;
    const used = (index: number): number => known?.ofRates[index]?.usedByAll(nowMs) ?? 0;
    return { part, ofRates: rates.map((rate, index) => new FallbackShare(rate, part, used(index), nowMs)) };
  }
}
