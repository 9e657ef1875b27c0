/** The bands of a frame: what waits in each, and whether its first request may go. */
import type { ControllerOverview } from '../../index.js';
import { limitOrNull, orNull, rounded } from './names.js';

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

export interface FrameFlow {
  readonly name: string;
  readonly waiting: number;
  readonly bytes: number;
  readonly isHeld: boolean;
  readonly isAtCap: boolean;
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

type BandOf = ControllerOverview['bands'][number];

export function frameBand(
  band: BandOf,
  gate: GateState,
  nameOf: (fairnessId: string) => string,
  dropped: number,
): FrameBand {
  const { priority, waiting, inFlight, held, fairness, ordering, otherFlows, otherWaiting } = band;
  return {
    priority,
    waiting,
    inFlight,
    held,
    maxRequests: limitOrNull(band.limits.maxRequests),
    saturation: rounded(band.saturation, 3),
    ceiling: rounded(Math.min(band.ceiling, Number.MAX_SAFE_INTEGER), 3),
    gate,
    dropped,
    isGrowing: isGrowing(band),
    fairness,
    ordering,
    arrivedPerSecond: rounded(band.arrivedPerSecond),
    dispatchedPerSecond: rounded(band.dispatchedPerSecond),
    timeToDrainMs: orNull(band.timeToDrainMs),
    otherFlows,
    otherWaiting,
    flows: band.flows.map(({ fairnessId, waiting, waitingBytes, isHeld, isAtCap }) => ({
      name: nameOf(fairnessId),
      waiting,
      bytes: waitingBytes,
      isHeld,
      isAtCap,
    })),
  };
}

/** The lanes and the gate use the same answer, so that no two places of the page contradict each other. */
export function stateOf(
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

/** Averages of a few seconds differ by chance: a twentieth is no growth. */
export function isGrowing({
  waiting,
  arrivedPerSecond,
  dispatchedPerSecond,
}: Pick<BandOf, 'waiting' | 'arrivedPerSecond' | 'dispatchedPerSecond'>): boolean {
  return waiting > 0 && arrivedPerSecond > dispatchedPerSecond * 1.05 + 0.1;
}
