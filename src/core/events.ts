/** What the controller announces. Nothing is built for an event that nobody listens to. */
import type { EndpointView } from '../endpoints/endpoint.js';
import type { PluginKind } from '../plugins/plugin-errors.js';
import type { ItemView, Usage } from '../tiers/views.js';
import type { Lease } from './lease.js';
import type { Drop } from './outcome.js';

/** A request now waits. */
export interface QueuedEvent<R = unknown> {
  readonly item: ItemView<R>;
  /** Requests waiting in its band, itself included. */
  readonly waitingInBand: number;
}

/** A request may run. */
export interface DispatchedEvent<R = unknown> {
  readonly item: ItemView<R>;
  readonly lease: Lease;
  readonly endpoint: EndpointView | undefined;
  readonly queuedMs: number;
}

/** A request was rejected or evicted. */
export interface DroppedEvent<R = unknown> {
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

export interface FlowEvent {
  readonly fairnessId: string;
  readonly priority: number;
}

/** Event names with what their listeners get. */
export interface FlowEvents<R = unknown> {
  queued: QueuedEvent<R>;
  dispatched: DispatchedEvent<R>;
  dropped: DroppedEvent<R>;
  evicted: EvictedEvent;
  released: ReleasedEvent;
  gate: GateEvent;
  regime: RegimeEvent;
  pluginError: PluginErrorEvent;
  bandAdded: BandEvent;
  bandRemoved: BandEvent;
  flowRemoved: FlowEvent;
}
