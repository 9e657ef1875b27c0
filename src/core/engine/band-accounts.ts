/** Tells tier 1 what bands receive. It is there while a band has a `minShare`, or the order of bands keeps account. */
import type { BandOrder } from '../../tiers/1-priority/band-order.js';
import type { BandRegistry } from '../../tiers/band-registry.js';
import type { Part } from './parts.js';

export function bandAccounts(bands: BandRegistry, order: BandOrder): Part {
  const { shares } = bands;
  return {
    seated({ band, item }) {
      if (shares.isUsed) shares.dispatched(band, bands.allCompeting(), item);
      if (order.hearsDispatches === true) order.dispatched?.(band.priority);
    },
    /** Nothing is put right where nothing was reported of a request that may have run. */
    ended({ band, item, usage, isReported, isUnsent }, ending) {
      if (!shares.countsTokens) return;
      const isKnown = isReported || isUnsent || ending === 'requeued';
      const tokens = isKnown ? usage.promptTokens + usage.completionTokens : undefined;
      shares.settled(band, bands.allCompeting(), item, tokens);
    },
  };
}
