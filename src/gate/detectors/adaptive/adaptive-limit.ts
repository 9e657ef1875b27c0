/** A limit for the whole pool, set after each window of latencies. Invariant: an integer, `minLimit` … `maxLimit`. */

import { describeValue, FlowConfigError } from '../../../base/faults/flow-config-error.js';
import { Listeners } from '../../../base/listeners.js';
import * as s from '../../../base/schema/schema.js';
import type { EndpointView } from '../../../endpoints/endpoint.js';
import type { SaturationDetector } from '../../saturation-detector.js';
import { type LatencyStatistic, type LatencyWindow, latencyWindows } from './latency-window.js';

/** Measured (`ttftMs`), dropped (`isDrop`), or neither, which teaches nothing: cancelled before the first token. */
export interface LatencySample {
  /** From dispatch to the first token, ms. Never to the last one: that is the length of the answer, not the load. */
  readonly ttftMs?: number | undefined;
  /** For the signal `ttft-per-prompt-token`; without it, or with 0, such a sample teaches nothing. */
  readonly promptTokens?: number | undefined;
  /** The server rejected the request, or it ran into a timeout; `ttftMs` is ignored. @default false */
  readonly isDrop?: boolean | undefined;
}

/** A window, and the decision that it led to. */
export interface LimitDecision extends LatencyWindow {
  /** The most requests that were in flight at once. */
  readonly peakInFlight: number;
  /** The limit after it. */
  readonly limit: number;
}

/** A detector that has to be told the results of requests. */
export interface AdaptiveDetector extends SaturationDetector {
  /** Requests in flight at which the pool is full. */
  readonly limit: number;
  /** The last decision; undefined before the first. */
  readonly lastWindow: LimitDecision | undefined;
  /**
   * Reports a result, when the first token has come or cannot come any more. `nowMs` is the controller's clock, by
   * default its latest instant. O(1). @throws FlowConfigError when a figure is negative or no number
   */
  observe(sample: LatencySample, nowMs?: number): void;
}

export interface AdaptiveLimitOptions {
  /** Requests in flight that fill the pool before anything is known. @default 20, or the bound nearest to it */
  initialLimit?: number | undefined;
  /** The limit never falls below. @default 1 */
  minLimit?: number | undefined;
  /** The limit never rises above. @default 1000 */
  maxLimit?: number | undefined;
  /** A window lasts at least this long, ms. @default 1000 */
  windowMs?: number | undefined;
  /** A window has at least this many requests. @default 10 */
  minSamples?: number | undefined;
  /** The measure: the time to the first token, or the same for each token of the prompt. @default 'ttft' */
  signal?: 'ttft' | 'ttft-per-prompt-token' | undefined;
  /** The figure that summarizes a window. @default 'mean' */
  statistic?: LatencyStatistic | undefined;
}

const defaultMaxLimit = 1000;

type ShapeOf<T> = { readonly [K in keyof T]-?: s.Schema<T[K]> };

const limitShape: ShapeOf<AdaptiveLimitOptions> = {
  initialLimit: s.optional(s.positiveInteger()),
  minLimit: s.optional(s.positiveInteger()),
  maxLimit: s.optional(s.positiveInteger()),
  windowMs: s.optional(s.aboveZero()),
  minSamples: s.optional(s.positiveInteger()),
  signal: s.optional(s.oneOf('ttft', 'ttft-per-prompt-token')),
  statistic: s.optional(s.oneOf('mean', 'p50', 'p90')),
};

/** The common options and those of one detector. */
/* @__NO_SIDE_EFFECTS__ */ export function adaptiveOptions<S extends s.Shape>(
  own: S,
): s.Schema<s.Output<Omit<typeof limitShape, keyof S> & S>> {
  return s.object(s.withKeys(limitShape, own), limitsInOrder);
}

/** The limits that were given are in order. */
function limitsInOrder(
  { initialLimit, minLimit = 1, maxLimit = defaultMaxLimit }: AdaptiveLimitOptions,
  report: s.Report,
): void {
  if (minLimit > maxLimit) report(`an integer of at most maxLimit (${maxLimit})`, ['minLimit']);
  else if (initialLimit !== undefined && initialLimit < minLimit)
    report(`at least minLimit (${minLimit})`, ['initialLimit']);
  else if (initialLimit !== undefined && initialLimit > maxLimit)
    report(`at most maxLimit (${maxLimit})`, ['initialLimit']);
}

