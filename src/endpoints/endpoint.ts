/** A model server as detectors and pickers see it, and the contract of the pool around it. */

/** The report of one data-parallel rank of a model server; unknown figures are left out. */
export interface RankLoad {
  /** KV blocks that running requests hold, as the router estimates. */
  readonly activeDecodeBlocks?: number | undefined;
  /** KV blocks in use, by the engine's own count. */
  readonly kvUsedBlocks?: number | undefined;
  /** Prompt tokens being processed or waiting to be. */
  readonly activePrefillTokens?: number | undefined;
  /** KV blocks that the rank has. */
  readonly totalBlocks?: number | undefined;
  /** Tokens that the engine puts into one batch at most. */
  readonly maxNumBatchedTokens?: number | undefined;
}

/** LoRA adapters as a model server reported them. */
export interface LoraAdapters {
  /** Names of the adapters that running requests use. */
  readonly running: readonly string[];
  /** Names of the adapters that requests wait for. */
  readonly waiting: readonly string[];
  /** How many different ones may run at once, where the server tells. */
  readonly max?: number | undefined;
}

/** Load figures that a model server reported. */
export interface EndpointMetrics {
  /** Requests waiting in the server's own queue. */
  readonly waitingQueueSize: number;
  /** Requests in the server's running batch. */
  readonly runningRequests: number;
  /** Share of the KV cache in use, 0…1. */
  readonly kvCacheUsage: number;
  /** When the server's state was sampled, ms of the controller's clock. */
  readonly sampledAtMs: number;
  /** One entry for each data-parallel rank, where the server tells. */
  readonly ranks?: readonly RankLoad[] | undefined;
  /** LoRA adapters; undefined when the server reports none. */
  readonly loraAdapters?: LoraAdapters | undefined;
}

/** Whether it may get requests. Neither `draining` (about to leave) nor `ill` (no answer, or a bad one) gets any. */
export type EndpointState = 'ready' | 'draining' | 'ill';

export interface EndpointView {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Its capacity compared with endpoints of weight 1, above 0; 1 unless set. */
  readonly weight: number;
  /** Set by the host; undefined counts as ready. */
  readonly state?: EndpointState | undefined;
  /** It rejected work and gets none before this instant, ms of the controller's clock; 0 when it is not marked. */
  readonly overloadedUntilMs: number;
  /** The last report; undefined before the first. */
  readonly metrics: EndpointMetrics | undefined;
  /** Instant of the next report while nothing runs, ms; undefined: the usual rhythm. Staleness counts from here. */
  readonly reportDueAtMs?: number | undefined;
  /** Requests dispatched to it and not released. */
  readonly inFlightRequests: number;
  readonly inFlightTokens: number;
  /** In flight and not in `metrics`: dispatched after the sample or within `travelMs`. From the first report on. */
  readonly unsampledRequests: number;
  /** Requests that `metrics` counts and that ended since, or just before; absent in views of your own = 0. */
  readonly endedSinceReport?: number | undefined;
  /** Requests ever dispatched to it. */
  readonly dispatchedRequests: number;
}

/** The two halves of disaggregated serving. */
export type Stage = 'prefill' | 'decode';

export interface PoolView {
  /** Members in the order in which they were added. */
  readonly endpoints: readonly EndpointView[];
  /** Sums over the members. */
  readonly inFlightRequests: number;
  readonly inFlightTokens: number;
  /** Where the view can tell: rises when members, labels or weights change; detectors then see another array. */
  readonly version?: number | undefined;
  /** The stage whose endpoints these are; undefined for a whole pool. */
  readonly stage?: Stage | undefined;
}
