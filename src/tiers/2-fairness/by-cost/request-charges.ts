/**
 * Charges that are open: what each dispatched request was charged so far, and to whom. Invariant: every dispatched
 * request is settled once, and has then been charged exactly what it cost; until then what it was predicted to cost, or
 * has consumed. If it did not see the dispatch of a request, reports and the end of that request change nothing.
 */
import type { WaitingItem } from '../../flow.js';
import type { ItemView, Usage } from '../../views.js';
import type { Ending } from '../fairness-policy.js';
import type { CostMeter } from './cost-meter.js';
import { type ChargeMode, mostCost, type Work } from './cost-options.js';
import type { Share } from './share.js';
import type { ShareTree } from './share-tree.js';

/** The charge of one request so far, and its reasons. */
class Charge {
  charged = 0;
  /** True once the host has reported anything, be it 0. */
  isReported = false;
  /** The usage reported so far. While nothing was reported of a prompt, its prediction counts. */
  promptTokens = 0;
  /** -1 until it was reported; until then the prediction counts. */
  cachedPromptTokens = -1;
  completionTokens = 0;
  /** The sum of the figures that the last report had and that were ignored: the next one may repeat them. */
  ignoredTokens = 0;
  readonly predictedPrompt: number;
  readonly predictedCached: number;
  readonly predictedCompletion: number;
  readonly book: RequestCharges;
  /** The share that is charged. */
  readonly leaf: Share;
  readonly weight: number;
  readonly model: string;
  readonly dispatchedAtMs: number;

  constructor(book: RequestCharges, leaf: Share, weight: number, model: string, predicted: Work, nowMs: number) {
    this.predictedPrompt = predicted.promptTokens;
    this.predictedCached = predicted.cachedPromptTokens;
    this.predictedCompletion = predicted.completionTokens;
    this.book = book;
    this.leaf = leaf;
    this.weight = weight;
    this.model = model;
    this.dispatchedAtMs = nowMs;
  }
}

export class RequestCharges {
  /** Cost of the requests that were settled, and what those in flight have been charged. */
  settledCost = 0;
  openCost = 0;
  /** Reports that went backwards or exceeded 2^53. */
  ignoredReports = 0;
  /** Requests that were dispatched and are not settled. */
  openCharges = 0;
  private readonly tree: ShareTree;
  private readonly meter: CostMeter;
  private readonly mode: ChargeMode;

  constructor(tree: ShareTree, meter: CostMeter) {
    this.tree = tree;
    this.meter = meter;
    this.mode = meter.charge;
  }

  /** A request goes. Returns what it is charged for now. */
  dispatched(leaf: Share, item: ItemView, configuredWeight: number, nowMs: number, hasWaited: boolean): number {
    const { meter } = this;
    const model = meter.modelOf(item);
    const weight = meter.weightOf(item.fairnessId, item, configuredWeight);
    const estimate = meter.predict(item, model, leaf.hashOf(item.fairnessId));
    const charge = new Charge(this, leaf, weight, model, meter.work, nowMs);
    (item as WaitingItem).charge = charge;
    this.openCharges++;
    const charged = this.mode === 'predict' ? estimate : this.priceAtDispatch();
    charge.charged = charged;
    this.openCost += charged;
    leaf.received += charged;
    this.tree.charge(leaf, charged, weight, hasWaited);
    return charged;
  }

  /** A running request was reported to have consumed `total`. Returns what it is charged beyond what it was before. */
  consumed(item: ItemView, total: Usage, nowMs: number): number {
    const charge = this.chargeOf(item);
    if (charge === undefined) return 0;
    charge.isReported = true;
    const ignored = this.take(charge, total);
    // A figure that a later report leaves out stands in its total once more.
    if (ignored > 0 && ignored !== charge.ignoredTokens) this.ignoredReports++;
    charge.ignoredTokens = ignored;
    if (this.mode === 'settle') return 0;
    const cost = this.priceOf(charge, nowMs);
    return this.mode === 'stream' || cost > charge.charged ? this.correct(charge, cost) : 0;
  }

