/** Figures of flows, by band and fairness ID as a bounded label tells them apart, or by band alone without one. */
import { type BoundedLabel, otherLabel } from '../../base/bounded-label.js';
import { type BandFigures, eachLabelledFlow, type WaitingFigures } from './labelled-flows.js';

/** What tells a row from the others: those of a band have a priority. */
export interface RowLabels
  extends Partial<Readonly<Record<'fairnessId' | 'group' | 'unit' | 'state' | 'outcome' | 'reason', string>>>,
    Partial<Readonly<Record<'endpoint' | 'dimension' | 'detector' | 'stage', string>>>,
    Partial<Readonly<Record<'priority' | 'per', number>>> {
  readonly resource?: 'requests' | 'bytes';
  readonly learnt?: boolean;
}

export interface Row {
  readonly labels: RowLabels;
  readonly value: number;
}

interface BandTotals {
  /** The totals of each fairness ID when it was last read; `otherLabel` for those that the band does not tell apart. */
  seen: Map<string, number>;
  readonly totals: Map<string, number>;
}

/** Invariant: the cost of ended requests never falls, although tenants are forgotten; totals end with their band. */
export class FlowRows {
  private bands = new Map<number, BandTotals>();
  /** Undefined: fairness IDs are not told. */
  readonly fairnessIds: BoundedLabel | undefined;

  constructor(fairnessIds: BoundedLabel | undefined) {
    this.fairnessIds = fairnessIds;
  }

  /** Of every band that shares by cost. O(fairness IDs that were served lately), at most 1,000 in each. */
  served(figures: readonly BandFigures[]): Row[] {
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
        const label = this.fairnessIds?.of(named) ?? '';
        known.totals.set(label, (known.totals.get(label) ?? 0) + gained);
      }
      known.seen = seen;
    }
    this.bands = bands;
    return [...bands].flatMap(([priority, { totals }]) =>
      Array.from(totals, ([label, value]) => this.row(label, priority, value)),
    );
  }

  /** What `read` finds of each flow that waits. */
  waiting(
    figures: readonly BandFigures[],
    read: (waiting: WaitingFigures, band: BandFigures, label: string) => number | undefined,
  ): Row[] {
    const rows: Row[] = [];
    for (const band of figures) {
      eachLabelledFlow(band, this.fairnessIds, (label, waiting) => {
        const value = read(waiting, band, label);
        if (value !== undefined) rows.push(this.row(label, band.priority, value));
      });
    }
    return rows;
  }

  /** How far each fairness ID that waits, and is told, is ahead of those that go next, where a band keeps account. */
  leads(figures: readonly BandFigures[]): Row[] {
    const kept = this.fairnessIds === undefined ? [] : figures.filter(({ keepsAccount }) => keepsAccount);
    return this.waiting(kept, (_, band, label) => band.leadOf(label));
  }

  private row(fairnessId: string, priority: number, value: number): Row {
    return { labels: { ...(this.fairnessIds && { fairnessId }), priority }, value };
  }
}
