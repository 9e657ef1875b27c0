/**
 * All bands, highest priority first, and those of them that have requests waiting.
 *
 * Invariant: `waiting` holds exactly the bands with waiting requests; both arrays are in descending order of priority.
 */
import type { PriorityBand } from './priority-band.js';

/** Where `priority` stands, or belongs, in a descending array. O(log n). */
export function position(bands: readonly PriorityBand[], priority: number): number {
  let low = 0;
  let high = bands.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((bands[middle] as PriorityBand).priority > priority) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class BandTable {
  /** Rises whenever the set of bands that the ceilings are computed for may have changed. */
  version = 0;
  private readonly byPriority = new Map<number, PriorityBand>();
  private readonly ordered: PriorityBand[] = [];
  private readonly waiting: PriorityBand[] = [];
  /** A field of its own, because an array that may be empty is slow to ask for its first member (bench: try). */
  highestWaiting: PriorityBand | undefined = undefined;

  get size(): number {
    return this.ordered.length;
  }

  get(priority: number): PriorityBand | undefined {
    return this.byPriority.get(priority);
  }

  /** Highest priority first. */
  all(): readonly PriorityBand[] {
    return this.ordered;
  }

  get lowestWaiting(): PriorityBand | undefined {
    return this.waiting[this.waiting.length - 1];
  }

  /** Highest priority first. */
  allWaiting(): readonly PriorityBand[] {
    return this.waiting;
  }

  add(band: PriorityBand): void {
    this.byPriority.set(band.priority, band);
    this.ordered.splice(position(this.ordered, band.priority), 0, band);
    this.version++;
  }

  /** The band must be empty. */
  remove(band: PriorityBand): void {
    this.byPriority.delete(band.priority);
    this.ordered.splice(position(this.ordered, band.priority), 1);
    this.version++;
  }

  /** The band got its first waiting request. */
  activated(band: PriorityBand): void {
    this.waiting.splice(position(this.waiting, band.priority), 0, band);
    this.highestWaiting = this.waiting[0];
    if (!band.isConfigured) this.version++;
  }

  /** The band's last waiting request went. */
  deactivated(band: PriorityBand): void {
    this.waiting.splice(position(this.waiting, band.priority), 1);
    this.highestWaiting = this.waiting[0];
    if (!band.isConfigured) this.version++;
  }
}
