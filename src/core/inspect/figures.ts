/**
 * What exporters and autoscalers read. A reader pays only for what it reads: nothing is copied, nothing is sorted, and
 * no waiting request is looked at.
 *
 *     figures ── stats, limits, rates, pool, capacity, quotas, sessions
 *             └─ bands ── what waits in the band ── what waits of one fairness ID, by its name
 */

import { put } from '../../base/put.js';
import { partReadings } from '../../gate/parts.js';
import type { CapacityFigure, QuotaFigures, SessionFigures } from '../../gate/reported-figures.js';
import type { DetectorReading } from '../../gate/saturation-detector.js';
import type { ServiceFigures } from '../../tiers/2-fairness/service-figures.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { WaitingFigures } from '../engine/capacity-limits.js';
import type { GroupFigures } from '../engine/endpoint-groups.js';
import type { Engine } from '../engine/engine.js';
import type { Limits } from '../options.js';
import { drainTimeMs } from '../outcome/explanation.js';
import {
  countByEndpoint,
  type EndpointInFlight,
  type InFlightByFlow,
  type LeaseAge,
  oldestLease,
} from './in-flight.js';
import { type FlowStats, takeStats } from './stats.js';

/** Rates are averages over the last seconds; 0 when nothing was measured. */
interface DemandFigures {
  /** Estimated tokens of the requests that wait. */
  readonly waitingTokens: number;
  /** Requests handed to the controller, those that were rejected included; not those that were tried in vain. */
  readonly arrivedPerSecond: number;
  readonly dispatchedPerSecond: number;
  /** The time until all waiting requests are gone at the recent rate; undefined when nothing was measured. */
  readonly timeToDrainMs: number | undefined;
}

/** One band, as it was when the figures were taken. */
export interface BandTotals extends WaitingFigures, DemandFigures {
  readonly priority: number;
  readonly isConfigured: boolean;
  /** Requests that wait because their fairness ID is at its cap; undefined where none can have one. */
  readonly waitingAtCap: number | undefined;
  /** Infinity = unlimited. */
  readonly limits: Limits;
  /** The saturation up to which it may dispatch. */
  readonly ceiling: number;
}

/** Its flows are read when they are asked for. */
export interface BandFigures extends BandTotals {
  /** True where the fairness policy shares by cost, so that `service` and `leadOf` have something to tell. */
  readonly keepsAccount: boolean;
  /** Undefined when none wait. O(1), but O(flows) for a band's first question when fairness IDs queue by class. */
  waitingOf(fairnessId: string): WaitingFigures | undefined;
  /** Fairness IDs of waiting requests, by when flows became active; one may come twice. Costs only what is taken. */
  waitingIds(): Iterable<string>;
  /** Cost received and owed since the first call, of up to 1,000 fairness IDs; undefined where none is shared. */
  service(): ServiceFigures | undefined;
  /** Cost that a waiting fairness ID got beyond those that go next; undefined without an account or wait. O(1). */
  leadOf(fairnessId: string): number | undefined;
}

/** The model servers of a pool. */
export interface PoolFigures {
  readonly endpoints: number;
  /** Not ill, draining or marked as overloaded, and with the metrics that the detector needs. */
  readonly available: number;
}

/** The whole controller: what figures and overviews have in common. */
export interface ControllerTotals extends DemandFigures {
  readonly atMs: number;
  readonly stats: FlowStats;
  /** Of the whole queue; Infinity = unlimited. */
  readonly limits: Limits;
  /** Undefined for a controller without a pool. */
  readonly pool: PoolFigures | undefined;
  /** Groups of endpoints that bands name; empty without. */
  readonly groups: readonly GroupFigures[];
  /** Undefined while nothing runs. */
  readonly oldestLease: LeaseAge | undefined;
  /** What is used of the endpoints, where a constraint counts it. */
  readonly capacity: readonly CapacityFigure[];
  /** Quotas, where a detector has some. */
  readonly quotas: QuotaFigures | undefined;
  /** Sessions, where a detector limits them. */
  readonly sessions: SessionFigures | undefined;
}

/** What exporters and autoscalers read, in O(bands + in flight + quotas and sessions), with one reading. */
export interface ControllerFigures extends ControllerTotals {
  /** Highest priority first. */
  readonly bands: readonly BandFigures[];
  /** The parts of detectors that are made of others, at the last reading. */
  readonly detectors: readonly DetectorReading[];
  /** What runs of each flow at each endpoint; nothing without a pool. O(in flight). */
  inFlightByEndpoint(): readonly EndpointInFlight[];
}

