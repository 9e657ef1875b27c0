/**
 * The reverse proxy: one request to the server that its lease names, and the meaning of what comes back.
 *
 * Invariant: when either side is gone the other is told, so that no server generates an answer that nobody reads.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Agent } from 'undici';
import { isOverloadRefusal, refusalWaitMs } from '../../adapters/http/index.js';
import { FirstTokenWatch } from '../../base/stream/first-token.js';
import { unconnectedCodes } from '../../base/unconnected.js';
import type { Lease } from '../../index.js';
import type { AdaptiveDetector } from '../../types/index.js';
import { usageReader } from '../../upstream/index.js';
import type { GatewayCounters } from '../metrics/gateway-counters.js';
import type { RequestState } from '../request-state.js';
import { ApiError } from '../shared/api-error.js';
import { Relay, type RelayHost, type Tap } from './relay.js';
import { requestOf, type UpstreamRequestOptions } from './upstream-request.js';

/**
 * The result of an attempt.
 * - `answered`: the client has the answer, also one that broke off, or is gone.
 * - `refused`: the server can be avoided and another one asked.
 * - `failed`: nothing has been sent, and the client must be told why.
 */
export type ForwardResult =
  | { readonly type: 'answered' }
  | { readonly type: 'refused' | 'failed'; readonly error: ApiError };

export interface ForwardOptions extends UpstreamRequestOptions {
  readonly agent: Agent;
  /** Detectors that are told of first tokens, and of servers that were too slow or full. */
  readonly detectors: readonly AdaptiveDetector[];
  /** The server refused or is not reached. `isCertain`: this alone is reason to avoid it; `forMs`: as it said. */
  readonly avoid: (isCertain: boolean, forMs?: number) => void;
  /** Whether a refusal may be kept from the client, because another server will be asked. */
  readonly mayRetry: boolean;
  /** How long a stream may go without a content token, ms, before another server is asked; Infinity: for ever. */
  readonly firstTokenMs: number;
  /** Another server has refused this request: what the second one says may be the request's fault. */
  readonly isRetry: boolean;
  readonly counters: GatewayCounters;
  /** No answer after this one on the same connection. */
  readonly closesConnection: boolean;
}

const answered: ForwardResult = { type: 'answered' };

class TotalTimeout extends Error {}
class FirstTokenTimeout extends Error {}

/** Calls `done` once, when the attempt is over. */
export function forward(
  state: RequestState,
  lease: Lease,
  options: ForwardOptions,
  done: (result: ForwardResult) => void,
): void {
  new Attempt(state, lease, options, done).start();
}

/** One attempt at one server. Callbacks rather than promises, because every request passes here (bench: gateway). */
class Attempt implements RelayHost {
  private readonly state: RequestState;
  private readonly lease: Lease;
  private readonly options: ForwardOptions;
  private readonly tell: (result: ForwardResult) => void;
  private readonly firstToken: FirstTokenLimit;
  private readonly timer: NodeJS.Timeout;
  private hasBegun = false;

  constructor(state: RequestState, lease: Lease, options: ForwardOptions, tell: (result: ForwardResult) => void) {
    this.state = state;
    this.lease = lease;
    this.options = options;
    this.tell = tell;
    this.timer = setTimeout(abortOverdue, options.config.timeouts.total, lease);
    this.firstToken = new FirstTokenLimit(lease, options.firstTokenMs);
  }

  start(): void {
    const relay = new Relay(this.state, this);
    this.lease.onAbort((reason) => relay.abort(reason));
    try {
      this.options.agent.dispatch(requestOf(this.state, this.options), relay);
    } catch (error) {
      relay.abort(error);
    }
  }

  get idleMs(): number {
    return this.options.config.timeouts.idle;
  }

  get closesConnection(): boolean {
    return this.options.closesConnection;
  }

  begins(): void {
    this.hasBegun = true;
  }

  watch(headers: IncomingHttpHeaders): FirstTokenWatch | undefined {
    return this.firstToken.watch(headers);
  }

  keeps(status: number, headers: IncomingHttpHeaders, beginning: Buffer): boolean {
    const { state, lease, options } = this;
    const body = beginning.toString('utf8');
    lease.answered({ status, headers, body });
    if (!lease.isPutOff && !isOverloadRefusal({ status, body })) return false;
    this.observeDrop();
    const toldMs = refusalWaitMs(headers);
    // A quota that gets the answer rests by itself, and knows for how long.
    if (!options.isRetry && !lease.isPutOff) options.avoid(toldMs !== undefined || saysOverloaded(beginning), toldMs);
    state.failure = 'upstream_overloaded';
    options.counters.refused(options.upstream.id);
    return options.mayRetry;
  }

