/** Estimates what a request will consume, and learns from answers. Invariant: finite, from 0 up, whatever it says. */
import { requestField, textIn } from '../../base/request-field.js';
import type { ItemView, Usage } from '../../tiers/views.js';
import type { QuotaEstimate, ResolvedQuotaOptions } from './quota-options.js';
import type { QuotaUnit } from './rate-limit-headers.js';

/** The amount of each unit that one request takes. */
export type Amounts = Readonly<Record<QuotaUnit, number>>;

/** Pairs of model and tenant that are remembered; beyond that all are forgotten and learnt anew. */
const mostAverages = 10_000;
/** The weight of the last answer in the average. */
const newest = 0.2;

type EstimateOptions = Pick<ResolvedQuotaOptions, 'estimate' | 'output' | 'defaultOutputTokens' | 'prices'>;

export class RequestEstimate {
  private readonly options: EstimateOptions;
  /** The recent length of answers, in tokens, by model and tenant. */
  private readonly averages = new Map<string, number>();

  constructor(options: EstimateOptions) {
    this.options = options;
  }

  of(item: ItemView): Amounts {
    const given: QuotaEstimate = item.estimate ?? this.options.estimate?.(item) ?? {};
    const ownInput = validAmount(requestField(item.request, 'inputTokens'));
    const inputTokens = validAmount(given.inputTokens) ?? ownInput ?? item.tokens;
    const outputTokens = validAmount(given.outputTokens) ?? this.outputOf(item);
    // If a host gives only `tokens`, this is all that it knows; nothing is added.
    const isSplit = given.inputTokens !== undefined || given.outputTokens !== undefined || ownInput !== undefined;
    const tokens = validAmount(given.tokens) ?? (isSplit ? inputTokens + outputTokens : item.tokens);
    const cost = validAmount(given.cost) ?? this.costOf(inputTokens, outputTokens);
    return { requests: 1, inputTokens, outputTokens, tokens, cost };
  }

  /** The amounts that a reported request consumed; undefined for figures that cannot be right. */
  actual({ promptTokens: inputTokens, completionTokens: outputTokens }: Usage): Amounts | undefined {
    if (validAmount(inputTokens) === undefined || validAmount(outputTokens) === undefined) return undefined;
    const cost = this.costOf(inputTokens, outputTokens);
    return { requests: 1, inputTokens, outputTokens, tokens: inputTokens + outputTokens, cost };
  }

  /** Learns from an answer that ended. */
  learn(key: string, outputTokens: number): void {
    const average = this.averages.get(key);
    if (average === undefined && this.averages.size >= mostAverages) this.averages.clear();
    this.averages.set(key, average === undefined ? outputTokens : average + (outputTokens - average) * newest);
  }

  private outputOf(item: ItemView): number {
    const { output, defaultOutputTokens } = this.options;
    const most = validAmount(requestField(item.request, 'maxOutputTokens'));
    const average = this.averages.get(averageKey(item));
    if (output === 'max-tokens') return most ?? average ?? defaultOutputTokens;
    return average === undefined ? (most ?? defaultOutputTokens) : Math.min(average, most ?? average);
  }

  private costOf(inputTokens: number, outputTokens: number): number {
    const { input = 0, output = 0 } = this.options.prices ?? {};
    return (inputTokens * input + outputTokens * output) / 1e6;
  }
}

/** The model that a request asks for; empty where it does not say. */
export function modelOf({ request }: ItemView): string {
  return textIn(requestField(request, 'model')) ?? '';
}

export function averageKey(item: ItemView): string {
  return `${modelOf(item)}\n${item.fairnessId}`;
}

/** Undefined for what is no number of tokens, or no price. */
export function validAmount(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : undefined;
}
