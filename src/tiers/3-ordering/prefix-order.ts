/** The request whose beginning is most likely cached goes first, and no request is passed for long. */
import { type Definition, define } from '../../base/policy-definition.js';
import { requestField, textIn } from '../../base/request-field.js';
import * as s from '../../base/schema/schema.js';
import type { ItemView } from '../views.js';
import type { OrderingPolicy } from './ordering-policy.js';

const type = 'prefix-ordering-policy';

export interface PrefixOrderParameters {
  /** What marks a common beginning: the text in `request.affinityKey`, or the fairness ID. @default 'affinityKey' */
  by?: 'affinityKey' | 'fairnessId' | undefined;
  /** How many requests may pass the one that has waited longest in its flow; an integer from 0 up. @default 8 */
  overtakings?: number | undefined;
  /** Requests that are looked at for each choice, those that came first; an integer from 1 up. @default 32 */
  lookahead?: number | undefined;
}

export interface PrefixOrderOptions extends PrefixOrderParameters {
  /** How much of a request's prompt is cached, such as tokens; the most goes first. @default how lately its key went */
  prefixScore?: ((item: ItemView) => number) | undefined;
}

const shape = {
  by: s.optional(s.oneOf('affinityKey', 'fairnessId'), 'affinityKey'),
  overtakings: s.optional(s.integer({ from: 0 }), 8),
  lookahead: s.optional(s.positiveInteger(), 32),
};

const fileParameters = s.object(shape);
const codeOptions = s.object(s.withKeys(shape, { prefixScore: s.optional(s.callable<(item: ItemView) => number>()) }));

/** Keys that went lately, the longest ago first. More than servers keep in their caches. */
const mostKeys = 4096;

/**
 * Among the first `lookahead` requests of a flow, the one with the longest cached prefix goes. Ties, and every
 * `overtakings + 1`-th turn, go by arrival, so that the first request is passed `overtakings` times at most. Under a
 * fairness policy by cost this keeps that policy's bound, and the requests of a tenant that begin alike go one after
 * the other. O(lookahead) for each dispatch. Source: the locality of "Locality-aware Fair Scheduling in LLM Serving"
 * (DLPM, 2501.14312), inside a flow instead of between flows. @throws FlowConfigError
 * @example const band = { priority: 0, fairness: virtualTokenCounter(), ordering: prefixOrder() };
 */
export function prefixOrder(options: PrefixOrderOptions = {}): OrderingPolicy {
  const { by, overtakings, lookahead, prefixScore } = s.parse(codeOptions, options, 'prefixOrder');
  const compare = (a: ItemView, b: ItemView): number => a.sequence - b.sequence;
  if (prefixScore !== undefined)
    return { type, arrivalOrder: true, compare, scores: { lookahead, overtakings, score: prefixScore } };
  /** Rises with how lately a request of the key went. */
  const turns = new Map<string | undefined, number>();
  let turn = 0;
  const keyOf = ({ fairnessId, request }: ItemView): string | undefined =>
    by === 'fairnessId' ? fairnessId : textIn(requestField(request, 'affinityKey'));
  const score = (item: ItemView): number => turns.get(keyOf(item)) ?? 0;
  const dispatched = (item: ItemView): void => {
    const key = keyOf(item);
    if (key === undefined) return;
    turns.delete(key);
    turns.set(key, ++turn);
    if (turns.size > mostKeys) turns.delete(turns.keys().next().value);
  };
  return { type, arrivalOrder: true, compare, scores: { lookahead, overtakings, score, dispatched } };
}

export const prefixOrderPlugin: Definition<OrderingPolicy> = define(type, fileParameters, prefixOrder);
