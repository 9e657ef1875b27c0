/** The gate's question, the contract: how full is the pool? */
import type { PluginShape } from '../base/plugin-shape.js';
import type { EndpointView, PoolView, Stage } from '../endpoints/endpoint.js';
import type { Constraint } from './constraint.js';
import { type SeatListener, seatHooks } from './seat-listener.js';

/** What a detector read that is a part of another. */
export interface DetectorReading {
  readonly detector: string;
  /** Undefined where stages are not judged apart. */
  readonly stage: Stage | undefined;
  readonly saturation: number;
}

/**
 * Tells how full the pool of model servers is. Contract: `saturation` returns 0 for idle, 1 for full, more for
 * overload. NaN, infinities, negative numbers and exceptions are reported as plugin errors and read as the gate's
 * `failValue`. An empty pool never dispatches, whatever a detector says of it. Cost: asked once for every request
 * released, and once for every arrival that finds the gate closed. State: its own; as a `SeatListener` it hears what
 * the controller did, for signals that lag behind, and `pool` has the true counts.
 */
export interface SaturationDetector extends SeatListener {
  readonly type: string;
  saturation(pool: PoolView, nowMs: number): number;
  /**
   * Those of `endpoints` that have room for one more request; the picker chooses among them. When there are none,
   * `headroom` decides: the request waits, or all are candidates. Asked after a reading of the pool.
   */
  filter?(endpoints: readonly EndpointView[], nowMs: number): readonly EndpointView[];
  /**
   * True for an endpoint that it cannot judge and would count as full, such as one without fresh metrics: it is no
   * capacity, is not in the pool of `saturation`, and gets no requests. O(1), for each endpoint and reading.
   */
  isBlindTo?(endpoint: EndpointView, nowMs: number): boolean;
  /** Requests that fit at the endpoint now, as in `6 of 8`; undefined where none are counted. Asked when one looks. */
  seatsOf?(endpoint: EndpointView, nowMs: number): number | undefined;
  /**
   * Calls `listener` when the answer may have fallen for a reason that the controller cannot see (dispatches, releases,
   * the pool and its metrics it sees). Without it, a timer asks again while requests wait before a closed gate.
   */
  subscribe?(listener: () => void): () => void;
  /** The detectors that it combines, in files constraints too. The controller tells each of seats by itself. */
  readonly parts?: readonly Part[];
  /** True when it reads what endpoints report, so that a controller without a pool would never open its gate. */
  readonly needsPool?: true;
  /** True while the last reading stands in for one that could not be had: the gate then looks again by a timer. */
  readonly isGuessing?: boolean;
}

/** A detector or a constraint inside a detector. */
export interface Part {
  readonly plugin: SaturationDetector | Constraint;
  /** False for endpoints of which it hears nothing, and at which it judges no request. @default all endpoints */
  readonly judges?: ((endpoint: EndpointView) => boolean) | undefined;
}

/** A detector in its shortest form. A new controller calls it with an empty pool, to tell it from a factory. */
export type SaturationFunction = (pool: PoolView, nowMs: number) => number;

export const saturationDetectorShape: PluginShape<SaturationDetector> = {
  noun: 'a saturation detector',
  example: 'concurrencyDetector({ maxConcurrency: 15 }), or a function that returns the saturation',
  required: ['saturation'],
  optional: ['filter', 'isBlindTo', 'seatsOf', 'subscribe', ...seatHooks],
};

/** Finds the detectors that the parameters of a composite name; a constraint as a detector that has it as a part. */
export interface DetectorReferences {
  /** @throws FlowConfigError when there is none; without issues when making it failed, which was reported already. */
  resolve(kind: 'saturationDetector', name: string): SaturationDetector;
}
