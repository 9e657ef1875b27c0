/** Tier 1's question: of the bands that may dispatch now, which goes next? */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import type { PriorityBand } from '../priority-band.js';

/** Invariant: `choose` gets the waiting bands with an open ceiling, the highest first, never none, and returns one. */
export interface BandOrder {
  /** True when bands must know their oldest waiting request. */
  readonly needsOldest: boolean;
  choose(open: readonly PriorityBand[], all: readonly PriorityBand[], saturation: number): PriorityBand;
  /** True when `dispatched` must be called. */
  hearsDispatches?: boolean;
  dispatched?(priority: number): void;
  /** Sets the receiver of faults, for an order that is foreign code. */
  reportTo?(errors: PluginErrorSink): void;
}

/** The place of `priority` in `bands`, or the place where it belongs. O(log n). */
export function position(bands: readonly { readonly priority: number }[], priority: number): number {
  let low = 0;
  let high = bands.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((bands[middle] as { readonly priority: number }).priority > priority) low = middle + 1;
    else high = middle;
  }
  return low;
}

function highest(open: readonly PriorityBand[]): PriorityBand {
  return open[0] as PriorityBand;
}

/** Where a band has no oldest request. It never happens: a band that waits has one when the order needs it. */
const none = { sequence: 0, enqueuedAtMs: 0 };

function oldestOf({ arrivals }: PriorityBand): { readonly sequence: number; readonly enqueuedAtMs: number } {
  return arrivals?.peek() ?? none;
}

/** The band of the request with the least `key`; ties by arrival. O(bands). */
function leastBy(open: readonly PriorityBand[], key: (band: PriorityBand) => number): PriorityBand {
  let least = highest(open);
  let leastKey = key(least);
  for (const band of open) {
    const candidate = key(band);
    if (candidate < leastKey || (candidate === leastKey && oldestOf(band).sequence < oldestOf(least).sequence)) {
      least = band;
      leastKey = candidate;
    }
  }
  return least;
}

/** Higher priority first, always. */
export const strictOrder: BandOrder = { needsOldest: false, choose: highest };

/** The oldest request's band: priorities only decide how far the gate is open. Source: BLIS, dispatch order fifo. */
export const fifoOrder: BandOrder = { needsOldest: true, choose: (open) => leastBy(open, () => 0) };

/**
 * The least `enqueuedAtMs + place · promotionMs` goes, places counted down from the highest band. Only requests of the
 * j-th band above that come within j · promotionMs overtake. 0: first come, first served; Infinity: strict.
 */
export function agingOrder(promotionMs: number): BandOrder {
  // Infinities do not tell the lower bands apart.
  if (promotionMs === Infinity) return strictOrder;
  return {
    needsOldest: true,
    choose: (open, all) =>
      leastBy(open, (band) => oldestOf(band).enqueuedAtMs + position(all, band.priority) * promotionMs),
  };
}
