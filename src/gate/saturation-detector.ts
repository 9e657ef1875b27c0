/** The gate's question, the contract: how full is the pool? */

import type { PluginShape } from '../base/plugin-shape.js';
import type { PolicyDefinition } from '../base/policy-definition.js';
import type { EndpointView, PoolView } from '../endpoints/endpoint.js';
import type { ItemView } from '../tiers/views.js';
import type { QuotaFigures } from './quota-figure.js';
import type { SeatView, ServerAnswer } from './server-answer.js';
import type { SessionFigures } from './session-figures.js';

/** How long a request has to wait for room, as far as can be told. */
export interface RequestWait {
  /** When there is room, if nothing else happens; ms of the controller's clock. Infinity: unknown. */
  readonly atMs: number;
  /** Not before this instant, whatever happens; a request whose time is up before is dropped at once. */
  readonly notBeforeMs: number;
  /** The room that is missing, to complete "waits for …". */
  readonly missing: string;
}

/**
 * Tells how full the pool of model servers is.
 *
 * Contract: `saturation` returns 0 for idle, 1 for full, more for overload. NaN, infinities, negative numbers and
 * exceptions are reported as plugin errors and read as the gate's `failValue`. An empty pool never dispatches, whatever
 * a detector says of it. Cost: asked once for every request released, and once for every arrival that finds the gate
 * closed. State: its own; `dispatched` and `released` tell it what the controller did, for signals that lag behind. A
 * detector that takes over from another, or joins it, is told of the release of seats whose dispatch it never saw;
 * `pool` has the true counts.
 */
export interface SaturationDetector {
  readonly type: string;
  saturation(pool: PoolView, nowMs: number): number;
  /**
   * The members of `endpoints`, a part of the pool, that have room for one more request; an empty answer says that none
   * has. The picker chooses among them. When there are none the option `headroom` decides: the request waits, or all of
   * `endpoints` are candidates.
   */
  filter?(endpoints: readonly EndpointView[], nowMs: number): readonly EndpointView[];
  /**
   * For detectors that judge each request by itself, such as quotas: the members of `endpoints` that have room for this
   * request now. Unlike `filter` it is binding, whatever `headroom` says: a request for which there is none waits.
   */
  withRoomFor?(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): readonly EndpointView[];
  /**
   * Goes with `withRoomFor`. None of `endpoints` has room for the request: says when one will have some. The gate looks
   * again then.
   */
  waitOf?(endpoints: readonly EndpointView[], item: ItemView, nowMs: number): RequestWait;
  /**
   * The session of a request, for detectors that let turns of some sessions pass and others not; undefined for none.
   * Requests of different sessions then queue apart, as with `holBlocking: 'none'`. Asked once for each request; the
   * answer must not change while it waits.
   */
  sessionOf?(item: ItemView): string | undefined;
  /** The host ended the session of a request that runs, or ran, in this seat: see `lease.endSession`. */
  sessionEnded?(endpoint: EndpointView, nowMs: number, seat: SeatView): void;
  /** Quotas, for pages and exporters. */
  quotas?(nowMs: number): QuotaFigures;
  /**
   * Sessions, for pages and exporters. `held` has the first request of each queue that is held back, whatever it waits
   * for. Asked when somebody looks.
   */
  sessions?(held: readonly ItemView[], nowMs: number): SessionFigures;
  /**
   * True for an endpoint of which it can tell nothing and which it would count as full, such as one without fresh
   * metrics. Such an endpoint is no capacity: it is left out of the pool that `saturation` sees, and gets no requests.
   * O(1); asked for each endpoint at each reading.
   */
  isBlindTo?(endpoint: EndpointView, nowMs: number): boolean;
  /**
   * Requests that fit at the endpoint now, for readers that show `6 of 8`; undefined where the detector does not count
   * requests. Asked when somebody looks.
   */
  seatsOf?(endpoint: EndpointView, nowMs: number): number | undefined;
  /**
   * Calls `listener` when the answer may have fallen for a reason that the controller cannot see; returns a function
   * that stops this. The controller sees dispatches, releases, and changes of the pool or its metrics anyway. A
   * detector without `subscribe` is asked again by a timer while requests wait before a closed gate.
   */
  subscribe?(listener: () => void): () => void;
  /** True when it reads what endpoints report, so that a controller without a pool would never open its gate. */
  readonly needsPool?: true;
  /**
   * True while its last reading stands in for one that could not be had: the gate then looks again by a timer, also
   * where the detector announces its changes.
   */
  readonly isGuessing?: boolean;
  /**
   * True when its reading also falls by time alone, without an announcement. The gate then looks again by a timer while
   * that reading holds back a band with requests waiting.
   */
  readonly fades?: boolean;
  /** A request took a seat at `endpoint`. */
  dispatched?(endpoint: EndpointView, nowMs: number, seat: SeatView): void;
  /** The server of a running request answered, as far as the host tells with `lease.answered`. */
  answered?(endpoint: EndpointView, nowMs: number, seat: SeatView, answer: ServerAnswer): void;
  /** The host reported what a running request consumed so far: see `seat.usage`. */
  reported?(endpoint: EndpointView, nowMs: number, seat: SeatView): void;
  /** A request gave its seat at `endpoint` back. If it moved, it has taken its new seat before. */
  released?(endpoint: EndpointView, nowMs: number, seat: SeatView): void;
}

/**
 * A detector in its shortest form. It is called once with an empty pool when a controller is made, to tell it from a
 * factory.
 */
export type SaturationFunction = (pool: PoolView, nowMs: number) => number;

export const saturationDetectorShape: PluginShape<SaturationDetector> = {
  noun: 'a saturation detector',
  example: 'concurrencyDetector({ maxConcurrency: 15 }), or a function that returns the saturation',
  required: ['saturation'],
  optional: [
    'filter',
    'withRoomFor',
    'waitOf',
    'sessionOf',
    'sessionEnded',
    'quotas',
    'sessions',
    'isBlindTo',
    'seatsOf',
    'subscribe',
    'dispatched',
    'answered',
    'reported',
    'released',
  ],
};

/** Finds the detectors that the parameters of a composite name. */
export interface DetectorReferences {
  /**
   * @throws FlowConfigError when there is none; without issues when it could not be made, which has been reported
   * already.
   */
  resolve(kind: 'saturationDetector', name: string): SaturationDetector;
}

/** The definition by which configuration files make one. */
export type DetectorDefinition<P = object> = PolicyDefinition<
  'saturationDetector',
  P,
  SaturationDetector,
  DetectorReferences
>;
