/**
 * One attempt at the server that a lease names: the request goes there, and the answer passes on as it comes, from
 * undici's parser straight into the response, with back-pressure.
 *
 *     asked ─► passing ─► ended          an answer that succeeds
 *          ├─► judging ─► passing        a refusal, or an error of the request, whose beginning is read first
 *          └─► holding ─► passing        a stream whose first content token is awaited
 *
 * Invariant: it settles once; a client never takes half an answer for a whole one; after it has settled nothing of this
 * exchange is written any more. When either side is gone the other is told: no server works for nobody.
 * Longer than most files, because every state of an exchange can end in every other, and one object holds them all.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Agent, Dispatcher } from 'undici';
import { isOverloadRefusal, refusalWaitMs } from '../../adapters/http/index.js';
import { FirstTokenWatch } from '../../base/stream/first-token.js';
import { GatheredBytes } from '../../base/stream/gathered-bytes.js';
import { isUnconnected } from '../../base/unconnected.js';
import type { Lease } from '../../index.js';
import type { AdaptiveDetector, ServerAnswer } from '../../types/index.js';
import { type UsageReader, usageReader } from '../../upstream/index.js';
import type { GatewayCounters } from '../metrics/gateway-counters.js';
import type { RequestState } from '../request-state.js';
import type { GatewayConfig, UpstreamConfig } from '../settings/gateway-config.js';
import { ApiError } from '../shared/api-error.js';
import { rateLimitHeaders } from '../shared/tenant-budgets.js';
import { toClient } from './forwarded-headers.js';
import { requestOf } from './upstream-request.js';

/**
 * The result of an attempt.
 * - `answered`: the client has the answer, also one that broke off, or is gone.
 * - `refused`: the server can be avoided and another one asked.
 * - `failed`: nothing has been sent, and the client must be told why.
 */
export type AttemptResult =
  | { readonly type: 'answered' }
  | { readonly type: 'refused' | 'failed'; readonly error: ApiError };

export interface AttemptOptions {
  readonly agent: Agent;
  readonly config: GatewayConfig;
  readonly upstream: UpstreamConfig;
  /** Credentials of clients end here. */
  readonly ownsKeys: boolean;
  /** Detectors that are told of first tokens, and of servers that were too slow or full. */
  readonly detectors: readonly AdaptiveDetector[];
  /** The server refused or is not reached. `isCertain`: this alone is reason to avoid it; `forMs`: as it said. */
  readonly avoid: (isCertain: boolean, forMs?: number) => void;
  /** Whether a refusal may be kept from the client, because another server will be asked. */
  readonly mayRetry: boolean;
  /** How long a stream may go without a content token, ms, before another server is asked; Infinity: for ever. */
  readonly firstTokenMs: number;
  readonly counters: GatewayCounters;
  /** No answer after this one on the same connection. */
  readonly closesConnection: boolean;
}

const answered: AttemptResult = { type: 'answered' };

class TotalTimeout extends Error {}
class FirstTokenTimeout extends Error {}

type Controller = Dispatcher.DispatchController;

/** Errors are short; a longer answer is no error, and passes. */
const longestError = 65_536;

/** Callbacks rather than promises, because every request passes here (bench: gateway). */
export class Attempt implements Dispatcher.DispatchHandler {
  private readonly state: RequestState;
  private readonly lease: Lease;
  private readonly options: AttemptOptions;
  private readonly tell: (result: AttemptResult) => void;
  private readonly totalTimer: NodeJS.Timeout;
  private readonly firstTokenTimer: NodeJS.Timeout | undefined;
  private controller: Controller | undefined = undefined;
  private isSettled = false;
  private status = 0;
  private headers: IncomingHttpHeaders = {};
  /** The beginning of an answer that may be kept; undefined while bytes pass. */
  private beginning: GatheredBytes | undefined = undefined;
  /** The head of an answer that is no stream passes with its first bytes: until then an error can be told. */
  private isHeadHeld = false;
  /** While the first content token is awaited. */
  private watch: FirstTokenWatch | undefined = undefined;
  /** Reads the answer while it passes, for policies that count tokens. */
  private usage: UsageReader | undefined = undefined;
  private hasToken = false;
  /** Bytes of the answer that are to come, as its length says; undefined for one that does not say it. */
  private leftBytes: number | undefined = undefined;

  /** Calls `tell` once, when the attempt is over. */
  constructor(state: RequestState, lease: Lease, options: AttemptOptions, tell: (result: AttemptResult) => void) {
    this.state = state;
    this.lease = lease;
    this.options = options;
    this.tell = tell;
    const { config, firstTokenMs } = options;
    this.totalTimer = setTimeout(abortBy, config.timeouts.total, lease, TotalTimeout);
    this.firstTokenTimer =
      firstTokenMs === Infinity ? undefined : setTimeout(abortBy, firstTokenMs, lease, FirstTokenTimeout);
  }

