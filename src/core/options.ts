/** Options of the constructor, and resolved. */
import type { AdmissionPolicy } from '../admission/admission-policy.js';
import type { Clock } from '../base/clock.js';
import type { EndpointGroup } from '../base/endpoint-turns.js';
import type { Duration } from '../base/schema/duration.js';
import type { Filled } from '../base/schema/element.js';
import type { Quantity } from '../base/schema/quantity.js';
import type { EndpointPool } from '../endpoints/endpoint-pool.js';
import type { EndpointFilter } from '../endpoints/filters/endpoint-filter.js';
import type { EndpointPicker } from '../endpoints/pickers/endpoint-picker.js';
import type { EvictionOptions } from '../eviction/eviction-policy.js';
import type { UsageLimitPolicy } from '../gate/ceilings/usage-limit-policy.js';
import type { Constraint } from '../gate/constraint.js';
import type { SaturationDetector, SaturationFunction } from '../gate/saturation-detector.js';
import type { SeatListener } from '../gate/seat-listener.js';
import type { BandOrder } from '../tiers/1-priority/band-order.js';
import type { BandOrderPolicy } from '../tiers/1-priority/band-order-policy.js';
import type { FairnessPolicy } from '../tiers/2-fairness/fairness-policy.js';
import type { OrderingPolicy } from '../tiers/3-ordering/ordering-policy.js';
import type { BandRegistrySettings } from '../tiers/band-registry.js';
import type { BandSettings } from '../tiers/priority-band.js';
import type { ItemView, TokenEstimate } from '../tiers/views.js';
import type { FlowRequest } from './flow-request.js';
import type { FlowSettingsSource } from './flow-settings.js';

/** Limits of what may wait. A limit may be reached exactly. */
export interface LimitOptions {
  maxRequests?: Quantity | undefined;
  maxBytes?: Quantity | undefined;
}

/** A limit on what runs at a time: requests, or also tokens booked for them (`FlowRequest.tokens`). From 1 up. */
export type InFlightOptions = Quantity | { requests?: Quantity | undefined; tokens?: Quantity | undefined };

/** The settings of a priority band; also the template of bands that are made on first use. */
export interface BandTemplate<R extends FlowRequest = FlowRequest> {
  /** Limits of what may wait in the band. @default 5000 requests, 1e9 bytes, or global ones that are set and larger */
  limits?: LimitOptions | undefined;
  /** Limits of each flow. @default 2500 requests, 5e8 bytes; none beside other limits, or with `overflow: 'fair'` */
  flowLimits?: LimitOptions | undefined;
  /**
   * Limits what each flow of the band runs at a time. A flow at its cap waits while others pass; it goes on when one of
   * its own requests ends. A request larger than the cap in tokens runs alone. No effect in mode `admission`.
   * @default unlimited
   */
  maxInFlightPerFlow?: InFlightOptions | undefined;
  /** How long a request may wait in the band; 0 or Infinity: for ever. @default `defaultRequestTtl` */
  requestTtl?: Duration | undefined;
  /** Which flow of the band goes next. @default roundRobin() */
  fairness?: FairnessPolicy<R> | undefined;
  /** Which request of the flow goes next. @default fcfs() */
  ordering?: OrderingPolicy<R> | undefined;
  /** Judges this band alone. A band above that waits still holds this one back. @default the controller's detector */
  saturationDetector?: SaturationDetector | SaturationFunction | undefined;
  /** Part of all dispatches that the band gets while it waits; 0…1, all bands together below 1. @default 0 */
  minShare?: number | undefined;
  /**
   * Groups of endpoints, by their label `group`: a request goes to the first with room that it may go to by then. Needs
   * `pool`. @default every endpoint
   */
  endpoints?: readonly (string | EndpointGroup)[] | undefined;
}

/** The settings of one fairness ID, besides those of its band. */
export interface FlowSettings {
  /** Turns in each round of `roundRobin()`, an integer from 1 up. @default 1 */
  weight?: number | undefined;
  /** @default the band's `flowLimits` */
  limits?: LimitOptions | undefined;
  /** Limits what it runs at a time, in all bands together. @default the `maxInFlightPerFlow` of each band */
  maxInFlight?: InFlightOptions | undefined;
}

export interface BandOptions<R extends FlowRequest = FlowRequest> extends BandTemplate<R> {
  /** A safe integer; higher goes first, negative is sheddable. */
  priority: number;
}

export interface GateOptions {
  /** Saturation at which the gate closes. @default 1 */
  closeAt?: number | undefined;
  /** Saturation at which a closed gate opens again, at most `closeAt`. @default `closeAt`: no hysteresis */
  openAt?: number | undefined;
  /** The reading that replaces a failing detector: from 1 on every band waits, at 0 all pass. @default 1 */
  failValue?: number | undefined;
  /** How often a closed gate reads a detector that cannot announce changes, ms, while requests wait. @default 10 */
  recheckIntervalMs?: number | undefined;
}

