/** The demand on a controller, with the requests that wait for capacity: the signal that scales model servers. */
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Engine } from '../engine/engine.js';
import { drainTimeMs } from '../outcome/explanation.js';

/** Rates are averages over the last seconds; 0 when nothing was measured. */
interface DemandFigures {
  readonly waiting: number;
  readonly waitingTokens: number;
  readonly waitingBytes: number;
  /** Requests handed to the controller, those that were rejected included; not those that were tried in vain. */
  readonly arrivedPerSecond: number;
  readonly dispatchedPerSecond: number;
  /**
   * The time until all waiting requests are gone, at the recent rate; undefined when something waits and nothing was
   * measured.
   */
  readonly timeToDrainMs: number | undefined;
}

export interface BandDemand extends DemandFigures {
  readonly priority: number;
}

export interface FlowDemand extends DemandFigures {
  readonly inFlight: number;
  readonly inFlightTokens: number;
  /** Waiting and in flight together: the number that a large enough pool would run. */
  readonly requests: number;
  /** Read now, scaled so that 1 is full; 1 for an empty pool. */
  readonly saturation: number;
  /** Model servers in the pool; undefined for a controller without one. */
  readonly endpoints: number | undefined;
  /** The available ones: not ill, draining or marked as overloaded, and with the metrics that the detector needs. */
  readonly availableEndpoints: number | undefined;
  /** Highest priority first. */
  readonly bands: readonly BandDemand[];
}

/** Averages never reach 0 by themselves: below this they count as 0. */
const leastPerSecond = 0.001;

/** O(bands). Call `measure` first, so that the saturation is read now. */
export function takeDemand(engine: Engine, nowMs: number): FlowDemand {
  const { backlog, seats } = engine;
  const bands = backlog.bands.all().map((band) => bandDemand(band, nowMs));
  const sum = (figure: 'waitingTokens' | 'arrivedPerSecond' | 'dispatchedPerSecond'): number =>
    bands.reduce((total, band) => total + band[figure], 0);
  const { pool } = seats;
  const dispatchedPerSecond = sum('dispatchedPerSecond');
  return {
    requests: backlog.waiting + seats.inFlight,
    waiting: backlog.waiting,
    waitingTokens: sum('waitingTokens'),
    waitingBytes: backlog.waitingBytes,
    inFlight: seats.inFlight,
    inFlightTokens: seats.inFlightTokens,
    arrivedPerSecond: sum('arrivedPerSecond'),
    dispatchedPerSecond,
    timeToDrainMs: drainTimeMs(backlog.waiting, dispatchedPerSecond),
    saturation: engine.gate.saturation,
    endpoints: pool.implicitEndpoint === undefined ? pool.endpoints.length : undefined,
    availableEndpoints: pool.implicitEndpoint === undefined ? engine.gate.available(nowMs).length : undefined,
    bands,
  };
}

function bandDemand(band: PriorityBand, nowMs: number): BandDemand {
  const { priority, waiting, waitingTokens, waitingBytes } = band;
  const dispatchedPerSecond = rounded(band.dispatchedPerSecond(nowMs));
  const arrivedPerSecond = rounded(band.arrivedPerSecond(nowMs));
  const timeToDrainMs = drainTimeMs(waiting, dispatchedPerSecond);
  return { priority, waiting, waitingTokens, waitingBytes, arrivedPerSecond, dispatchedPerSecond, timeToDrainMs };
}

function rounded(perSecond = 0): number {
  return perSecond < leastPerSecond ? 0 : perSecond;
}
