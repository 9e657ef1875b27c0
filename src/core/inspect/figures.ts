/**
 * Counters for exporters. A reader pays only for what it reads: nothing is copied, nothing is sorted, and no waiting
 * request is looked at.
 *
 *     figures ── stats, limits
 *             └─ bands ── what waits in the band ── what waits of one fairness ID, by its name
 */
import type { QuotaFigures } from '../../gate/quota-figure.js';
import type { SessionFigures } from '../../gate/session-figures.js';
import type { ServiceFigures } from '../../tiers/2-fairness/service-figures.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Engine } from '../engine/engine.js';
import type { Limits, ResolvedOptions } from '../options.js';
import { type FlowStats, takeStats } from './snapshot.js';

/** Waiting requests of one place: a band, or one fairness ID in it. */
export interface WaitingFigures {
  readonly waiting: number;
  readonly waitingBytes: number;
}

/** One band, as it was when the figures were taken; its flows are read when they are asked for. */
export interface BandFigures extends WaitingFigures {
  readonly priority: number;
  readonly isConfigured: boolean;
  /** Requests that wait because their fairness ID is at its cap; undefined where none can have one. */
  readonly waitingAtCap: number | undefined;
  /** True where the fairness policy shares by cost, so that `service` and `leadOf` have something to tell. */
  readonly keepsAccount: boolean;
  /** Infinity = unlimited. */
  readonly limits: Limits;
  /**
   * Waiting requests of one fairness ID; undefined when there are none. O(1). Only where requests of one fairness ID
   * queue by class (`holBlocking: 'none'` with endpoint filters) does the first question to a band cost O(flows that
   * wait).
   */
  waitingOf(fairnessId: string): WaitingFigures | undefined;
  /**
   * Fairness IDs of which something waits, in the order in which their flows became active; one may come twice. It
   * costs only as much as the caller takes.
   */
  waitingIds(): Iterable<string>;
  /**
   * Cost that fairness IDs received and were owed, counted from the first time that somebody asks; undefined where the
   * fairness policy does not share by cost. O(fairness IDs that were served lately), at most 1,000.
   */
  service(): ServiceFigures | undefined;
  /**
   * Cost that a waiting fairness ID has received beyond those that go next; undefined where nothing waits, or where the
   * policy keeps no account. O(1).
   */
  leadOf(fairnessId: string): number | undefined;
}

/**
 * The figures that exporters read. Taken in O(bands + in flight + what detectors tell of quotas and sessions), with one
 * reading of the detector.
 */
export interface ControllerFigures {
  readonly stats: FlowStats;
  readonly limits: Limits;
  /** Estimated tokens of the requests that wait. */
  readonly waitingTokens: number;
  /** Model servers in the pool; undefined for a controller without one. */
  readonly endpoints: number | undefined;
  /** The available ones: not ill, draining or marked as overloaded, and with the metrics that the detector needs. */
  readonly availableEndpoints: number | undefined;
  /** Quotas, where a detector has some. */
  readonly quotas: QuotaFigures | undefined;
  /** Sessions, where a detector limits them. */
  readonly sessions: SessionFigures | undefined;
  /** Highest priority first. */
  readonly bands: readonly BandFigures[];
}

export function takeFigures(
  engine: Engine,
  { limits, holBlocking, endpointFilters }: ResolvedOptions,
  pluginErrors: number,
  nowMs: number,
): ControllerFigures {
  const { pool } = engine.seats;
  const bands = engine.backlog.bands.all();
  const queuesByClass = holBlocking === 'none' && endpointFilters.length > 0;
  return {
    stats: takeStats(engine, pluginErrors, nowMs),
    limits,
    waitingTokens: bands.reduce((sum, band) => sum + band.waitingTokens, 0),
    endpoints: pool.implicitEndpoint === undefined ? pool.endpoints.length : undefined,
    availableEndpoints: pool.implicitEndpoint === undefined ? engine.gate.available(nowMs).length : undefined,
    quotas: engine.gate.quotas(nowMs),
    sessions: engine.gate.sessions(nowMs),
    bands: bands.map((band) => new BandCounters(band, queuesByClass, nowMs)),
  };
}

class BandCounters implements BandFigures {
  readonly priority: number;
  readonly isConfigured: boolean;
  readonly waiting: number;
  readonly waitingBytes: number;
  readonly waitingAtCap: number | undefined;
  readonly keepsAccount: boolean;
  readonly limits: Limits;
  private readonly band: PriorityBand;
  private readonly queuesByClass: boolean;
  private readonly nowMs: number;
  private sums: ReadonlyMap<string, WaitingFigures> | undefined = undefined;

  constructor(band: PriorityBand, queuesByClass: boolean, nowMs: number) {
    this.nowMs = nowMs;
    this.band = band;
    this.queuesByClass = queuesByClass;
    this.priority = band.priority;
    this.isConfigured = band.isConfigured;
    this.waiting = band.waiting;
    this.waitingBytes = band.waitingBytes;
    this.limits = band.settings.limits;
    this.waitingAtCap = band.settings.parksFlows ? band.parked.waiting : undefined;
    this.keepsAccount = band.keepsAccount;
  }

  waitingOf(fairnessId: string): WaitingFigures | undefined {
    if (this.queuesByClass) {
      this.sums ??= sumByFairnessId(this.band);
      return this.sums.get(fairnessId);
    }
    const flow = this.band.flows.get(fairnessId);
    return flow === undefined || flow.waiting === 0 ? undefined : flow;
  }

  service(): ServiceFigures | undefined {
    return this.band.service(this.nowMs);
  }

  leadOf(fairnessId: string): number | undefined {
    const flow = this.band.flows.get(fairnessId);
    return flow === undefined || flow.waiting === 0 ? undefined : this.band.lead(flow);
  }

  *waitingIds(): Generator<string, void, undefined> {
    for (let flow = this.band.firstActive; flow !== undefined; flow = flow.next) yield flow.fairnessId;
    for (const { fairnessId } of this.band.held.flows()) yield fairnessId;
    for (const { fairnessId } of this.band.parked.flows()) yield fairnessId;
  }
}

function sumByFairnessId(band: PriorityBand): Map<string, WaitingFigures> {
  const sums = new Map<string, { waiting: number; waitingBytes: number }>();
  for (const { fairnessId, waiting, waitingBytes } of band.waitingFlows()) {
    const sum = sums.get(fairnessId);
    if (sum === undefined) {
      sums.set(fairnessId, { waiting, waitingBytes });
    } else {
      sum.waiting += waiting;
      sum.waitingBytes += waitingBytes;
    }
  }
  return sums;
}
