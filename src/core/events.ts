/** The events that the controller announces. Nothing is built for an event that nobody listens to. */
import type { PluginKind } from '../base/faults/plugin-errors.js';
import type { EndpointView } from '../endpoints/endpoint.js';
import type { PriorityBand } from '../tiers/priority-band.js';
import type { FlowView, ItemView, Usage } from '../tiers/views.js';
import { drainTimeMs } from './outcome/explanation.js';
import type { Lease } from './outcome/lease.js';
import type { Drop, OutcomeType } from './outcome/outcome.js';

/** A call of `enqueue` has done its work. Sent for one call in sixteen, and timed only while somebody listens. */
export interface EnqueuedEvent extends FlowEvent {
  /** Undefined while the request waits. */
  readonly outcome: OutcomeType | undefined;
  readonly durationMs: number;
}

/** A walk over the queues ran to its end. Sent for one walk in sixteen, and timed only while somebody listens. */
export interface WalkedEvent {
  readonly durationMs: number;
}

/** A request now waits. */
export interface QueuedEvent<R = unknown> {
  readonly item: ItemView<R>;
  /** Requests waiting in its band, itself included. */
  readonly waitingInBand: number;
  /** Requests waiting in its flow, itself included: in arrival order its place in the flow. */
  readonly waitingInFlow: number;
  /** Until its band should have dispatched what waits there, at its recent rate; undefined if nothing was measured. */
  readonly estimatedWaitMs: number | undefined;
}

/** O(1): the exact place takes `explainWait`. */
export function queuedEvent(item: ItemView, band: PriorityBand, flow: FlowView, nowMs: number): QueuedEvent {
  const estimatedWaitMs = drainTimeMs(band.waiting, band.traffic.dispatchedPerSecond(nowMs));
  return { item, waitingInBand: band.waiting, waitingInFlow: flow.waiting, estimatedWaitMs };
}

/** A request may run. */
export interface DispatchedEvent<R = unknown> {
  readonly item: ItemView<R>;
  readonly lease: Lease;
  readonly endpoint: EndpointView | undefined;
  readonly queuedMs: number;
}

/** A running request has its first token, as `lease.report` tells it. */
export interface FirstTokenEvent {
  readonly lease: Lease;
  /** Since its dispatch. */
  readonly afterMs: number;
}

/** A request was rejected or evicted. */
export interface DroppedEvent<R = unknown> {
  /** The same object as in `queued`, if the request waited. */
  readonly item: ItemView<R>;
  readonly request: R;
  readonly outcome: Drop;
}

/** A running request was asked to leave for a waiting one of higher priority. */
export interface EvictedEvent {
  readonly lease: Lease;
}

/** A lease was released. */
export interface ReleasedEvent {
  readonly lease: Lease;
  readonly usage: Usage;
  /** From dispatch to release. */
  readonly heldMs: number;
}

/** A lease has been held longer than `maxLeaseMs`. Sent once for each. */
export interface LeaseOverdueEvent {
  readonly lease: Lease;
  /** Since its dispatch. */
  readonly heldMs: number;
  /** True when the controller releases it now, because `overdueLeases` says so. */
  readonly isTakenBack: boolean;
}

/** A lease was garbage collected before it was released. This event comes only with `traceLeases`. */
export interface LeaseLostEvent extends FlowEvent {
  /** Since its dispatch. */
  readonly heldMs: number;
  /** The stack of the call of `enqueue` that it came from. */
  readonly origin: string;
}

/** The gate began to hold requests back, or no longer does. */
export interface GateEvent {
  readonly isClosed: boolean;
  readonly saturation: number;
}

/** The pool lost its last endpoint, or got its first: waiting requests start a fresh budget. */
export interface RegimeEvent {
  readonly isPoolEmpty: boolean;
}

/** Foreign code threw or answered nonsense; the controller went on with its fallback. */
export interface PluginErrorEvent {
  readonly kind: PluginKind;
  /** The plugin's type, or the event's name for a listener. */
  readonly type: string;
  readonly error: unknown;
}

export interface BandEvent {
  readonly priority: number;
}

export interface FlowEvent extends BandEvent {
  readonly fairnessId: string;
}

/** Event names with what their listeners get. */
export interface FlowEvents<R = unknown> {
  enqueued: EnqueuedEvent;
  walked: WalkedEvent;
  queued: QueuedEvent<R>;
  dispatched: DispatchedEvent<R>;
  firstToken: FirstTokenEvent;
  dropped: DroppedEvent<R>;
  evicted: EvictedEvent;
  released: ReleasedEvent;
  leaseOverdue: LeaseOverdueEvent;
  leaseLost: LeaseLostEvent;
  gate: GateEvent;
  regime: RegimeEvent;
  pluginError: PluginErrorEvent;
  bandAdded: BandEvent;
  bandRemoved: BandEvent;
  flowRemoved: FlowEvent;
}

/** Every event, with nobody who listens. The one list of their names; a literal, so that all have one shape. */
export function unheardEvents(): Record<keyof FlowEvents, boolean> {
  return {
    enqueued: false,
    walked: false,
    queued: false,
    dispatched: false,
    firstToken: false,
    dropped: false,
    evicted: false,
    released: false,
    leaseOverdue: false,
    leaseLost: false,
    gate: false,
    regime: false,
    pluginError: false,
    bandAdded: false,
    bandRemoved: false,
    flowRemoved: false,
  };
}
