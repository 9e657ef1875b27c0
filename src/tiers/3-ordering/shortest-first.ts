/** Shortest predicted request first, and waiting makes up for length. */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import { aPredictor, type OutputPredictor } from '../2-fairness/by-cost/output-predictor.js';
import type { ItemView } from '../views.js';
import type { OrderingPolicy } from './ordering-policy.js';

const type = 'shortest-first-ordering-policy';

export interface ShortestFirstParameters {
  /**
   * Seconds of waiting that one second of work is worth, above 0: towards 0 it is first come, first served, and large
   * values let short requests pass long ones for long. @default 10
   */
  aging?: number | undefined;
  /** How fast a server reads a prompt, above 0. @default 5000 */
  promptTokensPerSecond?: number | undefined;
  /** How fast it writes an answer, above 0. @default 50 */
  completionTokensPerSecond?: number | undefined;
}

export interface ShortestFirstOptions extends ShortestFirstParameters {
  /** Predicts answers, such as the one that the fairness policy learns with. @default prompts alone count */
  predictor?: OutputPredictor | undefined;
  /** The model whose answers the predictor is asked for, as the fairness policy has it. @default one for all */
  modelOf?: ((item: ItemView) => string | undefined) | undefined;
  /** Seconds of work of a request, above 0; replaces the figures above. @default by its tokens */
  secondsOf?: ((item: ItemView) => number) | undefined;
  /** What waiting costs a request among others of its length, above 0: its work is divided by it. @default 1 */
  weightOf?: ((item: ItemView) => number) | undefined;
}

const shape = {
  aging: s.optional(s.aboveZero(), 10),
  promptTokensPerSecond: s.optional(s.aboveZero(), 5000),
  completionTokensPerSecond: s.optional(s.aboveZero(), 50),
};

const fileParameters = s.object(shape);
const codeOptions = s.object(
  s.withKeys(shape, {
    predictor: s.optional(aPredictor()),
    modelOf: s.optional(s.callable<(item: ItemView) => string | undefined>()),
    secondsOf: s.optional(s.callable<(item: ItemView) => number>()),
    weightOf: s.optional(s.callable<(item: ItemView) => number>()),
  }),
);

function positive(name: string, figure: number): number {
  if (figure > 0 && figure < Infinity) return figure;
  throw new RangeError(`${name} must return a number above 0; got ${String(figure)}`);
}

function modelName(model: unknown): string {
  if (typeof model === 'string' || model === undefined) return model ?? '';
  throw new RangeError(`modelOf must return text or undefined; got ${String(model)}`);
}

/**
 * The least `work / weight + arrival / aging` goes first, in seconds; ties in arrival order. A request is overtaken
 * only by requests that come less than `aging` · (its work − theirs) after it, so that nothing starves. The work is
 * predicted once, when the request is first looked at. O(log requests). Source: shortest predicted job first with
 * ageing; weighted, Smith's rule (WSPT). @throws FlowConfigError
 */
export function shortestFirst(options: ShortestFirstOptions = {}): OrderingPolicy {
  const settings = s.parse(codeOptions, options, 'shortestFirst');
  const { aging, promptTokensPerSecond, completionTokensPerSecond, predictor, modelOf, secondsOf, weightOf } = settings;
  /** Work by weight. A request that has left is still compared for a while, when its payload is gone. */
  const known = new WeakMap<ItemView, number>();
  const promptSeconds = ({ tokens }: ItemView): number => tokens / promptTokensPerSecond;
  const answerSeconds = (item: ItemView): number => {
    if (predictor === undefined) return 0;
    const model = modelOf === undefined ? '' : modelName(modelOf(item));
    return positive('predictor.predict', predictor.predict(item, model)) / completionTokensPerSecond;
  };
  const predict = (item: ItemView): number => {
    const seconds =
      secondsOf === undefined ? promptSeconds(item) + answerSeconds(item) : positive('secondsOf', secondsOf(item));
    return weightOf === undefined ? seconds : seconds / positive('weightOf', weightOf(item));
  };
  const isForeign = predictor !== undefined || secondsOf !== undefined || weightOf !== undefined;
  const workOf = (item: ItemView): number => {
    if (!isForeign) return promptSeconds(item);
    const before = known.get(item);
    if (before !== undefined) return before;
    // If a function fails, the prompt counts as the work, and the error is reported once.
    known.set(item, promptSeconds(item));
    const work = predict(item);
    known.set(item, work);
    return work;
  };
  // Two keys of Infinity could not be compared.
  const keyOf = (item: ItemView): number => Math.min(workOf(item) + item.enqueuedAtMs / 1000 / aging, Number.MAX_VALUE);
  return { type, compare: (a, b) => keyOf(a) - keyOf(b) };
}

export const shortestFirstPlugin: Definition<OrderingPolicy> = define(type, fileParameters, shortestFirst);
