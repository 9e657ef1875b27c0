/** A model server as detectors and pickers see it, and the contract of the pool around it. */

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
}

export interface EndpointView {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The last report; undefined before the first. */
  readonly metrics: EndpointMetrics | undefined;
  /** Requests dispatched to it and not released. */
  readonly inFlightRequests: number;
  readonly inFlightTokens: number;
  /** Requests in flight that were dispatched after `metrics.sampledAtMs`, and so are missing from the metrics. */
  readonly unsampledRequests: number;
  /** Requests ever dispatched to it. */
  readonly dispatchedRequests: number;
}

export interface PoolView {
  /** Members in the order in which they were added. */
  readonly endpoints: readonly EndpointView[];
  /** Sums over the members. */
  readonly inFlightRequests: number;
  readonly inFlightTokens: number;
}