  passes(status: number, headers: IncomingHttpHeaders): Tap | undefined {
    const { state, lease } = this;
    this.firstToken.stop();
    if (status < 400) lease.answered({ status, headers });
    state.bytes = undefined;
    state.isPassedOn = true;
    state.isServed = status < 300;
    return status < 400 ? tapOf(state, headers, lease, this.options.detectors) : undefined;
  }

  done(isAnswered: boolean): void {
    this.stopTimers();
    const { id } = this.options.upstream;
    this.tell(
      isAnswered
        ? answered
        : { type: 'refused', error: new ApiError(503, 'upstream_overloaded', `${id} is overloaded.`) },
    );
  }

  fail(error: unknown): void {
    this.stopTimers();
    if (!this.hasBegun) this.lease.unsent();
    this.tell(this.resultOf(error));
  }

  private resultOf(error: unknown): ForwardResult {
    const { state, lease, options } = this;
    const { id } = options.upstream;
    if (error instanceof FirstTokenTimeout) {
      this.observeDrop();
      options.counters.failed(id, 'first_token_timeout');
      return { type: 'refused', error: new ApiError(504, 'first_token_timeout', `${id} sent no token in time.`) };
    }
    const isTimeout = error instanceof TotalTimeout;
    if (!isTimeout && lease.signal.aborted) {
      state.cutBy = lease.isEvicted ? 'eviction' : 'client';
      return answered; // the client left, or the gate evicts it and answers
    }
    const failure = isTimeout
      ? new ApiError(504, 'upstream_timeout', 'The answer took too long.')
      : failureOf(error, id);
    state.failure = failure.code;
    options.counters.failed(id, failure.code);
    if (failure.status === 504) this.observeDrop();
    const isUnreachable = nothingWasSent(error);
    if (isUnreachable) options.avoid(true);
    if (!state.res.headersSent)
      return { type: options.mayRetry && isUnreachable ? 'refused' : 'failed', error: failure };
    state.cutBy = failure.status === 504 ? 'timeout' : 'upstream';
    state.res.destroy();
    return answered;
  }

  private observeDrop(): void {
    for (const detector of this.options.detectors) detector.observe({ isDrop: true });
  }

  private stopTimers(): void {
    clearTimeout(this.timer);
    this.firstToken.stop();
  }
}

function abortOverdue(lease: Lease): void {
  lease.abort(new TotalTimeout());
}

/** The time until the first content token, for streams that another server can be asked for. */
class FirstTokenLimit {
  private readonly timer: ReturnType<typeof setTimeout> | undefined;

  constructor(lease: Lease, ms: number) {
    this.timer =
      ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(() => lease.abort(new FirstTokenTimeout()), ms);
  }

  /** Set for a stream that can be read; other answers have no such limit. */
  watch(headers: IncomingHttpHeaders): FirstTokenWatch | undefined {
    const isReadable = isIdentity(headers) && headers['content-type']?.startsWith('text/event-stream') === true;
    if (this.timer !== undefined && isReadable) return new FirstTokenWatch();
    this.stop();
    return undefined;
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}

function isIdentity({ 'content-encoding': encoding }: IncomingHttpHeaders): boolean {
  return encoding === undefined || encoding === 'identity';
}

/** The body alone, whatever the status. */
function saysOverloaded(refusal: Buffer): boolean {
  return isOverloadRefusal({ status: 400, body: refusal.toString('utf8') });
}

/** Reads the answer while it passes, for policies that count tokens, and detectors that time the first token. */
function tapOf(
  state: RequestState,
  headers: IncomingHttpHeaders,
  lease: Lease,
  detectors: readonly AdaptiveDetector[],
): Tap | undefined {
  if (state.body === undefined || !isIdentity(headers)) return undefined;
  const usage = usageReader({ lease, cachedTokens: true });
  let hasToken = false;
  return {
    push(chunk) {
      usage.push(chunk);
      if (hasToken || usage.firstTokenAtMs === undefined) return;
      hasToken = true;
      state.ttftMs = usage.firstTokenAtMs - state.startedAtMs;
      const ttftMs = Math.max(usage.firstTokenAtMs - lease.dispatchedAtMs, 0);
      const promptTokens = usage.usage.promptTokens ?? state.body?.inputTokens;
      for (const detector of detectors) detector.observe({ ttftMs, promptTokens });
    },
    end: () => usage.end(),
  };
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

function nothingWasSent(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(nothingWasSent);
  return unconnectedCodes.includes(codeOf(error));
}

/** What it means when a server cannot be reached, does not answer in time, or breaks off. */
function failureOf(error: unknown, upstream: string): ApiError {
  if (error instanceof ApiError) return error;
  const code = codeOf(error);
  if (/^UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT$/.test(code))
    return new ApiError(504, 'upstream_timeout', `${upstream} did not answer in time.`);
  if (nothingWasSent(error)) return new ApiError(502, 'upstream_unreachable', `${upstream} cannot be reached.`);
  return new ApiError(502, 'upstream_failed', `${upstream} broke off before it answered.`);
}
