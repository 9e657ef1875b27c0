/** The right to run one dispatched request. */
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { ServerAnswer } from '../../gate/server-answer.js';
import type { Usage } from '../../tiers/views.js';
import type { FlowRequest } from '../flow-request.js';
// biome-ignore lint/suspicious/noImportCycles: an outcome hands out a lease, and a lease that is put back has an outcome.
import type { Outcome } from './outcome.js';

declare global {
  // For compilers whose `lib` has no `ESNext.Disposable`, and no types of Node either.
  interface SymbolConstructor {
    readonly dispose: unique symbol;
    readonly asyncDispose: unique symbol;
  }
}

/** The hold of a dispatched request on its seat. Give it back with `release()`, or let `using` do it. */
export interface Lease {
  readonly fairnessId: string;
  readonly priority: number;
  /** When it was dispatched, ms of the controller's clock. */
  readonly dispatchedAtMs: number;
  /** Tokens booked for it. */
  readonly tokens: number;
  /** The endpoint chosen at dispatch or by `bind`; undefined for a controller without a pool. */
  readonly endpoint: EndpointView | undefined;
  /** The tokens that the request consumed so far, as far as the host reported it. */
  readonly usage: Usage;
  readonly isReleased: boolean;
  /** True when the controller may ask for the seat, for a waiting request of higher priority. */
  readonly isEvictable: boolean;
  /** True once the controller asked for the seat, for a waiting request of higher priority. */
  readonly isEvicted: boolean;
  /** True once `answered` told of a 429 or 529 while a detector learns from answers: the request may `requeue`. */
  readonly isPutOff: boolean;
  /**
   * Aborts when the request must stop: `abort` was called, or it was evicted (FlowEvictedError). Look at `aborted`
   * before you listen. Independent of the request's own signal.
   */
  readonly signal: AbortSignal;
  /**
   * Calls `listener` once with the reason, in a microtask, when `signal` aborts or has; it replaces an earlier one.
   * What it throws is uncaught. Cheaper than `signal`, which costs more than the rest of a lease.
   */
  onAbort(listener: (reason: unknown) => void): void;
  /** Tells whoever runs the request to stop, through `signal`. The seat stays taken until `release`. */
  abort(reason?: unknown): void;
  /** Moves the seat to where the host sent it. @throws FlowConfigError for an unknown endpoint, or a released lease */
  bind(endpoint: string | EndpointView): void;
  /** Tells its usage so far; absent figures stay. Ignored after `release`. @throws FlowConfigError for bad figures */
  report(usage: Partial<Usage>): void;
  /**
   * Tells the status, headers and refusal text of every answer, once its head is there, as in
   * `lease.answered(await fetch(url, init))`: detectors learn what the server has left, and when it wants the next
   * request. Ignored after `release`. @throws FlowConfigError for a wrong status or `headers`
   */
  answered(answer: ServerAnswer): void;
  /** Tells that nothing has reached a server: quotas give all back, no tokens are charged. Ignored after `release`. */
  unsent(): void;
  /** Tells that its session has no further turn: `sessionLimit()` gives its place away. Also after `release`. */
  endSession(): void;
  /**
   * For a request that was evicted, or whose lease `isPutOff`. Gives the seat back and lets the request wait again, in
   * its place by arrival and with a fresh TTL. Limits do not apply, because it had its place before. Resolves as
   * `enqueue` does; a request that produced tokens, or was put back before after an eviction, is dropped as `evicted`.
   * The host must bound how often a request that is put off may return. `request` replaces what policies see of it, and
   * its signal ends this wait; the figures stay those of its arrival.
   * @throws (rejects) FlowConfigError when the request was neither evicted nor put off, or the lease was released.
   */
  requeue(request?: FlowRequest): Promise<Outcome>;
  /** Gives the seat back; call it when the response has ended, however it ended. Later calls do nothing. */
  release(): void;
  [Symbol.dispose](): void;
}
