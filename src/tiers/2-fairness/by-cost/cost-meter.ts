/**
 * Puts a price on work that is predicted, under way or done. Invariant: every figure that leaves it is finite, from 0
 * up and at most 2^53; for predicted work above 0. If a foreign function answers otherwise, a fallback replaces it for
 * this request, and `throwFault` throws the first such fault.
 */
import { requestField } from '../../../base/request-field.js';
import type { ItemView } from '../../views.js';
import type { ChargeMode, CostFunction, CostOptions, Work } from './cost-options.js';
import { leastWeight, mostCost } from './cost-options.js';
import { AverageTable, type OutputPredictor } from './output-predictor.js';

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type WeightOf = NonNullable<CostOptions['weightOf']>;

/** Answers over which averages move. */
const window = 5;

export class CostMeter {
  readonly charge: ChargeMode;
  /** The work that is priced; written anew for each request. */
  readonly work: Writable<Work> = { promptTokens: 0, cachedPromptTokens: 0, completionTokens: 0, seatMs: 0 };
  /** Undefined where costs are in one of the known units. */
  private readonly foreignCost: CostFunction | undefined;
  private readonly countsRequests: boolean;
  private readonly countsTokens: boolean;
  private readonly countsSeats: boolean;
  private readonly promptTokenPrice: number;
  private readonly completionTokenPrice: number;
  /** Undefined where `answers` predicts. */
  private readonly predictor: OutputPredictor | undefined;
  private readonly answers: AverageTable;
  private readonly seatMs: AverageTable;
  private readonly expectedTokens: number;
  private readonly workOf: CostOptions['workOf'];
  private readonly modelFor: CostOptions['modelOf'];
  private readonly weightFor: CostOptions['weightOf'];
  private fault: unknown = undefined;

  constructor(options: CostOptions) {
    const { cost = 'tokens', promptTokenPrice = 1, completionTokenPrice = 2 } = options;
    const { expectedCompletionTokens = 256, expectedSeatSeconds = 10 } = options;
    this.charge = options.charge ?? 'predict';
    this.promptTokenPrice = promptTokenPrice;
    this.completionTokenPrice = completionTokenPrice;
    this.foreignCost = typeof cost === 'function' ? cost : undefined;
    this.countsRequests = cost === 'requests';
    this.countsTokens = typeof cost === 'function' || cost === 'tokens';
    this.countsSeats = typeof cost === 'function' || cost === 'seat-seconds';
    this.expectedTokens = expectedCompletionTokens;
    this.predictor = options.predictor;
    this.answers = new AverageTable(window, expectedCompletionTokens);
    this.seatMs = new AverageTable(window, expectedSeatSeconds * 1000);
    this.workOf = options.workOf;
    this.modelFor = options.modelOf;
    this.weightFor = options.weightOf;
  }

  /** Throws the first fault of a foreign function since the last call, as a plugin error; when the books are right. */
  throwFault(): void {
    const { fault } = this;
    if (fault === undefined) return;
    this.fault = undefined;
    throw fault;
  }

  modelOf(item: ItemView): string {
    return this.modelFor === undefined ? '' : this.foreignModel(this.modelFor, item);
  }

  weightOf(fairnessId: string, item: ItemView, configured: number): number {
    return this.weightFor === undefined ? configured : this.foreignWeight(this.weightFor, fairnessId, item, configured);
  }

  /** Writes down the work that the request is predicted to ask for; returns its cost. `idHash`: of its fairness ID. */
  predict(item: ItemView, model: string, idHash: number): number {
    const { work, predictor } = this;
    const { estimate } = item;
    // It wins over everything.
    const workOf = estimate === undefined ? this.workOf : undefined;
    // What a request books may be its answer too.
    const told = this.countsTokens ? requestField(estimate ?? item.request, 'inputTokens') : undefined;
    work.promptTokens = isTokens(told) ? told : item.tokens;
    work.cachedPromptTokens = estimate?.cachedTokens ?? 0;
    work.completionTokens = 0;
    work.seatMs = this.countsSeats ? this.seatMs.at(idHash, model) : 0;
    if (this.countsTokens && (workOf === undefined || !this.isTold(workOf, item))) {
      work.completionTokens =
        estimate?.outputTokens ??
        (predictor === undefined ? this.answers.at(idHash, model) : this.foreignTokens(predictor, item, model));
    }
    return this.price(true);
  }

