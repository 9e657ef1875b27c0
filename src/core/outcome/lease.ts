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
  /**
   * True once `answered` told of a 429 or 529 while a detector learns from answers, such as `quotaDetector()`: the
   * request may wait again, with `requeue`. A request that ran before there was such a detector is not put off.
   */
  readonly isPutOff: boolean;
  /**
   * Aborts when whoever runs the request must stop: `abort` was called, or the controller evicted the request (the
   * reason is a FlowEvictedError then). It may have aborted before you hear of the lease: look at `aborted` before you
   * listen. Independent of the request's own signal.
   */
  readonly signal: AbortSignal;
  /**
   * Calls `listener` once with the reason, in a microtask, when `signal` aborts or has aborted; it replaces an earlier
   * listener. Its exceptions are uncaught, as with a listener of the signal. It is for a host that runs every request
   * itself: to make a signal and to listen to it costs more than everything else of a lease.
   */
  onAbort(listener: (reason: unknown) => void): void;
  /** Tells whoever runs the request to stop, through `signal`. The seat stays taken until `release`. */
  abort(reason?: unknown): void;
  /**
   * Moves the seat to the endpoint to which a host that routes by itself sent the request.
   * @throws FlowConfigError when the pool has no such endpoint, or the lease was released.
   */
  bind(endpoint: string | EndpointView): void;
  /**
   * Tells what the request consumed so far; the figures replace earlier ones, absent ones stay. Ignored after
   * `release`. @throws FlowConfigError when a figure is negative or no number.
   */
  report(usage: Partial<Usage>): void;
  /**
   * Tells what the server answered: its status, its headers and, of a refusal, the text. Detectors learn from it what
   * the server has left, and when it wants the next request. Call it as soon as the head is there, for every answer, as
   * in `lease.answered(await fetch(url, init))`; a host that never calls it pays nothing. Ignored after `release`.
   * @throws FlowConfigError when the status is none, or `headers` is no object.
   */
  answered(answer: ServerAnswer): void;
  /**
   * Tells that nothing of the request has reached a server: the connection was refused, or the caller left before it
   * was sent. At `release` quotas then give everything back that they had reserved, and policies that share by cost
   * charge it no tokens. Ignored after `release`.
   */
  unsent(): void;
  /**
   * Tells that no turn of the request's session follows: a detector that limits sessions, such as `sessionLimit()`,
   * gives its place to another once none of its turns runs. May be called after `release`; without such a detector it
   * does nothing.
   */
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