  start(): void {
    const { agent, upstream, config, ownsKeys } = this.options;
    this.lease.onAbort((reason) => this.abort(reason));
    try {
      agent.dispatch(requestOf(this.state, upstream, config, ownsKeys), this);
    } catch (error) {
      this.abort(error);
    }
  }

  /** Not before there is a connection: the request may have been given up meanwhile. */
  onRequestStart(controller: Controller): void {
    this.controller = controller;
    if (this.isSettled) controller.abort(new Error('the request was given up'));
  }

  onResponseStart(_controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200 || this.isSettled) return;
    this.status = status;
    this.headers = headers;
    if (status < 400) this.watch = this.watchOf(headers);
    if (status >= 400 || this.watch !== undefined) this.beginning = new GatheredBytes();
    else if (isStream(headers)) this.pass();
    else this.isHeadHeld = true;
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.isHeadHeld) this.passHead();
    if (this.isSettled) return;
    if (this.beginning === undefined) return void this.write(controller, chunk);
    this.beginning.push(chunk);
    this.watch?.push(chunk);
    if (this.watch?.hasBegun ?? this.beginning.length >= longestError) this.judge();
  }

  onResponseEnd(): void {
    if (this.beginning !== undefined && !this.isSettled) this.judge();
    if (this.isHeadHeld) this.passHead();
    if (this.isSettled) return;
    this.usage?.end();
    const { res } = this.state;
    if (!res.writableEnded) res.end();
    if (res.writableLength > 0) res.setTimeout(this.options.config.timeouts.idle);
    this.settle(answered);
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.fail(error);
  }

  /** Ends the exchange, unless it is over. */
  private abort(reason: unknown): void {
    if (this.isSettled) return;
    this.fail(reason);
    this.controller?.abort(reason as Error);
  }

  private fail(error: unknown): void {
    if (this.isSettled) return;
    if (this.controller === undefined) this.lease.unsent();
    this.settle(this.resultOf(error));
  }

  private settle(result: AttemptResult): void {
    this.isSettled = true;
    clearTimeout(this.totalTimer);
    clearTimeout(this.firstTokenTimer);
    this.tell(result);
  }

  /** Set for a stream that can be read, if its first token is awaited; other answers have no such limit. */
  private watchOf(headers: IncomingHttpHeaders): FirstTokenWatch | undefined {
    if (this.firstTokenTimer !== undefined && isIdentity(headers) && isStream(headers)) return new FirstTokenWatch();
    clearTimeout(this.firstTokenTimer);
    return undefined;
  }

  private passHead(): void {
    this.isHeadHeld = false;
    if (!this.isSettled) this.pass();
  }

  private judge(): void {
    const beginning = Buffer.concat(this.beginning?.parts() ?? []);
    this.beginning = undefined;
    const { state, lease, options, status, headers } = this;
    const error =
      status < 400 ? undefined : refusalOf(state, lease, options, { status, headers, body: String(beginning) });
    if (error !== undefined) {
      this.isSettled = true;
      this.controller?.abort(new Error('another server will be asked'));
      return void this.settle({ type: 'refused', error });
    }
    this.pass();
    if (this.controller !== undefined && !this.isSettled && beginning.length > 0)
      this.write(this.controller, beginning);
  }

  /** An answer whose status line or headers have bytes that Node does not write cannot be passed on, nor is it read. */
  private pass(): void {
    const { state, lease, options, status, headers: told } = this;
    const { res } = state;
    const headers = toClient(told, state);
    const { budgets, constraints } = options.config;
    if (budgets?.headers && state.sender !== undefined)
      Object.assign(headers, rateLimitHeaders(state.sender.tenant, constraints));
    if (options.closesConnection) headers.connection = 'close';
    try {
      res.writeHead(status, headers);
    } catch (error) {
      // The headers that were taken belong to the answer that is not sent.
      for (const name in headers) res.removeHeader(name);
      return void this.abort(error);
    }
    clearTimeout(this.firstTokenTimer);
    if (status < 400) lease.answered({ status, headers: told });
    // It will not be sent again.
    state.bytes = undefined;
    state.isPassedOn = true;
    state.isServed = status < 300;
    if (status < 400 && state.body !== undefined && isIdentity(told))
      this.usage = usageReader({ lease, cachedTokens: true });
    // Other heads are sent with the first bytes, in one packet.
    if (isStream(told)) res.flushHeaders();
    state.isSilent = isStream(told) && isIdentity(told);
    const length = told['content-length'];
    if (length !== undefined) this.leftBytes = Number(length);
  }

  private write(controller: Controller, chunk: Buffer): void {
    const { res } = this.state;
    // A client that has left, or an answer that the gate gave in its place.
    if (res.destroyed || res.writableEnded) return void controller.abort(new Error('the response is over'));
    this.state.isSilent = false;
    if (this.usage !== undefined) this.read(this.usage, chunk);
    if (this.leftBytes !== undefined) this.leftBytes -= chunk.length;
    // The end is told in the same call, which saves a small answer a turn through the socket.
    if (this.leftBytes === 0) return void res.end(chunk);
    if (res.write(chunk)) return;
    controller.pause();
    // Set only while the client takes nothing: every write would set it again. Node destroys the socket at its end.
    res.setTimeout(this.options.config.timeouts.idle);
    res.once('drain', () => {
      res.setTimeout(0);
      controller.resume();
    });
  }

  private read(usage: UsageReader, chunk: Buffer): void {
    usage.push(chunk);
    if (!this.hasToken) this.hasToken = tellFirstToken(this.state, usage, this.options.detectors);
  }

  private resultOf(error: unknown): AttemptResult {
    const { state, lease, options } = this;
    const { id } = options.upstream;
    if (error instanceof FirstTokenTimeout) {
      observeDrop(options);
      options.counters.failures.add(1, id, 'first_token_timeout');
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
    state.failureCode = failure.code;
    options.counters.failures.add(1, id, failure.code);
    if (failure.status === 504) observeDrop(options);
    const isUnreachable = isUnconnected(error);
    if (isUnreachable) options.avoid(true);
    if (!state.res.headersSent)
      return { type: options.mayRetry && isUnreachable ? 'refused' : 'failed', error: failure };
    state.cutBy = failure.status === 504 ? 'timeout' : 'upstream';
    state.res.destroy();
    return answered;
  }
}

