/** Guaranteed shares: what keeps a low band from starving under strict priority. */
import type { PriorityBand } from '../priority-band.js';

/** Credit at which a band is due. */
const due = 1;
/** More would let a band burst after its ceiling was closed; less would lose what is earned by the dispatch that pays. */
const mostCredit = 2;
/** Shares add up in binary. */
const rounding = 1e-9;

/**
 * Gives each band that has a `minShare` that part of all dispatches while it waits, whatever the order of bands says.
 *
 * Every dispatch adds `minShare` to the credit of each waiting band and takes 1 from the band that was served; a band whose credit has
 * reached 1 goes first, the lowest of them. Over any N dispatches during which band i keeps requests waiting it is served at least
 * `minShare · N − (2 + minShare · b)` times, b being the bands with a share.
 */
export class BandShares {
  private readonly credits = new Map<PriorityBand, number>();
  /** False when no band has a share: the order of bands decides alone. */
  isUsed = false;

  /** Takes the bands' shares anew. */
  configure(bands: readonly PriorityBand[]): void {
    this.isUsed = bands.some((band) => band.settings.minShare > 0);
    if (!this.isUsed) this.credits.clear();
  }

  /** The lowest band that is due; undefined when the order of bands decides. O(waiting bands), nothing without shares. */
  due(open: readonly PriorityBand[]): PriorityBand | undefined {
    if (!this.isUsed) return undefined;
    for (let i = open.length - 1; i >= 0; i--) {
      const band = open[i] as PriorityBand;
      if (band.settings.minShare > 0 && (this.credits.get(band) ?? 0) >= due - rounding) return band;
    }
    return undefined;
  }

  dispatched(served: PriorityBand, waiting: readonly PriorityBand[]): void {
    if (!this.isUsed) return;
    for (const band of waiting) {
      const { minShare } = band.settings;
      if (minShare > 0) this.credits.set(band, Math.min((this.credits.get(band) ?? 0) + minShare, mostCredit));
    }
    if (served.settings.minShare > 0) this.credits.set(served, Math.max((this.credits.get(served) ?? 0) - due, -due));
  }

  /** The band has nothing waiting any more: what it had saved is gone. */
  emptied(band: PriorityBand): void {
    if (this.isUsed && (this.credits.get(band) ?? 0) > 0) this.credits.delete(band);
  }

  removed(band: PriorityBand): void {
    this.credits.delete(band);
  }
}