/**
 * The next limit; the caller brings it within the bounds. It gets the limit so far, which may hold a fraction: that is
 * kept for the next window and not used.
 */
type LimitRule = (window: LimitDecision) => number;

/** `saturation` is requests in flight over the limit; `filter` keeps endpoints below their share of it, by weight. */
export function adaptiveDetector(
  type: string,
  { windowMs = 1000, minSamples = 10, signal = 'ttft', statistic = 'mean', ...limits }: AdaptiveLimitOptions,
  next: LimitRule,
): AdaptiveDetector {
  const { minLimit = 1, maxLimit = defaultMaxLimit, initialLimit = 20 } = limits;
  const clamp = (candidate: number): number => Math.max(minLimit, Math.min(maxLimit, candidate));
  const take = latencyWindows(statistic, windowMs, minSamples);
  const { subscribe, announce } = new Listeners();
  let exactLimit = clamp(initialLimit);
  let limit = exactLimit;
  let lastWindow: LimitDecision | undefined;
  let inFlight = 0;
  let peakInFlight = 0;
  let heardAtMs = 0;
  /** The members of the pool at the last reading: `filter` may get only some of them. */
  let members: readonly EndpointView[] = [];

  function hear(requestsInFlight: number, nowMs: number): void {
    inFlight = requestsInFlight;
    peakInFlight = Math.max(peakInFlight, inFlight);
    heardAtMs = Math.max(heardAtMs, nowMs);
  }

  /** The latency in the unit of the signal; undefined when there is nothing to learn. */
  function measure({ ttftMs, promptTokens }: LatencySample): number | undefined {
    if (ttftMs === undefined || signal === 'ttft') return ttftMs;
    return promptTokens === undefined || promptTokens === 0 ? undefined : ttftMs / promptTokens;
  }

  function decide(window: LatencyWindow): void {
    const before = limit;
    exactLimit = clamp(next({ ...window, peakInFlight, limit: exactLimit }));
    limit = Math.floor(exactLimit);
    lastWindow = Object.freeze({ ...window, peakInFlight, limit });
    peakInFlight = inFlight;
    if (limit > before) announce();
  }

  return {
    type,
    get limit() {
      return limit;
    },
    get lastWindow() {
      return lastWindow;
    },
    observe(sample, nowMs = heardAtMs) {
      checkSample(type, sample, nowMs);
      const latency = sample.isDrop === true ? undefined : measure(sample);
      if (latency === undefined && sample.isDrop !== true) return;
      const window = take(latency, nowMs);
      if (window !== undefined) decide(window);
    },
    saturation(pool, nowMs) {
      hear(pool.inFlightRequests, nowMs);
      members = pool.endpoints;
      return pool.endpoints.length === 0 ? 1 : inFlight / limit;
    },
    filter(endpoints) {
      const totalWeight = (members.length > 0 ? members : endpoints).reduce((sum, { weight }) => sum + weight, 0);
      return endpoints.filter(({ inFlightRequests, weight }) => inFlightRequests < (limit * weight) / totalWeight);
    },
    // These two do not see everything, such as an endpoint that left the pool with its requests; the next reading
    // corrects that.
    dispatched: (_endpoint, nowMs) => hear(inFlight + 1, nowMs),
    released: (_endpoint, nowMs) => hear(inFlight - 1, nowMs),
    /** The controller sees dispatches, releases and changes of the pool; it does not see that a limit rose. */
    subscribe,
  };
}

function checkSample(type: string, { ttftMs = 0, promptTokens = 0 }: LatencySample, nowMs: number): void {
  const isWrong = (figure: number): boolean => !(figure >= 0 && figure < Infinity);
  const issues = Object.entries({ ttftMs, promptTokens }).flatMap(([path, figure]) =>
    isWrong(figure) ? [{ path, expected: 'a number from 0 up', got: describeValue(figure) }] : [],
  );
  if (!Number.isFinite(nowMs))
    issues.push({ path: 'nowMs', expected: 'an instant of the clock, ms', got: describeValue(nowMs) });
  if (issues.length > 0) throw new FlowConfigError(`${type}.observe`, issues);
}
