/** What selectors by cost have in common: the book of charges, and the ledger of what is received and owed. */
import type { BandView, FlowView, ItemView, Usage } from '../../views.js';
import type { Ending } from '../fairness-policy.js';
import type { ServiceFigures } from '../service-figures.js';
import type { CostMeter } from './cost-meter.js';
import { RequestCharges } from './request-charges.js';
import { ServiceLedger } from './service-ledger.js';
import type { ShareTree } from './share-tree.js';

export abstract class CostSelector {
  readonly book: RequestCharges;
  readonly tree: ShareTree;
  /** Undefined until somebody asks for figures. */
  protected ledger: ServiceLedger | undefined = undefined;
  protected readonly meter: CostMeter;
  private readonly band: BandView;

  constructor(band: BandView, tree: ShareTree, meter: CostMeter) {
    this.band = band;
    this.tree = tree;
    this.meter = meter;
    this.book = new RequestCharges(tree, meter);
  }

  get ignoredReports(): number {
    return this.book.ignoredReports;
  }

  consumed(flow: FlowView, _usage: Usage, nowMs: number, item: ItemView, total: Usage): void {
    const amount = this.book.consumed(item, total, nowMs);
    this.ledger?.corrected(flow.fairnessId, amount, nowMs);
    this.meter.throwFault();
  }

  settled(flow: FlowView, usage: Usage, nowMs: number, _tokens: number, item: ItemView, ending: Ending): void {
    const { settledCost } = this.book;
    const amount = this.book.settled(item, usage, nowMs, ending);
    this.ledger?.ended(flow.fairnessId, amount, this.book.settledCost - settledCost, nowMs);
    this.meter.throwFault();
  }

  service(nowMs: number): ServiceFigures {
    if (this.ledger === undefined) {
      this.ledger = new ServiceLedger(nowMs, this.tree.paths);
      for (const flow of this.band.activeFlows()) this.ledger.activated(flow, this.weightOf(flow));
    }
    return this.ledger.figures(nowMs);
  }

  /** The weight is that of its first request, because this one goes next. */
  protected weightOf(flow: FlowView): number {
    const { head, weight } = flow;
    return head === undefined ? weight : this.meter.weightOf(flow.fairnessId, head, weight);
  }
}