  /** A request ended. Returns what it is charged beyond what it was before, often less than 0. */
  settled(item: ItemView, usage: Usage, nowMs: number, ending: Ending): number {
    const charge = this.chargeOf(item);
    if (charge === undefined) return 0;
    const { meter } = this;
    // Its last report was counted when it came.
    this.take(charge, usage);
    const amount = this.correct(charge, this.costOf(charge, nowMs, ending));
    this.settledCost += charge.charged;
    this.openCost -= charge.charged;
    const { leaf } = charge;
    const seatMs = nowMs - charge.dispatchedAtMs;
    if (ending === 'released')
      meter.observe(item, charge.model, leaf.hashOf(item.fairnessId), charge.completionTokens, seatMs);
    this.tree.settle(leaf);
    (item as WaitingItem).charge = undefined;
    // Sums of fractions leave a remainder.
    if (--this.openCharges === 0) this.openCost = 0;
    return amount;
  }

  /** Undefined for a request that another policy was charged for. */
  private chargeOf(item: ItemView): Charge | undefined {
    const { charge } = item as WaitingItem;
    return charge instanceof Charge && charge.book === this ? charge : undefined;
  }

  /** Takes the figures that went forward; returns the sum of the ignored (backwards or too large), and 1 for each. */
  private take(charge: Charge, usage: Usage): number {
    const { promptTokens, completionTokens, cachedPromptTokens = charge.cachedPromptTokens } = usage;
    let ignored = 0;
    if (promptTokens >= charge.promptTokens && promptTokens <= mostCost) charge.promptTokens = promptTokens;
    else ignored += promptTokens + 1;
    if (completionTokens >= charge.completionTokens && completionTokens <= mostCost)
      charge.completionTokens = completionTokens;
    else ignored += completionTokens + 1;
    if (cachedPromptTokens >= charge.cachedPromptTokens && cachedPromptTokens <= mostCost)
      charge.cachedPromptTokens = cachedPromptTokens;
    else ignored += cachedPromptTokens + 1;
    return ignored;
  }

  private correct(charge: Charge, cost: number): number {
    const amount = cost - charge.charged;
    if (amount === 0) return 0;
    const { leaf } = charge;
    charge.charged = cost;
    leaf.received += amount;
    this.openCost += amount;
    this.tree.correct(leaf, amount, charge.weight);
    return amount;
  }

  private priceAtDispatch(): number {
    if (this.mode === 'settle') return 0;
    const { promptTokens, cachedPromptTokens } = this.meter.work;
    this.write(promptTokens, cachedPromptTokens, 0, 0);
    return this.meter.price(false);
  }

  /** The price of the work so far. */
  private priceOf(charge: Charge, nowMs: number): number {
    const seatMs = nowMs - charge.dispatchedAtMs;
    if (charge.promptTokens > 0) this.write(charge.promptTokens, cachedOf(charge), charge.completionTokens, seatMs);
    else this.write(charge.predictedPrompt, charge.predictedCached, charge.completionTokens, seatMs);
    return this.meter.price(false);
  }

  /**
   * The price at the end. A request that waits again or was never sent costs what was reported; a cancelled one its
   * prompt at least, which may have been read; others without a report what was predicted.
   */
  private costOf(charge: Charge, nowMs: number, ending: Ending): number {
    const { promptTokens, completionTokens } = charge;
    const seatMs = nowMs - charge.dispatchedAtMs;
    if (ending === 'requeued' || ending === 'unsent') {
      this.write(promptTokens, cachedOf(charge), completionTokens, seatMs);
      return this.meter.priceOfAttempt();
    }
    if (ending === 'aborted' || promptTokens > 0 || completionTokens > 0) return this.priceOf(charge, nowMs);
    if (charge.isReported && charge.cachedPromptTokens <= 0) this.write(0, cachedOf(charge), 0, seatMs);
    else this.write(charge.predictedPrompt, charge.predictedCached, charge.predictedCompletion, seatMs);
    return this.meter.price(false);
  }

  private write(promptTokens: number, cachedPromptTokens: number, completionTokens: number, seatMs: number): void {
    const { work } = this.meter;
    work.promptTokens = promptTokens;
    work.cachedPromptTokens = cachedPromptTokens;
    work.completionTokens = completionTokens;
    work.seatMs = seatMs;
  }
}

/** Of the prompt that was reported; where that is not told, what was predicted stands. */
function cachedOf({ cachedPromptTokens, predictedCached, promptTokens }: Charge): number {
  return cachedPromptTokens >= 0 ? cachedPromptTokens : Math.min(predictedCached, promptTokens);
}
