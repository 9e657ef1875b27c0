/**
 * The steps of one request through flow control, the same in every adapter. Invariant: a lease that was given out is
 * released exactly once, at the end of the response or, if the response ended first, when the lease arrives.
 *
 *   classify → strip headers → RequestLifetime ─→ enter ─┬───────────────────→ verdict
 *                              │                         └→ wait with a signal → verdict
 *                              └→ the signal, lease.abort, lease.release
 */
import { abandon, isPromise } from '../../base/async-function.js';
import { realClock } from '../../base/clock.js';
import { describeValue } from '../../base/faults/flow-config-error.js';
import { type StopWatching, UploadWatch } from '../../base/stream/upload-watch.js';
import { whenAborted } from '../../base/when-aborted.js';
import { type Drop, FlowConfigError, FlowControlError, type FlowKey, type Lease, type Outcome } from '../../index.js';
import {
  type AdapterGate,
  type Classification,
  type ContextScope,
  checkAdapter,
  type FlowControlOptions,
  type HttpFlowRequest,
  type PlacementHints,
} from './adapter-options.js';
import { clientDisconnected, type Exchange } from './exchange.js';
import { flowKeyFromHeaders } from './flow-key-from-headers.js';
import { lifeSigns } from './life-signs.js';
import { leasedContext, RequestFlow } from './request-flow.js';
import type { HttpErrorResponse } from './to-http-response.js';
import { bandHeadroomHeaders, slowUploadResponse, toHttpResponse, tooLargeResponse } from './to-http-response.js';

/**
 * The framework's next step.
 * - `pass`: run the handler; without `flow` the request needs no lease.
 * - `reject`: send the response.
 * - `fail`: hand the error to the host.
 * - `gone`: nothing; the response is over.
 */
export type Verdict =
  | { readonly type: 'pass'; readonly flow: RequestFlow | undefined }
  | { readonly type: 'reject'; readonly response: HttpErrorResponse }
  | { readonly type: 'fail'; readonly error: unknown }
  | { readonly type: 'gone' };
type Judged = Verdict | Promise<Verdict>;

/** `Subject` is what options see of a request, `Req` what policies see. */
export class HttpFlowControl<Subject, Req> {
  private readonly gate: AdapterGate<HttpFlowRequest<Req>>;
  private readonly options: FlowControlOptions<Subject>;
  /** Undefined unless responses tell the headroom. */
  private readonly headroom: ((priority: number) => number | undefined) | undefined;
  /** The storage in which calls find the request that causes them; undefined unless the host gives one. */
  readonly context: ContextScope | undefined;
  /** Undefined where uploads may take their time. */
  private readonly uploads: UploadWatch | undefined;

  /** @throws FlowConfigError for options that cannot be right. */
  constructor(gate: AdapterGate<HttpFlowRequest<Req>>, options: FlowControlOptions<Subject>) {
    checkAdapter(gate, options);
    this.gate = gate;
    this.options = options;
    this.context = options.context;
    const { uploadIdleMs: idleMs = 30_000, minUploadBytesPerSecond: minBytesPerSecond = 4096 } = options;
    this.uploads = idleMs === Infinity ? undefined : new UploadWatch({ idleMs, minBytesPerSecond }, realClock);
    this.headroom = options.bandHeadroom === true ? (priority) => gate.bandHeadroom?.(priority) : undefined;
  }

  /** Runs the host's next step for a request that has its lease. */
  enter<T>({ context }: RequestFlow, next: () => T): T {
    return this.context === undefined || context === undefined ? next() : this.context.run(context, next);
  }

  /** The verdict itself, or a promise of it, which never rejects, for a request that has to wait. */
  judge(subject: Subject, exchange: Exchange<Req>): Judged {
    let classification: Classification | undefined;
    let byteSize: number;
    try {
      classification = this.classify(subject, exchange);
      byteSize = this.options.byteSize?.(subject) ?? this.bookedBytes(exchange);
    } catch (error) {
      return { type: 'fail', error };
    }
    // A request that has this controller's lease already would wait for itself.
    if (classification === undefined || exchange.flow?.gate === this.gate) {
      exchange.proceed?.();
      return { type: 'pass', flow: undefined };
    }
    const { maxRequestBytes } = this.options;
    if (maxRequestBytes !== undefined && exchange.bodyBytes(0) > maxRequestBytes) {
      const response = tooLargeResponse(maxRequestBytes, this.options.body);
      return { type: 'reject', response: this.closing(response, exchange, false) };
    }
    const { fairnessId, priority, ...told } = classification;
    // In Node 20 each member that a literal adds after a spread takes a microsecond.
    const request: HttpFlowRequest<Req> = { byteSize, req: exchange.req, ...told };
    return this.ask(request, { fairnessId, priority }, exchange, subject);
  }

