/** One frame: an overview as the page and the JSON endpoint show it. Bounded; no payload, no header, no label. */
import type { ControllerOverview, DropReason, FlowStats, OutcomeType } from '../../index.js';
import type { ShadowFigures } from '../../types/index.js';
import { type FrameBand, frameBand, type GateState, isGrowing, stateOf } from './bands.js';
import { type History, spanMs } from './history.js';
import { limitOrNull, orNull, rounded, shortenName } from './names.js';
import { type FrameQuotas, type FrameSessions, quotaTable, sessionsOf } from './quotas.js';
import type { FrameShared } from './shared-limits.js';
import { type FrameTenant, tenantTable } from './tenants.js';

/** Dispatched, rejected and evicted in one span; null before the history began. */
export type OutcomeBucket = readonly [dispatched: number, rejected: number, evicted: number] | null;

/** The whole queue and its limits, which hold beside those of the bands. */
export interface FrameWhole {
  readonly waiting: number;
  /** Null: unlimited. */
  readonly maxRequests: number | null;
  readonly bytes: number;
  readonly maxBytes: number | null;
  /** Requests that these limits dropped in the last five minutes; 0 where no history is kept. */
  readonly dropped: number;
}

export interface FrameEndpoint {
  readonly name: string;
  /** Seats taken by this controller's requests. */
  readonly inFlight: number;
  /** Requests that fit there; null if the detector does not count requests. */
  readonly seats: number | null;
  readonly tokens: number;
  readonly isOverloaded: boolean;
  /** Why it gets no requests; null while it does. */
  readonly trouble: 'ill' | 'draining' | 'overloaded' | 'no fresh figures' | null;
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

/** The answer of `view=json`, and the content of each server-sent event. Rates are per second, times in ms. */
export interface InspectorFrame
  extends Pick<FlowStats, 'state' | 'saturation' | 'waiting' | 'waitingBytes' | 'inFlight' | 'pluginErrors'>,
    Pick<ControllerOverview, 'waitingTokens' | 'arrivedPerSecond' | 'dispatchedPerSecond'> {
  readonly atMs: number;
  readonly intervalMs: number;
  /** The state of the highest band that waits; if nothing waits, of the pool. */
  readonly gate: GateState;
  readonly isGrowing: boolean;
  readonly timeToDrainMs: number | null;
  readonly tenants: readonly FrameTenant[];
  readonly otherTenants: number;
  readonly whole: FrameWhole;
  readonly bands: readonly FrameBand[];
  readonly otherBands: number;
  readonly endpoints: readonly FrameEndpoint[];
  readonly otherEndpoints: number;
  /** Null where no detector has quotas. */
  readonly quotas: FrameQuotas | null;
  /** Null where no detector limits sessions. */
  readonly sessions: FrameSessions | null;
  /** Null where nothing is shared with other replicas. */
  readonly shared: FrameShared | null;
  readonly outcomes: {
    readonly totals: Readonly<Record<OutcomeType, number>>;
    /** Why requests were dropped in the last five minutes, most frequent first; empty where no history is kept. */
    readonly reasons: readonly { readonly reason: DropReason; readonly requests: number }[];
    readonly bucketMs: number;
    /** Oldest first. */
    readonly buckets: readonly OutcomeBucket[];
    /** Requests waiting at the end of each. */
    readonly waiting: readonly (number | null)[];
  };
  readonly slowest: readonly FrameWait[];
  /** In shadow mode what it would have done, and every other figure is what would have been; null otherwise. */
  readonly shadow:
    | (Omit<ShadowFigures, 'refused' | 'wouldHaveBeenDropped'> & { readonly wouldHaveBeenDropped: number })
    | null;
  /** The lease that is held longest; null while nothing runs. */
  readonly oldestLease: { readonly flow: string; readonly heldMs: number; readonly isOverdue: boolean } | null;
}

export function toFrame(
  overview: ControllerOverview,
  history: History | undefined,
  nameOf: (fairnessId: string) => string,
  intervalMs: number,
  nowMs: number,
  shared: FrameShared | null,
): InspectorFrame {
  const { atMs, stats, pool, bands, otherBands, endpoints, otherEndpoints, oldestLease } = overview;
  const spans = history?.spans(stats) ?? [];
  const states = bands.map((band, index) => stateOf(band, overview, bands.slice(0, index)));
  const highest = bands.findIndex(({ waiting }) => waiting > 0);
  return {
    atMs: rounded(atMs),
    intervalMs,
    state: stats.state,
    saturation: rounded(stats.saturation, 3),
    gate: states[highest] ?? (pool?.endpoints === 0 ? 'no-endpoints' : stats.saturation >= 1 ? 'full' : 'open'),
    isGrowing: isGrowing({ ...overview, waiting: stats.waiting }),
    waiting: stats.waiting,
    waitingTokens: overview.waitingTokens,
    waitingBytes: stats.waitingBytes,
    inFlight: stats.inFlight,
    arrivedPerSecond: rounded(overview.arrivedPerSecond),
    dispatchedPerSecond: rounded(overview.dispatchedPerSecond),
    timeToDrainMs: orNull(overview.timeToDrainMs),
    pluginErrors: stats.pluginErrors,
    tenants: tenantTable(overview, history?.flows, nameOf, nowMs),
    otherTenants: overview.otherStandings,
    whole: {
      waiting: stats.waiting,
      maxRequests: limitOrNull(overview.limits.maxRequests),
      bytes: stats.waitingBytes,
      maxBytes: limitOrNull(overview.limits.maxBytes),
      dropped: history?.droppedAt('global') ?? 0,
    },
    bands: bands.map((band, index) =>
      frameBand(band, states[index] as GateState, nameOf, history?.droppedAt(band.priority) ?? 0),
    ),
    otherBands,
    endpoints: endpoints.map(
      ({ id, inFlightRequests, seats = Number.POSITIVE_INFINITY, inFlightTokens, metrics, ...condition }) => ({
        name: shortenName(id),
        inFlight: inFlightRequests,
        seats: seats < Number.POSITIVE_INFINITY ? seats : null,
        tokens: inFlightTokens,
        isOverloaded: condition.isOverloaded,
        trouble: troubleOf(condition),
        kvCacheUsage: metrics === undefined ? null : rounded(metrics.kvCacheUsage, 3),
        waitingQueueSize: metrics?.waitingQueueSize ?? null,
        runningRequests: metrics?.runningRequests ?? null,
        reportAgeMs: orNull(metrics && atMs - metrics.sampledAtMs),
      }),
    ),
    otherEndpoints,
    quotas: quotaTable(overview),
    sessions: sessionsOf(overview),
    shared,
    outcomes: {
      totals: stats.outcomes,
      reasons: history?.reasons ?? [],
      bucketMs: history === undefined ? 0 : spanMs,
      buckets: spans.map((span) => span && [span.dispatched, span.rejected, span.evicted]),
      waiting: spans.map((span) => span?.waiting ?? null),
    },
    slowest: overview.waits.map(({ fairnessId, priority, waitedMs, ahead, estimatedWaitMs, decidedBy, text }) => ({
      flow: nameOf(fairnessId),
      priority,
      waitedMs: rounded(waitedMs),
      ahead: ahead ?? null,
      estimatedWaitMs: orNull(estimatedWaitMs),
      decidedBy,
      why: text,
    })),
    shadow: stats.shadow === undefined ? null : shadowOf(stats.shadow),
    oldestLease: oldestLease === undefined ? null : oldestLeaseOf(oldestLease, nameOf),
  };
}

function shadowOf(figures: ShadowFigures): InspectorFrame['shadow'] {
  const { passed, running, wouldHaveWaited, wouldHaveBeenDropped, wouldHaveBeenEvicted } = figures;
  const dropped = wouldHaveBeenDropped.reduce((sum, { requests }) => sum + requests, 0);
  return { passed, running, wouldHaveWaited, wouldHaveBeenDropped: dropped, wouldHaveBeenEvicted };
}

function oldestLeaseOf(
  { fairnessId, heldMs, isOverdue }: NonNullable<ControllerOverview['oldestLease']>,
  nameOf: (fairnessId: string) => string,
): InspectorFrame['oldestLease'] {
  return { flow: nameOf(fairnessId), heldMs: Math.round(heldMs), isOverdue };
}

function troubleOf({
  state,
  isOverloaded,
  isAvailable,
}: Pick<ControllerOverview['endpoints'][number], 'state' | 'isOverloaded' | 'isAvailable'>): FrameEndpoint['trouble'] {
  if (state !== 'ready') return state;
  if (isOverloaded) return 'overloaded';
  return isAvailable ? null : 'no fresh figures';
}
