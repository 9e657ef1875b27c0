/** Cost of ended requests, never falling, although tenants are forgotten. Invariant: totals end with their band. */
import { type BoundedLabel, otherLabel } from '../../base/bounded-label.js';
import type { BandFigures, LabelledValue } from './labelled-flows.js';

interface BandTotals {
  /** The totals of each fairness ID when it was last read; `otherLabel` for those that the band does not tell apart. */
  seen: Map<string, number>;
  readonly totals: Map<string, number>;
}

export class ServiceTotals {
  private bands = new Map<number, BandTotals>();
  private readonly labels: BoundedLabel | undefined;

  constructor(labels: BoundedLabel | undefined) {
    this.labels = labels;
  }

  /** Reads every band that shares by cost. O(fairness IDs that were served lately), at most 1,000 in each. */
  read(figures: readonly BandFigures[]): LabelledValue[] {
    const bands = new Map<number, BandTotals>();
    for (const band of figures) {
      const service = band.service();
      if (service === undefined) continue;
      const known = this.bands.get(band.priority) ?? { seen: new Map(), totals: new Map() };
      bands.set(band.priority, known);
      const seen = new Map<string, number>();
      for (const { fairnessId, settled } of [...service.flows, { fairnessId: '', settled: service.others.settled }]) {
        const before = known.seen.get(fairnessId) ?? 0;
        seen.set(fairnessId, settled);
        // The total is less than before: the band removed the tenant in the meantime, and counts it anew.
        const gained = settled < before ? settled : settled - before;
        if (!(gained > 0)) continue;
        const named = fairnessId === '' ? otherLabel : fairnessId;
        const label = this.labels?.of(named) ?? '';
        known.totals.set(label, (known.totals.get(label) ?? 0) + gained);
      }
      known.seen = seen;
    }
    this.bands = bands;
    return [...bands].flatMap(([priority, { totals }]) =>
      Array.from(totals, ([label, value]) => ({ priority, label, value })),
    );
  }
}