/** An answer with a status from 400 up, and as much of its body as was read. */
export type ErrorAnswer = ServerAnswer & { readonly body: string };

/** Tells everybody of a server's error. Undefined for one that the client gets; else another server may be asked. */
export function refusalOf(
  state: RequestState,
  lease: Lease,
  options: AttemptOptions,
  { status, headers, body }: ErrorAnswer,
): ApiError | undefined {
  const { id } = options.upstream;
  lease.answered({ status, headers, body });
  if (!lease.isPutOff && !isOverloadRefusal({ status, body })) return undefined;
  observeDrop(options);
  const toldMs = refusalWaitMs(headers);
  // The body alone says it, whatever the status.
  const isCertain = toldMs !== undefined || isOverloadRefusal({ status: 400, body });
  // What a second server says may be the request's fault. A quota that gets the answer rests by itself, for as long.
  if (state.attempts.length === 1 && !lease.isPutOff) options.avoid(isCertain, toldMs);
  state.failureCode = 'upstream_overloaded';
  options.counters.refusals.add(1, id);
  return options.mayRetry ? new ApiError(503, 'upstream_overloaded', `${id} is overloaded.`) : undefined;
}

function observeDrop({ detectors }: AttemptOptions): void {
  for (const detector of detectors) detector.observe({ isDrop: true });
}

/** False before there is one. Detectors are told of the time to it. */
export function tellFirstToken(state: RequestState, usage: UsageReader, to: AttemptOptions['detectors']): boolean {
  const { firstTokenAtMs } = usage;
  const { lease, size, startedAtMs } = state;
  if (firstTokenAtMs === undefined || lease === undefined) return false;
  state.ttftMs = firstTokenAtMs - startedAtMs;
  const ttftMs = Math.max(firstTokenAtMs - lease.dispatchedAtMs, 0);
  const promptTokens = usage.usage.promptTokens ?? size?.inputTokens;
  for (const detector of to) detector.observe({ ttftMs, promptTokens });
  return true;
}

function abortBy(lease: Lease, Timeout: new () => Error): void {
  lease.abort(new Timeout());
}

const isStream = (headers: IncomingHttpHeaders): boolean =>
  headers['content-type']?.startsWith('text/event-stream') === true;

const isIdentity = ({ 'content-encoding': encoding }: IncomingHttpHeaders): boolean =>
  encoding === undefined || encoding === 'identity';

/** What it means when a server cannot be reached, does not answer in time, or breaks off. */
export function failureOf(error: unknown, upstream: string): ApiError {
  if (/^UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT$/.test(Object(error).code))
    return new ApiError(504, 'upstream_timeout', `${upstream} did not answer in time.`);
  if (isUnconnected(error)) return new ApiError(502, 'upstream_unreachable', `${upstream} cannot be reached.`);
  return new ApiError(502, 'upstream_failed', `${upstream} broke off before it answered.`);
}
