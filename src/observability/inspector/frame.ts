/** One frame: an overview as the page and the JSON endpoint show it. Bounded; request IDs, but no payload or label. */
import type { DropReason, FlowStats, OutcomeType } from '../../index.js';
import type {
  CapacityFigure,
  ControllerOverview,
  QuotaFigure,
  SessionFigures,
  ShadowFigures,
} from '../../types/index.js';
import { type History, spanMs } from './history.js';
import { mostNeedy, type NameOf, pick, shortenName } from './names.js';
import type { FrameShared } from './shared-limits.js';
import { type FrameTenant, tenantTable } from './tenants.js';

type BandOf = ControllerOverview['bands'][number];
type QuotaTotals = NonNullable<ControllerOverview['quotas']>;

/**
 * Whether the first request of a band may go, and if not why.
 * - `open`: it may, or nothing waits and it could.
 * - `full`: saturation has reached the ceiling of the band.
 * - `endpoints-full`: the endpoints that its requests may go to take nothing more.
 * - `at-cap`: every flow that waits in it is at its cap.
 * - `behind`: higher bands go first.
 * - `no-endpoints`: there is no endpoint.
 */
export type GateState = 'open' | 'full' | 'endpoints-full' | 'at-cap' | 'behind' | 'no-endpoints';

export interface FrameFlow extends Pick<BandOf['flows'][number], 'waiting' | 'isHeld' | 'isAtCap'> {
  readonly name: string;
  readonly bytes: number;
}

export interface FrameBand
  extends Pick<
      BandOf,
      'priority' | 'waiting' | 'held' | 'saturation' | 'ceiling' | 'inFlight' | 'fairness' | 'ordering'
    >,
    Pick<BandOf, 'arrivedPerSecond' | 'dispatchedPerSecond' | 'otherFlows' | 'otherWaiting'> {
  /** Null: unlimited. */
  readonly maxRequests: number | null;
  readonly gate: GateState;
  /** True when more requests arrive than leave. */
  readonly isGrowing: boolean;
  readonly timeToDrainMs: number | null;
  readonly flows: readonly FrameFlow[];
  /** Requests that its limits, or those of its flows, dropped in the last five minutes; 0 where no history is kept. */
  readonly dropped: number;
}

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
  /** What a capacity ledger counts of it; empty where there is none. */
  readonly capacity: readonly Pick<CapacityFigure, 'dimension' | 'used' | 'limit'>[];
}

export interface FrameQuotas extends Pick<QuotaTotals, 'refusals' | 'unreported'> {
  /** Of too many, those with the longest waits. */
  readonly rows: readonly QuotaFigure[];
  readonly others: number;
  /** Figures of hosts and servers that cannot be right. */
  readonly ignored: number;
}

/** `maxSessions` is null where their number is unlimited. */
export interface FrameSessions extends Omit<SessionFigures, 'maxSessions'> {
  readonly maxSessions: number | null;
}

