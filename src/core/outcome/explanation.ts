/** The decision about a request as a sentence and as data, with figures and policies, never a fairness ID. */

/**
 * The part that decided.
 * - `admission`: an admission policy; `policy` names it.
 * - `limit`: a limit on what may wait, or on the number of bands.
 * - `priority`: tier 1: a higher band goes first, or took the place.
 * - `fairness`: tier 2: it is the turn of another flow.
 * - `ordering`: tier 3: a request ahead in its own queue goes first.
 * - `cap`: its fairness ID runs as much as it may at a time (`maxInFlightPerFlow`, `flows[id].maxInFlight`).
 * - `gate`: saturation reached the ceiling of its band.
 * - `endpoints`: the endpoints it may go to are full, or marked as overloaded.
 * - `pool`: there is no endpoint that it may go to.
 * - `ttl`: its time was up.
 * - `client`: the client left.
 * - `host`: its `onDispatch` dropped what had become void.
 * - `controller`: it is closing.
 */
export type DecidedBy =
  | 'admission'
  | 'limit'
  | 'priority'
  | 'fairness'
  | 'ordering'
  | 'cap'
  | 'gate'
  | 'endpoints'
  | 'pool'
  | 'ttl'
  | 'client'
  | 'host'
  | 'controller';

/** The limit that a request did not fit into. */
export interface LimitHit {
  readonly scope: 'global' | 'band' | 'flow';
  readonly resource: 'requests' | 'bytes';
  /** The configured limit. */
  readonly max: number;
  /** The part that was occupied when the request came. */
  readonly used: number;
}

export interface Explanation {
  readonly decidedBy: DecidedBy;
  /** One sentence for operators. Clients get `explainDrop(outcome).detail`. */
  readonly text: string;
  /** The policy that decided, if one did. */
  readonly policy?: string | undefined;
  readonly limit?: LimitHit | undefined;
  /** The reading of the detector that judges its band, scaled so that 1 is full. */
  readonly saturation?: number | undefined;
  /** The band dispatches while saturation is below it. */
  readonly ceiling?: number | undefined;
}

/** A decision, with its sentence. */
export function by(decidedBy: DecidedBy, text: string, more?: Partial<Explanation>): Explanation {
  return { decidedBy, text, ...more };
}

/** Why a request still waits. */
export interface WaitExplanation extends Explanation {
  readonly priority: number;
  /** Its arrival number, by which `explainWait` finds it again. */
  readonly sequence: number;
  readonly saturation: number;
  readonly ceiling: number;
  readonly waitedMs: number;
  /** Until its time is up; undefined when it may wait for ever. */
  readonly expiresInMs: number | undefined;
  /** Requests before it in its own queue, its flow's or its band's under `globalStrict()`; undefined if not counted. */
  readonly ahead: number | undefined;
  /** Requests of other flows of its band that go before it, as if the flows took turns by weight. */
  readonly aheadInOtherFlows: number;
  /** Requests waiting in bands that go first. */
  readonly inHigherBands: number;
  /** Until it should go, at recent rates of its band and of all, if nothing higher comes. Undefined without a rate. */
  readonly estimatedWaitMs: number | undefined;
  /** How long the oldest unreleased lease is held; undefined while nothing runs. */
  readonly oldestLeaseMs: number | undefined;
  /** How much more its flow received than those that go next, in the policy's unit; negative: less. By cost only. */
  readonly leadInCost?: number | undefined;
}

/** `2.1 s`. */
export function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** Slower rates are not used: their estimates would be hours. */
const slowestPerSecond = 1 / 60;

/** How long `requests` take at a rate; undefined when it says nothing. */
export function drainTimeMs(requests: number, perSecond: number | undefined): number | undefined {
  if (requests === 0) return 0;
  return perSecond === undefined || perSecond < slowestPerSecond ? undefined : (requests / perSecond) * 1_000;
}