  /** The cost of `work`. */
  price(isPrediction: boolean): number {
    const { work } = this;
    if (this.foreignCost !== undefined) return this.foreignPrice(this.foreignCost, isPrediction);
    if (this.countsTokens) return this.tokenPrice(work) || (isPrediction ? 1 : 0);
    return this.countsRequests ? 1 : Math.min(work.seatMs / 1000, mostCost);
  }

  /** The cost of a request that will run once more, or never ran; where requests are counted, it counts as none. */
  priceOfAttempt(): number {
    return this.countsRequests ? 0 : this.price(false);
  }

  observe({ fairnessId }: ItemView, model: string, idHash: number, completionTokens: number, seatMs: number): void {
    if (this.countsSeats) this.seatMs.add(idHash, model, seatMs);
    if (!this.countsTokens || completionTokens === 0) return;
    if (this.predictor === undefined) this.answers.add(idHash, model, completionTokens);
    else this.tellPredictor(this.predictor, fairnessId, model, completionTokens);
  }

  private tokenPrice({ promptTokens, cachedPromptTokens, completionTokens }: Work): number {
    const uncachedTokens = Math.max(promptTokens - cachedPromptTokens, 0);
    return Math.min(this.promptTokenPrice * uncachedTokens + this.completionTokenPrice * completionTokens, mostCost);
  }

  // The part that calls foreign functions is a method of its own, because a method with a closure in it allocates at
  // every call (bench: fairness).

  private foreignModel(modelFor: NonNullable<CostOptions['modelOf']>, item: ItemView): string {
    const model = this.guard(() => modelFor(item));
    if (typeof model === 'string' || model === undefined) return model ?? '';
    this.blame('modelOf', 'text or undefined', model);
    return '';
  }

  private foreignWeight(weightFor: WeightOf, fairnessId: string, item: ItemView, configured: number): number {
    const weight = this.guard(() => weightFor(fairnessId, item));
    if (typeof weight === 'number' && weight >= leastWeight && weight <= mostCost) return weight;
    this.blame('weightOf', `a number from ${leastWeight} to 2^53`, weight);
    return configured;
  }

  private foreignPrice(price: CostFunction, isPrediction: boolean): number {
    const cost = this.guard(() => price(this.work));
    if (typeof cost === 'number' && (isPrediction ? cost > 0 : cost >= 0) && cost <= mostCost) return cost;
    this.blame('cost', isPrediction ? 'a number above 0, at most 2^53' : 'a number from 0 to 2^53', cost);
    return Math.max(this.tokenPrice(this.work), isPrediction ? 1 : 0);
  }

  /** Takes what the host knows beforehand; true when that includes the length of the answer. */
  private isTold(workOf: NonNullable<CostOptions['workOf']>, item: ItemView): boolean {
    const { work } = this;
    const told = this.guard(() => workOf(item)) ?? {};
    const { promptTokens = item.tokens, cachedPromptTokens = 0, completionTokens } = told;
    if (!isTokens(promptTokens) || !isTokens(cachedPromptTokens) || !isTokens(completionTokens ?? 0)) {
      const got = `${promptTokens}, ${cachedPromptTokens}, ${completionTokens}`;
      this.blame('workOf', 'numbers of tokens from 0 to 2^53', got);
      return false;
    }
    if (promptTokens === 0 && completionTokens === 0 && this.foreignCost === undefined) {
      this.blame('workOf', 'a prompt or an answer of more than 0 tokens', '0, 0');
      return false;
    }
    work.promptTokens = promptTokens;
    work.cachedPromptTokens = cachedPromptTokens;
    work.completionTokens = completionTokens ?? 0;
    return completionTokens !== undefined;
  }

  private foreignTokens(predictor: OutputPredictor, item: ItemView, model: string): number {
    const tokens = this.guard(() => predictor.predict(item, model));
    if (typeof tokens === 'number' && tokens > 0 && tokens <= mostCost) return tokens;
    this.blame('predictor.predict', 'a number above 0, at most 2^53', tokens);
    return this.expectedTokens;
  }

  private tellPredictor(predictor: OutputPredictor, fairnessId: string, model: string, completionTokens: number): void {
    this.guard(() => predictor.observe(fairnessId, model, completionTokens));
  }

  /** The answer of a foreign function; undefined when it throws. */
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

function isTokens(tokens: unknown): tokens is number {
  return typeof tokens === 'number' && tokens >= 0 && tokens <= mostCost;
}