/** What `inFlightEviction` makes. */
export interface Eviction {
  readonly type: 'in-flight-eviction';
  /** @internal */
  readonly settings: Filled<EvictionOptions, 'graceMs'>;
}

/** What `shadow` makes. */
export interface Shadow {
  readonly type: 'shadow';
}

/** @see FlowController */
export interface FlowControllerOptions<R extends FlowRequest = FlowRequest> {
  /** How full the pool is. Required, unless `maxConcurrency` or `constraints` hold back: there is no safe guess. */
  saturationDetector?: SaturationDetector | SaturationFunction | undefined;
  /** Requests that may run at a time, an integer from 1 up: short for `concurrencyDetector({ maxConcurrency })`. */
  maxConcurrency?: number | undefined;
  /** Judge each request by itself, such as `quotaDetector()`: it goes when all of them have room. @default none */
  constraints?: readonly Constraint[] | undefined;
  /** Hears what becomes of the seats of running requests. @default nobody but detectors and constraints */
  seatListener?: SeatListener | undefined;
  gate?: GateOptions | undefined;
  /**
   * `queue`: a request that may not go now waits. `admission`: no request waits. A request that the admission policy
   * admits goes at once, whatever the gate says; limits and TTLs do not matter. `shadow()`: everything is decided,
   * counted and explained as in `queue`, but nothing is held or dropped. Callers get their lease at once, and
   * `stats().shadow` says what would have happened. @default 'queue'
   */
  mode?: 'queue' | 'admission' | Shadow | undefined;
  /** Rejects requests before anything else is looked at. @default none; gaieLegacy() in mode 'admission' */
  admission?: AdmissionPolicy<R> | undefined;
  /** Evicts running requests for waiting ones of higher priority: `inFlightEviction()`. @default none is evicted */
  eviction?: Eviction | undefined;
  /**
   * Which request leaves full queues. `reject`: the newcomer. `displace`: at global limits, the newest of the lowest
   * sheddable band, for one of higher priority. `fair`: one of any lower band. In its own band, the newest
   * request of the flow with most waiting for its weight leaves, if the newcomer's flow stays below that flow.
   * O(log flows) for each request that waits. @default 'reject'
   */
  overflow?: 'reject' | 'displace' | 'fair' | undefined;
  /**
   * Called when the turn of a request that waited comes; it must answer at once. If the request has become void in the
   * meantime, for example by a revoked key, return a text: the request is dropped, and the text tells the client why.
   * Requests that go without waiting are not asked about. If it throws or answers nonsense, the request goes.
   * @default every request that waited may run
   */
  onDispatch?: ((item: ItemView<R>) => string | undefined) | undefined;
  /**
   * Tokens that a request will take; wins over everything. Undefined, or a failure: as without it.
   * @default what the request says
   */
  estimate?: ((request: R) => TokenEstimate | undefined) | undefined;
  /**
   * Which band goes next among those that may. `strict`: the highest. `fifo`: the one whose oldest request came first.
   * `aging`: the same, one band higher counting as `bandPromotion` of waiting. A policy, such as `weightedBands()`,
   * ranks them itself. @default 'strict'
   */
  bandOrder?: 'strict' | 'fifo' | 'aging' | BandOrderPolicy | undefined;
  /** Waiting that is worth one band, for `bandOrder: 'aging'`. @default '60s' */
  bandPromotion?: Duration | undefined;
  /** What `minShare` is of: dispatches, or tokens as booked, corrected by `lease.report`. @default 'requests' */
  minShareUnit?: 'requests' | 'tokens' | undefined;
  /**
   * Weights, limits and caps of single fairness IDs, in every band; or a function that tells them, at once. Its answers
   * are remembered for up to `maxFlows` fairness IDs, until `refreshFlow`. If it throws or answers nonsense, its last
   * answer for that fairness ID holds until `refreshFlow`; without one, the settings of the band hold. A `pluginError`
   * of the kind `flows` tells of it.
   */
  flows?: Readonly<Record<string, FlowSettings>> | ((fairnessId: string) => FlowSettings | undefined) | undefined;
  /** Up to which saturation each band may dispatch. @default staticUsageLimit(): every band up to 1 */
  usageLimitPolicy?: UsageLimitPolicy | undefined;
  /** Limits over all bands. @default 10,000 requests and 1 GiB */
  limits?: LimitOptions | undefined;
  /** Bands that exist from the start and are never collected; priority 0 is added. @default one, of priority 0 */
  bands?: readonly BandOptions<R>[] | undefined;
  /** Template of bands made on first use. */
  defaultBand?: BandTemplate<R> | undefined;
  /** The same for negative priorities. @default `defaultBand` */
  defaultNegativeBand?: BandTemplate<R> | undefined;
  /** Bands that may exist at a time, 1…1024. @default 64, or as many as are configured */
  maxBands?: number | undefined;
  /** Flows that may exist at a time; beyond it, new fairness IDs share 64 overflow flows in a band. @default 100,000 */
  maxFlows?: number | undefined;
  /** How long an idle flow is remembered. @default '5m' */
  flowIdleTimeout?: Duration | undefined;
  /** How long an idle band made on first use is kept, ≥ `flowIdleTimeout`. @default '10m' or `flowIdleTimeout` */
  bandIdleTimeout?: Duration | undefined;
  /** How long a request may wait. 0 or Infinity: for ever. @default '60s' */
  defaultRequestTtl?: Duration | undefined;
  /**
   * The same while the pool has no endpoints. Longer than its TTL, it also bounds the whole wait of a request.
   * @default its TTL, at most `defaultRequestTtl`; '5s' at most while no server was ever ready
   */
  noEndpointRequestTtl?: Duration | undefined;
  /** The model servers. @default one implicit endpoint */
  pool?: EndpointPool | undefined;
  /** Chooses the endpoint at dispatch; needs `pool`. @default leastLoaded() */
  endpointPicker?: EndpointPicker<R> | undefined;
  /** Which endpoints a request may go to at all; it must pass every filter. Needs `pool`. @default none */
  endpointFilters?: readonly EndpointFilter<R>[] | undefined;
  /**
   * A request for whose endpoints the detector leaves no room: it goes to one of them (`preferred`), or waits
   * (`required`). @default 'required' with `endpointFilters` or groups of endpoints, else 'preferred'
   */
  headroom?: 'preferred' | 'required' | undefined;
  /**
   * Which requests wait behind one whose endpoints have no room: its `band` and those below, its `flow`, or `none` but
   * those of its flow for the same endpoints. @default 'band'; 'flow' where bands name groups; 'none' with a detector
   * that tells sessions apart
   */
  holBlocking?: HolBlocking | undefined;
  /**
   * The most waiting requests that are dispatched in one turn of the event loop. Then timers and sockets have their
   * turn, and dispatch goes on in the same order. An integer from 1 up. @default 1000
   */
  maxDispatchesPerTurn?: number | undefined;
  /** A lease held longer than this many ms is told once, as `leaseOverdue`, else on stderr. @default Infinity: none */
  maxLeaseMs?: number | undefined;
  /** A lease beyond `maxLeaseMs`, or lost. `release`: its signal aborts, and its seat is free. @default 'warn' */
  overdueLeases?: 'warn' | 'release' | undefined;
  /**
   * Finds leases that the host lost without `release`, when they are garbage collected. The event `leaseLost` tells of
   * each once, with the call that it came from. Costs a stack for each request. @default true where NODE_ENV is
   * `development`, otherwise false
   */
  traceLeases?: boolean | undefined;
  /** Monotonic ms, and timers. @default the platform's */
  clock?: Clock | undefined;
}

