/** Tells tier 1 what bands receive. It is there while a band has a `minShare`, or the order of bands keeps account. */
import type { BandOrder } from '../../tiers/1-priority/band-order.js';
import type { Ending } from '../../tiers/2-fairness/fairness-policy.js';
import type { BandRegistry } from '../../tiers/band-registry.js';
import type { Part } from './parts.js';
import type { SeatLease } from './seats.js';

export class BandAccounts implements Part {
  private readonly bands: BandRegistry;
  private readonly order: BandOrder;

  constructor(bands: BandRegistry, order: BandOrder) {
    this.bands = bands;
    this.order = order;
  }

  seated({ band, item }: SeatLease): void {
    const { shares } = this.bands;
    if (shares.isUsed) shares.dispatched(band, this.bands.allCompeting(), item);
    if (this.order.hearsDispatches === true) this.order.dispatched?.(band.priority);
  }

  /** Nothing is put right where nothing was reported of a request that may have run. */
  ended({ band, item, usage, isReported, isUnsent }: SeatLease, ending: Ending): void {
    const { shares } = this.bands;
    if (!shares.countsTokens) return;
    const isKnown = isReported || isUnsent || ending === 'requeued';
    const tokens = isKnown ? usage.promptTokens + usage.completionTokens : undefined;
    shares.settled(band, this.bands.allCompeting(), item, tokens);
  }
}
