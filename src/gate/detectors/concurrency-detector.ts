/** Saturation from what the controller itself has in flight. */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { ItemView } from '../../tiers/views.js';
import type { Constraint, RequestWait } from '../constraint.js';
import type { SaturationDetector } from '../saturation-detector.js';

/** Limits of an endpoint of weight 1; one of weight 3 has three times as much, and every one has a seat. */
export interface ConcurrencyDetectorOptions {
  /** The measure of an endpoint: requests, tokens, or the fuller of the two. @default 'requests' */
  concurrencyMode?: 'requests' | 'tokens' | 'hybrid' | undefined;
  /** Requests in flight at which an endpoint is full. @default 100 */
  maxConcurrency?: number | undefined;
  /** Tokens in flight at which an endpoint is full. @default 1,000,000 */
  maxTokenConcurrency?: number | undefined;
  /** Share by which one endpoint may exceed its limit while the pool as a whole is not full. @default 0 */
  headroom?: number | undefined;
  /**
   * Whether the tokens of a request must fit beside those in flight: it waits until an endpoint has so much room, or is
   * empty. Only with `tokens` and `hybrid`. @default false: an endpoint below its limit takes any request
   */
  countIncoming?: boolean | undefined;
}

const type = 'concurrency-detector';
const optionsSchema = s.object(
  {
    concurrencyMode: s.optional(s.oneOf('requests', 'tokens', 'hybrid'), 'requests'),
    maxConcurrency: s.optional(s.positiveInteger(), 100),
    maxTokenConcurrency: s.optional(s.positiveInteger(), 1_000_000),
    headroom: s.optional(s.atLeastZero(), 0),
    countIncoming: s.optional(s.flag(), false),
  },
  countsTokens,
);

function countsTokens({ concurrencyMode, countIncoming }: Partial<ConcurrencyDetectorOptions>, report: s.Report): void {
  if (countIncoming === true && (concurrencyMode ?? 'requests') === 'requests')
    report('"tokens" or "hybrid", because countIncoming counts tokens', ['concurrencyMode'], '"requests"');
}

/**
 * In-flight work over capacity, which follows the endpoints' `weight`. `requests` and `tokens`: sums over the pool,
 * O(1); `hybrid`: the mean over endpoints, by weight, of the fuller dimension, O(endpoints). It is exact and
 * instantaneous, but does not know what the requests cost the server. `filter` keeps the endpoints below
 * `limit · weight · (1 + headroom)`. With `countIncoming` a request goes only where its tokens fit below that limit
 * too, or where no tokens are in flight, so that a request larger than the limit runs alone. While it waits,
 * `holBlocking` says what waits behind it. Source: llm-d-router, concurrency-detector. @throws FlowConfigError
 */
export function concurrencyDetector(
  options: ConcurrencyDetectorOptions = {},
): SaturationDetector & Partial<Constraint> {
  const settings = s.parse(optionsSchema, options, 'concurrencyDetector');
  const { concurrencyMode, maxConcurrency, maxTokenConcurrency, headroom, countIncoming } = settings;
  const isByTokens = concurrencyMode === 'tokens';
  let summed: readonly EndpointView[] | undefined;
  let capacity = 0;

  function seatsOf({ weight }: EndpointView, share = 1): number {
    return Math.max(1, Math.floor(maxConcurrency * weight * share));
  }
  function tokensOf({ weight }: EndpointView, share = 1): number {
    return Math.max(1, Math.floor(maxTokenConcurrency * weight * share));
  }
  function fullness(endpoint: EndpointView): number {
    return Math.max(endpoint.inFlightRequests / seatsOf(endpoint), endpoint.inFlightTokens / tokensOf(endpoint));
  }
  function hasRoom(endpoint: EndpointView): boolean {
    if (!isByTokens && endpoint.inFlightRequests >= seatsOf(endpoint, 1 + headroom)) return false;
    return concurrencyMode === 'requests' || endpoint.inFlightTokens < tokensOf(endpoint, 1 + headroom);
  }
  function fits({ tokens }: ItemView): (endpoint: EndpointView) => boolean {
    return (endpoint) =>
      endpoint.inFlightTokens === 0 || endpoint.inFlightTokens + tokens <= tokensOf(endpoint, 1 + headroom);
  }

  return {
    type,
    saturation(pool) {
      if (pool.endpoints.length === 0) return 1;
      // Another array when members or weights have changed.
      if (pool.endpoints !== summed) {
        summed = pool.endpoints;
        capacity = summed.reduce((sum, endpoint) => sum + (isByTokens ? tokensOf : seatsOf)(endpoint), 0);
      }
      if (concurrencyMode === 'requests') return pool.inFlightRequests / capacity;
      if (isByTokens) return pool.inFlightTokens / capacity;
      let sum = 0;
      let total = 0;
      for (const endpoint of pool.endpoints) {
        sum += endpoint.weight * fullness(endpoint);
        total += endpoint.weight;
      }
      return sum / total;
    },
    filter: (endpoints) => endpoints.filter(hasRoom),
    ...(countIncoming && {
      withRoomFor: (endpoints: readonly EndpointView[], item: ItemView) => endpoints.filter(hasRoom).filter(fits(item)),
      waitOf: (_endpoints: readonly EndpointView[], { tokens }: ItemView, nowMs: number): RequestWait => ({
        atMs: Infinity,
        notBeforeMs: nowMs,
        missing: `a server with room for its ${tokens} tokens`,
      }),
    }),
    ...(!isByTokens && { seatsOf: (endpoint: EndpointView) => seatsOf(endpoint, 1 + headroom) }),
    /** Only dispatches, releases and changes of the pool move it, and the controller sees all of them. */
    subscribe: () => () => {},
  };
}

/** In llm-d the detector reads counters from a producer plugin that a parameter names; here the controller counts. */
function withoutProducer<T>(schema: s.Schema<T>): s.Schema<T> {
  return s.element(
    (given, report) => {
      if (typeof given !== 'object' || given === null || !('inFlightLoadProducerName' in given))
        return s.readBy(schema, given, report);
      const { inFlightLoadProducerName: _, ...parameters } = given;
      return s.readBy(schema, parameters, report);
    },
    (of) => ({ ...of(schema), additionalProperties: { description: 'inFlightLoadProducerName alone, as in llm-d.' } }),
  );
}

const parameters = /* @__PURE__ */ withoutProducer(optionsSchema);
export const concurrencyDetectorPlugin: Definition<SaturationDetector> = define(type, parameters, concurrencyDetector);