  private bookedBytes(exchange: Exchange<Req>): number {
    const { unknownBodyBytes = 65_536, readAheadBytes = 2_097_152 } = this.options;
    const bytes = exchange.bodyBytes(unknownBodyBytes);
    return exchange.upload === undefined ? bytes : Math.min(bytes, Math.max(readAheadBytes, unknownBodyBytes));
  }

  /** Undefined for a request that needs no lease. The headers are gone afterwards. */
  private classify(subject: Subject, exchange: Exchange<Req>): Classification | undefined {
    const { skip, classify, trust = false, objectives, defaultFairnessId, sessionHeaders } = this.options;
    try {
      if (skip?.(subject) === true) return undefined;
      if (classify !== undefined) return classified(classify(subject));
      // Only `true` counts, because a promise is truthy too.
      const isTrusted = (typeof trust === 'function' ? trust(subject) : trust) === true;
      return flowKeyFromHeaders(exchange.headers, { objectives, trust: isTrusted, defaultFairnessId, sessionHeaders });
    } finally {
      exchange.stripHeaders();
    }
  }

  private ask(request: HttpFlowRequest<Req>, key: FlowKey, exchange: Exchange<Req>, subject: Subject): Judged {
    const lifetime = new RequestLifetime(exchange, this.options.releaseOn !== 'manual');
    if (lifetime.isOver) return gone;
    let asked = request;
    const waiting = (): HttpFlowRequest<Req> => {
      const signal = lifetime.wait();
      exchange.wait?.(request.byteSize);
      asked = { ...request, signal };
      return asked;
    };
    const { waiting: options } = this.options;
    const signs = options && lifeSigns(subject, options, exchange, () => Object.assign(asked, { hasBegun: true }));
    if (signs !== undefined) exchange.showLife?.(signs);
    try {
      const entered = this.gate.enter?.(request, key, waiting) ?? this.gate.enqueue(waiting(), key);
      if (!isPromise(entered)) return this.settle(entered, lifetime, request);
      return entered
        .then((outcome) => this.settle(outcome, lifetime, request))
        .catch((error: unknown) => ({ type: 'fail', error }));
    } catch (error) {
      return { type: 'fail', error };
    }
  }

  private settle(outcome: Outcome, lifetime: RequestLifetime<Req>, hints: PlacementHints): Verdict {
    const { exchange } = lifetime;
    lifetime.waiting = undefined;
    if (lifetime.isOver || exchange.isAnswered === true) {
      if (outcome.type === 'Dispatched') outcome.lease.release();
      return gone;
    }
    if (outcome.type !== 'Dispatched') return this.reject(outcome, exchange);
    const { lease, queuedMs } = outcome;
    lifetime.lease = lease;
    if (lease.isEvictable) this.watch(lease, queuedMs, exchange);
    if (lifetime.isOver) return gone;
    if (this.uploads !== undefined && isBodyComing(exchange)) this.watchUpload(lifetime, this.uploads);
    exchange.proceed?.();
    const context = this.context === undefined ? undefined : leasedContext(lease, this.gate, hints);
    const headroom = this.headroom?.(lease.priority);
    return { type: 'pass', flow: new RequestFlow(lease, queuedMs, this.gate, headroom, context, this.options.body) };
  }

  private reject(drop: Drop, exchange: Exchange<Req>): Verdict {
    const response = this.answer(drop, exchange);
    if (this.options.onDrop === 'throw' || exchange.hasBegun === true)
      return { type: 'fail', error: new FlowControlError(drop, response) };
    return { type: 'reject', response };
  }

