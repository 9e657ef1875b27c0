/**
 * Drops of the last five minutes: counts by reason, and by the scope of the limit, in the spans of `History`.
 *
 * Invariant: at most one count for each reason, one for the whole queue, and one for each band that dropped lately.
 */
import type { DropReason } from '../../index.js';
import { sum } from './flow-history.js';
import type { ControllerEvents } from './options.js';

export class DropHistory {
  private readonly spans: number;
  private readonly byReason = new Map<DropReason, Uint32Array>();
  /** At the limits of the band, or of one of its flows. */
  private readonly byBand = new Map<number, Uint32Array>();
  private readonly ofWhole: Uint32Array;
  private current = 0;
  readonly stop: () => void;

  constructor(flow: ControllerEvents, spans: number) {
    this.spans = spans;
    this.ofWhole = new Uint32Array(spans);
    this.stop = flow.on('dropped', ({ outcome: { reason, limit, priority } }) => {
      this.count(this.byReason, reason);
      if (limit?.scope === 'global') this.ofWhole[this.current]!++;
      else if (limit !== undefined) this.count(this.byBand, priority);
    });
  }

  turn(): void {
    this.current = (this.current + 1) % this.spans;
    this.ofWhole[this.current] = 0;
    this.forget(this.byReason);
    this.forget(this.byBand);
  }

  /** Those that were, most frequent first. */
  get reasons(): { readonly reason: DropReason; readonly requests: number }[] {
    const all = [...this.byReason].map(([reason, counts]) => ({ reason, requests: sum(counts) }));
    return all.sort((a, b) => b.requests - a.requests || (a.reason < b.reason ? -1 : 1));
  }

  get atGlobalLimit(): number {
    return sum(this.ofWhole);
  }

  atBandLimit(priority: number): number {
    return sum(this.byBand.get(priority));
  }

  private count<K>(counts: Map<K, Uint32Array>, key: K): void {
    let ring = counts.get(key);
    if (ring === undefined) {
      ring = new Uint32Array(this.spans);
      counts.set(key, ring);
    }
    ring[this.current]!++;
  }

  private forget<K>(counts: Map<K, Uint32Array>): void {
    for (const [key, ring] of counts) {
      ring[this.current] = 0;
      if (ring.every((requests) => requests === 0)) counts.delete(key);
    }
  }
}