/** How many other requests are held back by one that no endpoint can take now. */
export type HolBlocking = 'band' | 'flow' | 'none';

/** Limits with their units resolved; Infinity = unlimited. */
export interface Limits {
  readonly maxRequests: number;
  readonly maxBytes: number;
}

export interface ResolvedBand extends BandSettings {
  readonly saturationDetector: SaturationDetector | undefined;
}

export interface ResolvedEviction extends Filled<EvictionOptions> {
  /** @internal */
  readonly maker: Eviction;
}

type FilledOption =
  | ('constraints' | 'usageLimitPolicy' | 'mode' | 'headroom' | 'holBlocking' | 'maxDispatchesPerTurn')
  | ('maxLeaseMs' | 'overdueLeases' | 'traceLeases' | 'clock');

/** Every option with its unit resolved and its default filled in. Plugins see requests as `unknown` from here on. */
export interface ResolvedOptions extends BandRegistrySettings, Filled<Pick<FlowControllerOptions, FilledOption>> {
  readonly saturationDetector: SaturationDetector;
  readonly seatListener?: SeatListener | undefined;
  readonly gate: Filled<GateOptions>;
  readonly admission: AdmissionPolicy | undefined;
  readonly eviction: ResolvedEviction | undefined;
  readonly onDispatch?: ((item: ItemView) => string | undefined) | undefined;
  readonly estimate?: ((request: unknown) => TokenEstimate | undefined) | undefined;
  /** @internal */
  readonly bandOrder: BandOrder;
  /** @internal */
  readonly flows: FlowSettingsSource;
  readonly limits: Limits;
  /** Configured bands, highest priority first; priority 0 is always among them. */
  readonly bands: readonly (ResolvedBand & { readonly priority: number })[];
  readonly defaultBand: ResolvedBand;
  readonly defaultNegativeBand: ResolvedBand;
  readonly noEndpointRequestTtlMs: number;
  /** True when the host gave `noEndpointRequestTtl`. */
  readonly hasOwnNoEndpointTtl: boolean;
  readonly pool?: EndpointPool | undefined;
  readonly endpointPicker: EndpointPicker;
  readonly endpointFilters: readonly EndpointFilter[];
  /** Constraints that park flows. */
  readonly partMakers: readonly Constraint[];
}
