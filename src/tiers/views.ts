/** What policies see of a waiting request, its flow, its band. They choose by it; only the controller changes it. */

/** One request as ordering, fairness and picking policies see it. Instants are in ms of the controller's clock. */
export interface ItemView<R = unknown> {
  /** The request that the host passed to `enqueue`. */
  readonly request: R;
  readonly fairnessId: string;
  readonly priority: number;
  /** Bytes that count against the capacity limits. */
  readonly byteSize: number;
  /** Tokens booked against an endpoint when the request is dispatched; 0 when the host gave none. */
  readonly tokens: number;
  /** Arrival number: unique, rising, the tie-break of every policy. */
  readonly sequence: number;
  /** When the host first saw the request; equals `enqueuedAtMs` unless the host said otherwise. */
  readonly receivedAtMs: number;
  readonly enqueuedAtMs: number;
  /** How long it may wait while the pool has endpoints; Infinity = for ever. */
  readonly ttlMs: number;
  /** `receivedAtMs` + the request's time-to-first-token target; Infinity when it has none. */
  readonly ttftDeadlineAtMs: number;
  /** What the host's option `estimate` said of it. */
  readonly estimate?: TokenEstimate | undefined;
}

/** The tokens that a request is expected to take, numbers from 0 up. */
export interface TokenEstimate {
  readonly inputTokens: number;
  /** The part of `inputTokens` that servers have cached. @default 0 */
  readonly cachedTokens?: number | undefined;
  /** @default not known */
  readonly outputTokens?: number | undefined;
}

/** One flow (fairness ID × priority) as fairness policies see it. */
export interface FlowView<R = unknown> {
  readonly fairnessId: string;
  readonly priority: number;
  /** Its share compared with flows of weight 1, from the configuration; 1 unless set. */
  readonly weight: number;
  /** Requests waiting in this flow. */
  readonly waiting: number;
  readonly waitingBytes: number;
  /** The request that the ordering policy would serve first; undefined when nothing waits. */
  readonly head: ItemView<R> | undefined;
}

/** One priority band as fairness policies see it. */
export interface BandView<R = unknown> {
  readonly priority: number;
  readonly waiting: number;
  readonly waitingBytes: number;
  /** The flow that has been active longest; undefined when nothing waits. */
  readonly firstActive: FlowView<R> | undefined;
  /** Flows with waiting requests, in the order in which they became active. */
  activeFlows(): Iterable<FlowView<R>>;
}

/** The tokens that a request consumed, as far as the host reported it. */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** The part of `promptTokens` that the server had cached; absent where nobody told. */
  readonly cachedPromptTokens?: number;
}
