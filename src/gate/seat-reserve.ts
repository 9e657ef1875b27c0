/**
 * Room that stays free for important requests because running ones had to be evicted for them. Without a reserve,
 * dispensable work gets the seat as soon as the important request ends, and the next important request evicts it again:
 * work is begun and thrown away. The reserve is as large as what was evicted within the last `windowMs`, so that it
 * grows while evictions go on, and is gone that long after the last one. It holds no band below half of its ceiling.
 * Invariant: a band finds reserved what was evicted for bands above it, nothing else.
 */

interface Eviction {
  /** The priority of the band that lacked room. */
  readonly priority: number;
  /** The saturation that one victim frees. */
  readonly credit: number;
  readonly atMs: number;
}

export class SeatReserve {
  /** How long the reserve lasts, ms. Written by InFlightEviction. */
  windowMs: number;
  /** In the order in which they happened. */
  private readonly evictions: Eviction[] = [];

  constructor(windowMs: number) {
    this.windowMs = windowMs;
  }

  add(priority: number, credit: number, nowMs: number): void {
    this.evictions.push({ priority, credit, atMs: nowMs });
  }

  /** Frees the part of the reserve whose evictions are over. Cost: O(evictions that end). */
  refresh(nowMs: number): void {
    const { evictions, windowMs } = this;
    let ended = 0;
    while (ended < evictions.length && (evictions[ended] as Eviction).atMs + windowMs <= nowMs) ended++;
    if (ended > 0) evictions.splice(0, ended);
  }

  /** The saturation up to which a band may dispatch: its ceiling less the reserve above it, at least half of it. */
  limit(priority: number, ceiling: number): number {
    let kept = 0;
    for (const eviction of this.evictions) if (eviction.priority > priority) kept += eviction.credit;
    return ceiling - Math.min(kept, ceiling / 2);
  }

  /** When the reserve next shrinks, an instant after `nowMs`; Infinity while there is none. */
  shrinksAtMs(nowMs: number): number {
    this.refresh(nowMs);
    const [first] = this.evictions;
    return first === undefined ? Infinity : first.atMs + this.windowMs;
  }
}