export interface FrameWait extends Pick<ControllerOverview['waits'][number], 'priority' | 'waitedMs' | 'decidedBy'> {
  /** The field `id` of the host's request; null where it has none. */
  readonly id: string | null;
  readonly flow: string;
  readonly ahead: number | null;
  readonly estimatedWaitMs: number | null;
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

/** As JSON. Figures have four digits that count, and no fraction of a thousand or more; null: without a bound. */
export function frameText(frame: InspectorFrame): string {
  return JSON.stringify(frame, (_key, value: unknown) => {
    if (typeof value !== 'number' || Number.isInteger(value)) return value;
    return Math.abs(value) < 1_000 ? Number(value.toPrecision(4)) : Math.round(value);
  });
}

export function toFrame(
  overview: ControllerOverview,
  history: History | undefined,
  nameOf: NameOf,
  intervalMs: number,
  nowMs: number,
  shared: FrameShared | null,
): InspectorFrame {
  const { stats, pool, bands, sessions = null, oldestLease, limits, timeToDrainMs = null } = overview;
  const { saturation, waiting, shadow } = stats;
  const spans = history?.spans(stats) ?? [];
  const frameBands = bands.map((band, index): FrameBand => {
    const gate = stateOf(band, overview, bands.slice(0, index));
    return frameBand(band, gate, nameOf, history?.droppedAt(band.priority) ?? 0);
  });
  const highest = frameBands.find((band) => band.waiting > 0);
  return {
    ...pick(overview, 'atMs', 'waitingTokens', 'arrivedPerSecond', 'dispatchedPerSecond'),
    ...pick(stats, 'state', 'saturation', 'waiting', 'waitingBytes', 'inFlight', 'pluginErrors'),
    ...pick(overview, 'otherBands', 'otherEndpoints'),
    intervalMs,
    gate: highest?.gate ?? (pool?.endpoints === 0 ? 'no-endpoints' : saturation >= 1 ? 'full' : 'open'),
    isGrowing: isGrowing({ ...overview, waiting }),
    timeToDrainMs,
    tenants: tenantTable(overview, history?.flows, nameOf, nowMs),
    otherTenants: overview.otherStandings,
    whole: { ...limits, waiting, bytes: stats.waitingBytes, dropped: history?.droppedAt('global') ?? 0 },
    bands: frameBands,
    endpoints: overview.endpoints.map((endpoint) => frameEndpoint(endpoint, overview)),
    quotas: quotaTable(overview),
    sessions,
    shared,
    outcomes: {
      totals: stats.outcomes,
      reasons: history?.reasons ?? [],
      bucketMs: history === undefined ? 0 : spanMs,
      buckets: spans.map((span) => span && [span.dispatched, span.rejected, span.evicted]),
      waiting: spans.map((span) => span?.waiting ?? null),
    },
    slowest: overview.waits.map((wait) => {
      const { fairnessId, requestId, ahead = null, estimatedWaitMs = null, text: why } = wait;
      return {
        id: typeof requestId === 'string' ? shortenName(requestId) : null,
        flow: nameOf(fairnessId),
        ...pick(wait, 'priority', 'waitedMs', 'decidedBy'),
        ahead,
        estimatedWaitMs,
        why,
      };
    }),
    shadow: shadow === undefined ? null : shadowOf(shadow),
    oldestLease: oldestLease
      ? { flow: nameOf(oldestLease.fairnessId), ...pick(oldestLease, 'heldMs', 'isOverdue') }
      : null,
  };
}

function frameBand(band: BandOf, gate: GateState, nameOf: NameOf, dropped: number): FrameBand {
  const { limits, ceiling, timeToDrainMs = null, flows } = band;
  return {
    ...pick(band, 'priority', 'waiting', 'inFlight', 'held', 'saturation', 'fairness', 'ordering'),
    ...pick(band, 'arrivedPerSecond', 'dispatchedPerSecond', 'otherFlows', 'otherWaiting'),
    maxRequests: limits.maxRequests,
    ceiling: Math.min(ceiling, Number.MAX_SAFE_INTEGER),
    gate,
    dropped,
    isGrowing: isGrowing(band),
    timeToDrainMs,
    flows: flows.map((flow) => {
      const { fairnessId, waitingBytes: bytes } = flow;
      return { name: nameOf(fairnessId), ...pick(flow, 'waiting', 'isHeld', 'isAtCap'), bytes };
    }),
  };
}

/** The lanes and the gate use the same answer, so that no two places of the page contradict each other. */
function stateOf(
  { waiting, held, waitingAtCap: atCap = 0, saturation, ceiling }: BandOf,
  { pool }: ControllerOverview,
  higher: readonly BandOf[],
): GateState {
  if (pool?.endpoints === 0) return 'no-endpoints';
  if (saturation >= ceiling) return 'full';
  if (waiting > 0 && atCap === waiting) return 'at-cap';
  if (waiting > 0 && held + atCap === waiting) return 'endpoints-full';
  if (waiting > 0 && higher.some((band) => band.waiting > band.held + (band.waitingAtCap ?? 0))) return 'behind';
  return 'open';
}

type Traffic = Pick<BandOf, 'waiting' | 'arrivedPerSecond' | 'dispatchedPerSecond'>;

/** Averages of a few seconds differ by chance: a twentieth is no growth. */
function isGrowing({ waiting, arrivedPerSecond, dispatchedPerSecond }: Traffic): boolean {
  return waiting > 0 && arrivedPerSecond > dispatchedPerSecond * 1.05 + 0.1;
}

type EndpointOf = ControllerOverview['endpoints'][number];

function frameEndpoint(endpoint: EndpointOf, { atMs, capacity }: ControllerOverview): FrameEndpoint {
  const { id, inFlightRequests: inFlight, seats = null, isOverloaded, metrics, state, isAvailable } = endpoint;
  const trouble = state !== 'ready' ? state : isOverloaded ? 'overloaded' : isAvailable ? null : 'no fresh figures';
  return {
    name: shortenName(id),
    inFlight,
    seats,
    tokens: endpoint.inFlightTokens,
    isOverloaded,
    trouble,
    kvCacheUsage: metrics?.kvCacheUsage ?? null,
    waitingQueueSize: metrics?.waitingQueueSize ?? null,
    runningRequests: metrics?.runningRequests ?? null,
    reportAgeMs: metrics === undefined ? null : atMs - metrics.sampledAtMs,
    capacity: capacity.filter((each) => each.endpoint === id).map((each) => pick(each, 'dimension', 'used', 'limit')),
  };
}

function quotaTable({ quotas }: ControllerOverview): FrameQuotas | null {
  if (quotas === undefined) return null;
  const { quotas: all, refusals, unreported, ignoredReports, ignoredFigures } = quotas;
  const shareOf = ({ used, reserved, limit }: QuotaFigure): number => (used + reserved) / limit;
  const shown = mostNeedy(all, (a, b) => b.waitMs - a.waitMs || shareOf(b) - shareOf(a));
  // A group has the name of an endpoint, or of a model that a client made up.
  const rows = shown.map((quota) => ({ ...quota, group: shortenName(quota.group) }));
  return { rows, others: all.length - rows.length, refusals, unreported, ignored: ignoredReports + ignoredFigures };
}

function shadowOf(figures: ShadowFigures): InspectorFrame['shadow'] {
  const wouldHaveBeenDropped = figures.wouldHaveBeenDropped.reduce((sum, { requests }) => sum + requests, 0);
  return { ...pick(figures, 'passed', 'running', 'wouldHaveWaited', 'wouldHaveBeenEvicted'), wouldHaveBeenDropped };
}
