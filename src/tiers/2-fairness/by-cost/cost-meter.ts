/**
 * Puts a price on work that is predicted, under way or done.
 *
 * Invariant: every figure that leaves it is finite, from 0 up and at most 2^53; for predicted work above 0. Foreign functions that answer
 * otherwise are replaced for this request, and `takeFault` tells of the first.
 */
import type { ItemView } from '../../views.js';
import { type CostFunction, type CostOptions, leastWeight, mostCost, type Work } from './cost-options.js';
import { AverageTable, type OutputPredictor, outputPredictor } from './output-predictor.js';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Answers over which averages move. */
const window = 5;

export class CostMeter {
  /** What costs are put on; written anew for each. */
  readonly work: Writable<Work> = { promptTokens: 0, cachedPromptTokens: 0, completionTokens: 0, seatMs: 0 };
  private readonly cost: CostFunction;
  private readonly isForeign: boolean;
  private readonly countsRequests: boolean;
  private readonly countsTokens: boolean;
  private readonly countsSeats: boolean;
  private readonly tokenCost: CostFunction;
  private readonly predictor: OutputPredictor;
  private readonly isForeignPredictor: boolean;
  private readonly seatMs: AverageTable;
  private readonly expectedTokens: number;
  private readonly workOf: CostOptions['workOf'];
  private readonly modelFor: CostOptions['modelOf'];
  private readonly weightFor: CostOptions['weightOf'];
  private fault: unknown = undefined;

  constructor(options: CostOptions) {
    const { cost = 'tokens', promptTokenPrice = 1, completionTokenPrice = 2 } = options;
    const { expectedCompletionTokens = 256, expectedSeatSeconds = 10 } = options;
    this.tokenCost = ({ promptTokens, cachedPromptTokens, completionTokens }) =>
      promptTokenPrice * Math.max(promptTokens - cachedPromptTokens, 0) + completionTokenPrice * completionTokens;
    this.isForeign = typeof cost === 'function';
    this.countsRequests = cost === 'requests';
    this.countsTokens = this.isForeign || cost === 'tokens';
    this.countsSeats = this.isForeign || cost === 'seat-seconds';
    if (typeof cost === 'function') this.cost = cost;
    else if (cost === 'requests') this.cost = () => 1;
    else if (cost === 'seat-seconds') this.cost = ({ seatMs }) => seatMs / 1000;
    else this.cost = this.tokenCost;
    this.expectedTokens = expectedCompletionTokens;
    this.isForeignPredictor = options.predictor !== undefined;
    this.predictor = options.predictor ?? outputPredictor({ window, initialTokens: expectedCompletionTokens });
    this.seatMs = new AverageTable(window, expectedSeatSeconds * 1000);
    this.workOf = options.workOf;
    this.modelFor = options.modelOf;
    this.weightFor = options.weightOf;
  }

  /** The first fault since it was last asked for. */
  takeFault(): unknown {
    const { fault } = this;
    this.fault = undefined;
    return fault;
  }

  modelOf(item: ItemView): string {
    const { modelFor } = this;
    if (modelFor === undefined) return '';
    const model = this.guard(() => modelFor(item));
    if (typeof model === 'string' || model === undefined) return model ?? '';
    this.blame('modelOf', 'text or undefined', model);
    return '';
  }

  weightOf(fairnessId: string, item: ItemView, configured: number): number {
    const { weightFor } = this;
    if (weightFor === undefined) return configured;
    const weight = this.guard(() => weightFor(fairnessId, item));
    if (typeof weight === 'number' && weight >= leastWeight && weight <= mostCost) return weight;
    this.blame('weightOf', `a number from ${leastWeight} to 2^53`, weight);
    return configured;
  }

  /** Writes down what the request is predicted to ask for, and returns what that costs. */
  predict(item: ItemView, model: string): number {
    const { work } = this;
    work.promptTokens = item.tokens;
    work.cachedPromptTokens = 0;
    work.completionTokens = 0;
    work.seatMs = this.countsSeats ? this.seatMs.at(item.fairnessId, model) : 0;
    if (this.countsTokens && !this.isTold(item)) work.completionTokens = this.predictedTokens(item, model);
    return this.price(true);
  }

  /** What `work` costs. */
  price(isPrediction: boolean): number {
    if (!this.isForeign) return Math.min(this.cost(this.work), mostCost);
    const cost = this.guard(() => this.cost(this.work));
    if (typeof cost === 'number' && (isPrediction ? cost > 0 : cost >= 0) && cost <= mostCost) return cost;
    this.blame('cost', isPrediction ? 'a number above 0, at most 2^53' : 'a number from 0 to 2^53', cost);
    return Math.min(Math.max(this.tokenCost(this.work), isPrediction ? 1 : 0), mostCost);
  }

  /** What was consumed by a request that will run once more: a request counts once. */
  priceOfAttempt(): number {
    return this.countsRequests ? 0 : this.price(false);
  }

  observe(fairnessId: string, model: string, completionTokens: number, seatMs: number): void {
    if (this.countsSeats) this.seatMs.add(fairnessId, model, seatMs);
    if (!this.countsTokens || completionTokens === 0) return;
    if (!this.isForeignPredictor) this.predictor.observe(fairnessId, model, completionTokens);
    else this.guard(() => this.predictor.observe(fairnessId, model, completionTokens));
  }

  /** Takes what the host knows beforehand; true when that includes the length of the answer. */
  private isTold(item: ItemView): boolean {
    const { work, workOf } = this;
    if (workOf === undefined) return false;
    const { promptTokens = item.tokens, cachedPromptTokens = 0, completionTokens } = this.guard(() => workOf(item)) ?? {};
    if (!isTokens(promptTokens) || !isTokens(cachedPromptTokens) || !isTokens(completionTokens ?? 0)) {
      this.blame('workOf', 'numbers of tokens from 0 to 2^53', `${promptTokens}, ${cachedPromptTokens}, ${completionTokens}`);
      return false;
    }
    work.promptTokens = promptTokens;
    work.cachedPromptTokens = cachedPromptTokens;
    work.completionTokens = completionTokens ?? 0;
    return completionTokens !== undefined;
  }

  private predictedTokens(item: ItemView, model: string): number {
    if (!this.isForeignPredictor) return this.predictor.predict(item, model);
    const tokens = this.guard(() => this.predictor.predict(item, model));
    if (typeof tokens === 'number' && tokens > 0 && tokens <= mostCost) return tokens;
    this.blame('predictor.predict', 'a number above 0, at most 2^53', tokens);
    return this.expectedTokens;
  }

  /** What a foreign function returns; undefined when it throws. */
  guard<T>(call: () => T): T | undefined {
    try {
      return call();
    } catch (error) {
      this.fault ??= error;
      return undefined;
    }
  }

  /** A foreign function returned something else. */
  blame(name: string, expected: string, got: unknown): void {
    this.fault ??= new RangeError(`${name} must return ${expected}; got ${String(got)}`);
  }
}

function isTokens(tokens: unknown): boolean {
  return typeof tokens === 'number' && tokens >= 0 && tokens <= mostCost;
}