  /** The handler is told first, by `lease.signal`; the exchange ends what the handler has not ended itself. */
  private watch(lease: Lease, queuedMs: number, exchange: Exchange<Req>): void {
    const { fairnessId, priority } = lease;
    const drop: Drop = { type: 'EvictedOther', reason: 'evicted', fairnessId, priority, queuedMs };
    whenAborted(lease.signal, (reason) => {
      if (lease.isEvicted) exchange.evict(() => this.answerSafely(drop, exchange), reason);
    });
  }

  /** A client that sends nothing must not keep a seat from those that do. The handler hears of it by `lease.signal`. */
  private watchUpload(lifetime: RequestLifetime<Req>, uploads: UploadWatch): void {
    const { exchange, lease } = lifetime;
    const end = (): void => {
      const response = slowUploadResponse(this.options.body);
      const reason = new DOMException('the upload is too slow', 'TimeoutError');
      exchange.evict(() => this.closing(response, exchange, true), reason);
      lease?.abort(reason);
    };
    lifetime.stopWatching = uploads.add(() => exchange.upload?.() ?? { type: 'over' }, end);
  }

  private answer(drop: Drop, exchange: Exchange<Req>): HttpErrorResponse {
    const response = toHttpResponse(drop, this.options);
    const headers = { ...response.headers, ...bandHeadroomHeaders(this.headroom?.(drop.priority)) };
    return this.closing({ ...response, headers }, exchange, drop.reason === 'shutting-down');
  }

  /** For where nobody can catch. The host is told of a function that fails when a request is dropped in the queue. */
  private answerSafely(drop: Drop, exchange: Exchange<Req>): HttpErrorResponse {
    try {
      return this.answer(drop, exchange);
    } catch {
      return this.closing(toHttpResponse(drop), exchange, false);
    }
  }

  private closing(response: HttpErrorResponse, exchange: Exchange<Req>, isShuttingDown: boolean): HttpErrorResponse {
    if (exchange.mustClose?.(isShuttingDown) !== true) return response;
    return { ...response, headers: { ...response.headers, connection: 'close' } };
  }
}

const gone: Verdict = { type: 'gone' };

function isBodyComing<Req>(exchange: Exchange<Req>): boolean {
  return exchange.upload !== undefined && exchange.bodyBytes(1) > 0 && exchange.upload().type !== 'over';
}

/** A request whose class is not known must not pass for one that needs no lease. */
function classified(classification: Classification): Classification {
  const isLater = isPromise(classification);
  if (typeof classification === 'object' && classification !== null && !isLater) return classification;
  if (isLater) abandon(classification);
  const expected = 'an object with a fairnessId, at once: look tenants up first';
  const got = isLater ? 'a promise' : describeValue(classification);
  throw new FlowConfigError('flowControl', [{ path: 'classify', expected, got }]);
}

/** Holds the lease of a request until its response has ended, and tells the lease how it ended. */
class RequestLifetime<Req> {
  readonly exchange: Exchange<Req>;
  /** The response has ended, sent or not. */
  isOver = false;
  /** While it waits. */
  waiting: AbortController | undefined = undefined;
  /** Once it was dispatched. */
  lease: Lease | undefined = undefined;
  /** While its body is to come. */
  stopWatching: StopWatching | undefined = undefined;
  private readonly isReleasedAtEnd: boolean;

  constructor(exchange: Exchange<Req>, isReleasedAtEnd: boolean) {
    this.exchange = exchange;
    this.isReleasedAtEnd = isReleasedAtEnd;
    exchange.onEnd((isSent) => this.end(isSent));
  }

  /** Aborts when the response ends first. */
  wait(): AbortSignal {
    this.waiting = new AbortController();
    return this.waiting.signal;
  }

  private end(isSent: boolean): void {
    this.isOver = true;
    this.stopWatching?.();
    if (!isSent) this.lease?.abort(this.exchange.failure?.() ?? clientDisconnected());
    if (this.exchange.endsInsideRuntime === true) setImmediate(() => this.giveBack());
    else this.giveBack();
  }

  /** May start the next handler. */
  private giveBack(): void {
    this.waiting?.abort('the client left');
    if (this.isReleasedAtEnd) this.lease?.release();
  }
}
