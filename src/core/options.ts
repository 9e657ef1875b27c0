/** What the constructor takes, and what it becomes: every unit resolved, every default filled in. */
import type { EndpointPicker } from '../endpoints/endpoint-picker.js';
import type { EndpointPool } from '../endpoints/endpoint-pool.js';
import type { SaturationDetector, SaturationFunction } from '../gate/saturation-detector.js';
import type { UsageLimitPolicy } from '../gate/usage-limit-policy.js';
import type { FairnessPolicy } from '../tiers/2-fairness/fairness-policy.js';
import type { OrderingPolicy } from '../tiers/3-ordering/ordering-policy.js';
import type { Clock } from './clock.js';
import type { FlowRequest } from './flow-request.js';

/** A count or a size: an integer from 0 up, Infinity for unlimited, or a Kubernetes quantity (`'1k'`, `'10Gi'`). */
export type Quantity = number | string;

/** A span of time: ms as a number, or Go's notation (`'60s'`, `'1m30s'`, `'200ms'`). */
export type Duration = number | string;

/** Limits of what may wait. Landing exactly on a limit is allowed. */
export interface LimitOptions {
  maxRequests?: Quantity | undefined;
  maxBytes?: Quantity | undefined;
}

/** What a priority band is made of; also the template of bands that are made on first use. */
export interface BandTemplate<R extends FlowRequest = FlowRequest> {
  /** @default 5000 requests and 1e9 bytes, or the global limits where those were set and are larger */
  limits?: LimitOptions | undefined;
  /** Limits of each flow of the band. @default unlimited */
  flowLimits?: LimitOptions | undefined;
  /** @default `defaultRequestTtl`; 0 or Infinity: for ever */
  requestTtl?: Duration | undefined;
  /** @default globalStrict() */
  fairness?: FairnessPolicy<R> | undefined;
  /** @default fcfs() */
  ordering?: OrderingPolicy<R> | undefined;
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
  /** What a failing detector is read as: 1 holds requests back, 0 lets them pass. @default 1 */
  failValue?: number | undefined;
  /** How often a closed gate asks a detector that cannot announce changes, ms, while requests wait. @default 10 */
  recheckIntervalMs?: number | undefined;
}

/** @see FlowController */
export interface FlowControllerOptions<R extends FlowRequest = FlowRequest> {
  /** How full the pool is. Required: there is no safe guess. */
  saturationDetector: SaturationDetector | SaturationFunction;
  gate?: GateOptions | undefined;
  /** @default staticUsageLimit(): every band up to saturation 1 */
  usageLimitPolicy?: UsageLimitPolicy | undefined;
  /** Limits over all bands. @default 10,000 requests and 1 GiB */
  limits?: LimitOptions | undefined;
  /** Bands that exist from the start and are never collected. Priority 0 is added when missing. @default one band, priority 0 */
  bands?: readonly BandOptions<R>[] | undefined;
  /** Template of bands made on first use. */
  defaultBand?: BandTemplate<R> | undefined;
  /** The same for negative priorities. @default `defaultBand` */
  defaultNegativeBand?: BandTemplate<R> | undefined;
  /** Bands that may exist at a time, the configured ones included, 1…1024. @default 64, or as many as are configured */
  maxBands?: number | undefined;
  /** Flows that may exist at a time; beyond it, new fairness IDs share 64 overflow flows in each band. @default 100,000 */
  maxFlows?: number | undefined;
  /** How long an idle flow is remembered. @default '5m' */
  flowIdleTimeout?: Duration | undefined;
  /** How long an idle band that was made on first use is kept, at least `flowIdleTimeout`. @default '10m' or `flowIdleTimeout` */
  bandIdleTimeout?: Duration | undefined;
  /** How long a request may wait. 0 or Infinity: for ever. @default '60s' */
  defaultRequestTtl?: Duration | undefined;
  /** The same while the pool has no endpoints. @default `defaultRequestTtl` when that is set, else '60s' */
  noEndpointRequestTtl?: Duration | undefined;
  /** The model servers. @default one implicit endpoint */
  pool?: EndpointPool | undefined;
  /** Chooses the endpoint at dispatch; needs `pool`. @default leastLoaded() */
  endpointPicker?: EndpointPicker<R> | undefined;
  /** @default the platform's monotonic clock */
  clock?: Clock | undefined;
}

/** Limits with their units resolved; Infinity = unlimited. */
export interface Limits {
  readonly maxRequests: number;
  readonly maxBytes: number;
}

export interface ResolvedBand {
  readonly limits: Limits;
  readonly flowLimits: Limits;
  /** Infinity = for ever. */
  readonly requestTtlMs: number;
  readonly fairness: FairnessPolicy;
  readonly ordering: OrderingPolicy;
}

/** Every option with its unit resolved and its default filled in. Plugins see the host's requests as `unknown` from here on. */
export interface ResolvedOptions {
  readonly saturationDetector: SaturationDetector;
  readonly gate: { readonly closeAt: number; readonly openAt: number; readonly failValue: number; readonly recheckIntervalMs: number };
  readonly usageLimitPolicy: UsageLimitPolicy;
  readonly limits: Limits;
  /** Configured bands, highest priority first; priority 0 is always among them. */
  readonly bands: readonly (ResolvedBand & { readonly priority: number })[];
  readonly defaultBand: ResolvedBand;
  readonly defaultNegativeBand: ResolvedBand;
  readonly maxBands: number;
  readonly maxFlows: number;
  readonly flowIdleTimeoutMs: number;
  readonly bandIdleTimeoutMs: number;
  readonly noEndpointRequestTtlMs: number;
  readonly pool: EndpointPool | undefined;
  readonly endpointPicker: EndpointPicker;
  readonly clock: Clock;
}