/** Averages never reach 0 by themselves: below this they count as 0. */
const leastPerSecond = 0.001;

export function takeFigures(engine: Engine, nowMs: number): ControllerFigures {
  const { holBlocking, endpointFilters } = engine.options;
  const queuesByClass = holBlocking === 'none' && endpointFilters.length > 0;
  const bands = engine.backlog.bands.all().map((band) => bandFigures(band, queuesByClass, nowMs));
  const inFlightByEndpoint = (): readonly EndpointInFlight[] => countByEndpoint(engine.seats);
  const detectors = partReadings(engine.gate.detectors());
  return { ...controllerTotals(engine, bands, nowMs), bands, detectors, inFlightByEndpoint };
}

/** O(bands + in flight). */
export function controllerTotals(
  engine: Engine,
  bands: readonly DemandFigures[],
  nowMs: number,
  inFlight?: InFlightByFlow,
): ControllerTotals {
  const sum = (figure: 'waitingTokens' | 'arrivedPerSecond' | 'dispatchedPerSecond'): number =>
    bands.reduce((total, band) => total + band[figure], 0);
  const { backlog, gate, options, seats } = engine;
  const { endpoints, implicitEndpoint } = seats.pool;
  const dispatchedPerSecond = sum('dispatchedPerSecond');
  return {
    atMs: nowMs,
    stats: takeStats(engine, nowMs, inFlight),
    limits: { ...options.limits },
    waitingTokens: sum('waitingTokens'),
    arrivedPerSecond: sum('arrivedPerSecond'),
    dispatchedPerSecond,
    timeToDrainMs: drainTimeMs(backlog.waiting, dispatchedPerSecond),
    pool: implicitEndpoint ? undefined : { endpoints: endpoints.length, available: gate.available(nowMs).length },
    groups: engine.groups?.figures(endpoints, gate.available(nowMs)) ?? [],
    oldestLease: oldestLease(seats, nowMs),
    capacity: gate.constraints.capacity(endpoints, nowMs),
    quotas: gate.constraints.quotas(nowMs),
    sessions: gate.constraints.sessions(nowMs),
  };
}

export function bandTotals(band: PriorityBand, nowMs: number): BandTotals {
  const { priority, isConfigured, waiting, waitingBytes, waitingTokens, ceiling, settings } = band;
  const dispatchedPerSecond = rounded(band.traffic.dispatchedPerSecond(nowMs));
  return {
    priority,
    isConfigured,
    waiting,
    waitingBytes,
    waitingTokens,
    arrivedPerSecond: rounded(band.traffic.arrivedPerSecond(nowMs)),
    dispatchedPerSecond,
    timeToDrainMs: drainTimeMs(waiting, dispatchedPerSecond),
    waitingAtCap: settings.parksFlows ? band.aside.waiting.parked : undefined,
    limits: settings.limits,
    ceiling,
  };
}

function rounded(perSecond = 0): number {
  return perSecond < leastPerSecond ? 0 : perSecond;
}

function bandFigures(band: PriorityBand, queuesByClass: boolean, nowMs: number): BandFigures {
  let sums: ReadonlyMap<string, WaitingFigures> | undefined;
  const waitingOf = (fairnessId: string): WaitingFigures | undefined => {
    if (queuesByClass) {
      sums ??= sumByFairnessId(band);
      return sums.get(fairnessId);
    }
    const flow = band.flows.get(fairnessId);
    return flow === undefined || flow.waiting === 0 ? undefined : flow;
  };
  return {
    ...bandTotals(band, nowMs),
    keepsAccount: band.policies.selector?.keepsAccount === true,
    waitingOf,
    *waitingIds() {
      for (const { fairnessId } of band.active) yield fairnessId;
      for (const { fairnessId } of band.aside.flows) yield fairnessId;
    },
    service: () => band.policies.selector?.service(nowMs),
    leadOf(fairnessId) {
      const flow = band.flows.get(fairnessId);
      return flow === undefined || flow.waiting === 0 ? undefined : band.policies.selector?.lead(flow);
    },
  };
}

/** O(flows that wait). */
export function sumByFairnessId(band: PriorityBand): Map<string, WaitingFigures> {
  const sums = new Map<string, { waiting: number; waitingBytes: number }>();
  for (const { fairnessId, waiting, waitingBytes } of band.waitingFlows()) {
    const sum = sums.get(fairnessId) ?? put(sums, fairnessId, { waiting: 0, waitingBytes: 0 });
    sum.waiting += waiting;
    sum.waitingBytes += waitingBytes;
  }
  return sums;
}
