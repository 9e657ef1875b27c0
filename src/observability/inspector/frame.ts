/** One frame: an overview as the page and the JSON endpoint show it. Bounded in size; no payload, no header, no label. */
import type { ControllerOverview, OutcomeType } from '../../index.js';
import type { OutcomeBucket, OutcomeHistory } from './outcome-history.js';

export interface FrameFlow {
  readonly name: string;
  readonly waiting: number;
  readonly bytes: number;
  readonly isHeld: boolean;
}

export interface FrameBand {
  readonly priority: number;
  readonly waiting: number;
  readonly held: number;
  /** Null: unlimited. */
  readonly maxRequests: number | null;
  readonly saturation: number;
  readonly ceiling: number;
  readonly isGated: boolean;
  readonly fairness: string;
  readonly ordering: string;
  readonly arrivedPerSecond: number;
  readonly dispatchedPerSecond: number;
  readonly timeToDrainMs: number | null;
  readonly flows: readonly FrameFlow[];
  readonly otherFlows: number;
  readonly otherWaiting: number;
}

export interface FrameEndpoint {
  readonly name: string;
  /** Seats taken by this controller's requests. */
  readonly inFlight: number;
  readonly tokens: number;
  readonly isOverloaded: boolean;
  /** Null before the first report. */
  readonly kvCacheUsage: number | null;
  readonly waitingQueueSize: number | null;
  readonly runningRequests: number | null;
  readonly reportAgeMs: number | null;
}

export interface FrameWait {
  readonly flow: string;
  readonly priority: number;
  readonly waitedMs: number;
  readonly ahead: number | null;
  readonly estimatedWaitMs: number | null;
  readonly decidedBy: string;
  readonly why: string;
}

/** What `view=json` answers, and what each server-sent event carries. Rates are per second, times in ms. */
export interface InspectorFrame {
  readonly atMs: number;
  readonly intervalMs: number;
  readonly state: 'open' | 'draining' | 'closed';
  readonly saturation: number;
  readonly isGateClosed: boolean;
  readonly waiting: number;
  readonly waitingTokens: number;
  readonly waitingBytes: number;
  readonly inFlight: number;
  readonly arrivedPerSecond: number;
  readonly dispatchedPerSecond: number;
  readonly timeToDrainMs: number | null;
  readonly pluginErrors: number;
  readonly bands: readonly FrameBand[];
  readonly otherBands: number;
  readonly endpoints: readonly FrameEndpoint[];
  readonly otherEndpoints: number;
  readonly outcomes: {
    readonly totals: Readonly<Record<OutcomeType, number>>;
    readonly bucketMs: number;
    /** Oldest first; null where nobody looked. */
    readonly buckets: readonly OutcomeBucket[];
  };
  readonly slowest: readonly FrameWait[];
}

const longestName = 64;

/** Bounded however long a client made its name. */
export function shortened(name: string): string {
  return name.length <= longestName ? name : `${name.slice(0, longestName - 1)}…`;
}

const rounded = (figure: number, digits = 1): number => Number(figure.toFixed(digits));
const orNull = (figure: number | undefined): number | null => (figure === undefined ? null : rounded(figure));

export function toFrame(
  overview: ControllerOverview,
  history: OutcomeHistory,
  nameOf: (fairnessId: string) => string,
  intervalMs: number,
): InspectorFrame {
  const { atMs, stats, demand, bands, otherBands, endpoints, otherEndpoints, slowest } = overview;
  return {
    atMs: rounded(atMs),
    intervalMs,
    state: stats.state,
    saturation: rounded(demand.saturation, 3),
    isGateClosed: stats.isGateClosed,
    waiting: demand.waiting,
    waitingTokens: demand.waitingTokens,
    waitingBytes: demand.waitingBytes,
    inFlight: demand.inFlight,
    arrivedPerSecond: rounded(demand.arrivedPerSecond),
    dispatchedPerSecond: rounded(demand.dispatchedPerSecond),
    timeToDrainMs: orNull(demand.timeToDrainMs),
    pluginErrors: stats.pluginErrors,
    bands: bands.map(({ flows, maxRequests, saturation, ceiling, arrivedPerSecond, dispatchedPerSecond, timeToDrainMs, ...band }) => ({
      ...band,
      maxRequests: maxRequests === Number.POSITIVE_INFINITY ? null : maxRequests,
      saturation: rounded(saturation, 3),
      ceiling: rounded(Math.min(ceiling, Number.MAX_SAFE_INTEGER), 3),
      isGated: saturation >= ceiling,
      arrivedPerSecond: rounded(arrivedPerSecond),
      dispatchedPerSecond: rounded(dispatchedPerSecond),
      timeToDrainMs: orNull(timeToDrainMs),
      flows: flows.map(({ fairnessId, waiting, waitingBytes, isHeld }) => ({
        name: nameOf(fairnessId),
        waiting,
        bytes: waitingBytes,
        isHeld,
      })),
    })),
    otherBands,
    endpoints: endpoints.map(({ id, inFlightRequests, inFlightTokens, isOverloaded, metrics }) => ({
      name: shortened(id),
      inFlight: inFlightRequests,
      tokens: inFlightTokens,
      isOverloaded,
      kvCacheUsage: metrics === undefined ? null : rounded(metrics.kvCacheUsage, 3),
      waitingQueueSize: metrics?.waitingQueueSize ?? null,
      runningRequests: metrics?.runningRequests ?? null,
      reportAgeMs: orNull(metrics && atMs - metrics.sampledAtMs),
    })),
    otherEndpoints,
    outcomes: { totals: stats.outcomes, bucketMs: history.bucketMs, buckets: history.buckets(atMs) },
    slowest: slowest.map(({ fairnessId, priority, waitedMs, ahead, estimatedWaitMs, decidedBy, text }) => ({
      flow: nameOf(fairnessId),
      priority,
      waitedMs: rounded(waitedMs),
      ahead: ahead ?? null,
      estimatedWaitMs: orNull(estimatedWaitMs),
      decidedBy,
      why: text,
    })),
  };
}
