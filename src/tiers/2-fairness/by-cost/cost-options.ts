/** The cost of a request: its work, and the options by which the policies that share by cost put a price on it. */
import * as s from '../../../base/schema/schema.js';
import type { ItemView } from '../../views.js';
import { aPredictor, type OutputPredictor } from './output-predictor.js';

/** The work that a request asks of a server: predicted, or as far as it is known. Figures from 0 up. */
export interface Work {
  readonly promptTokens: number;
  /** The part of the prompt that the server had cached. */
  readonly cachedPromptTokens: number;
  readonly completionTokens: number;
  /** How long it holds its seat, ms. */
  readonly seatMs: number;
}

/** A cost from 0 up, at most 2^53, above 0 for work that is predicted. `work` is reused: do not keep it. */
export type CostFunction = (work: Work) => number;

/** `predict`: what is predicted, at dispatch. `stream`: the prompt then, the rest as reported. `settle`: at the end. */
export type ChargeMode = 'predict' | 'stream' | 'settle';

/** The options that a file can hold. */
export interface CostParameters {
  /** @default 'tokens' */
  cost?: 'tokens' | 'requests' | 'seat-seconds' | undefined;
  /** Of a prompt token that was not cached, above 0; cached ones are free. @default 1 */
  promptTokenPrice?: number | undefined;
  /** Above 0. @default 2 */
  completionTokenPrice?: number | undefined;
  /** When a request is charged; at its end it has been charged what it cost in any case. @default 'predict' */
  charge?: ChargeMode | undefined;
  /** Completion tokens predicted for a flow of which no request has ended yet, above 0. @default 256 */
  expectedCompletionTokens?: number | undefined;
  /** The same for the time that a seat is held, for costs in seat-seconds; seconds above 0. @default 10 */
  expectedSeatSeconds?: number | undefined;
}

/** Options of every policy that shares by cost. */
export interface CostOptions extends Omit<CostParameters, 'cost'> {
  /** `tokens` at the prices below, `requests`, `seat-seconds`, or a function of the work. @default 'tokens' */
  cost?: CostParameters['cost'] | CostFunction | undefined;
  /** Predicts the length of answers. @default a moving average for each fairness ID and model */
  predictor?: OutputPredictor | undefined;
  /**
   * Tells the host's knowledge of a request's work before it runs; figures that are left out are predicted. A prompt
   * and an answer of 0 are an error, unless `cost` is a function. @default `tokens` of the request as promptTokens
   */
  workOf?: ((item: ItemView) => Partial<Omit<Work, 'seatMs'>>) | undefined;
  /** Answers of one model are predicted apart from those of others. @default one for all */
  modelOf?: ((item: ItemView) => string | undefined) | undefined;
  /** The weight of a request's charge, from 1e-6 up: by fairness ID, or by request. @default the flow's weight */
  weightOf?: ((fairnessId: string, item: ItemView) => number) | undefined;
}

/** Smaller weights would turn a request into a debt for ever. */
export const leastWeight = 1e-6;

/** The largest cost, weight and prediction. */
export const mostCost: number = 2 ** 53;

const costUnit = s.oneOf('tokens', 'requests', 'seat-seconds');

type ShapeOf<O> = { readonly [K in keyof O]-?: s.Schema<O[K]> };

/** The options that files may have. */
export const costShape: ShapeOf<CostParameters> = {
  cost: s.optional(costUnit),
  promptTokenPrice: s.optional(s.aboveZero()),
  completionTokenPrice: s.optional(s.aboveZero()),
  charge: s.optional(s.oneOf('predict', 'stream', 'settle')),
  expectedCompletionTokens: s.optional(s.aboveZero()),
  expectedSeatSeconds: s.optional(s.aboveZero()),
};

/** The same with what only code can say. */
export const costCodeShape: ShapeOf<CostOptions> = /* @__PURE__ */ s.withKeys(costShape, {
  cost: s.optional(
    s.value(
      '"tokens", "requests", "seat-seconds", or a function of the work',
      (given): given is NonNullable<CostOptions['cost']> =>
        typeof given === 'function' || s.validate(costUnit, given).ok,
    ),
  ),
  predictor: s.optional(/* @__PURE__ */ aPredictor()),
  workOf: s.optional(s.callable()),
  modelOf: s.optional(s.callable()),
  weightOf: s.optional(s.callable()),
});

/** Of policies with no options but those of costs. */
export const costParameters: s.Schema<CostParameters> = /* @__PURE__ */ s.object(costShape);
export const costOptions: s.Schema<CostOptions> = /* @__PURE__ */ s.object(costCodeShape);
