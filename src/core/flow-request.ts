/** The arguments of `enqueue`: the request and the flow it belongs to. */

/** The part of a host's request that flow control reads. Hosts may pass more: policies see the whole object. */
export interface FlowRequest {
  /** Bytes that count against the capacity limits, an integer from 0 up. */
  readonly byteSize: number;
  /** Aborting it while the request waits drops the request; afterwards it has no effect. */
  readonly signal?: AbortSignal | undefined;
  /** How long the request may wait, ms; replaces the band's TTL. 0 or Infinity: for ever. */
  readonly ttlMs?: number | undefined;
  /** The longest that it may wait, ms from 0 up. It can only shorten the time to live. @default no bound */
  readonly maxWaitMs?: number | undefined;
  /** Tokens the request is expected to hold while it runs, for token-based detectors. @default 0 */
  readonly tokens?: number | undefined;
  /** Time-to-first-token target, ms, for `sloDeadline()`. */
  readonly sloTtftMs?: number | undefined;
  /** When the host first saw the request, ms of the controller's clock. @default the time of `enqueue` */
  readonly receivedAtMs?: number | undefined;
}

/** Names the flow of a request. */
export interface FlowKey {
  /** The party that shares: a tenant, a session, a program. Not empty. */
  readonly fairnessId: string;
  /** Any safe integer; higher goes first, negative is sheddable. @default 0 */
  readonly priority?: number | undefined;
}
