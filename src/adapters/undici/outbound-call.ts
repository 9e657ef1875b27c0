/**
 * One call from its caller to the dispatcher below. Invariant: flow control is told of exactly one end, and the caller
 * gets no more calls than from undici itself.
 *
 *   waiting ──lease──→ dispatched ──onRequestStart──→ started ──→ response end | error
 *      └──────────────────┴─ abort, eviction: over at once; should the dispatcher still start it, it is told to stop
 */
import type { EventEmitter } from 'node:events';
import { STATUS_CODES } from 'node:http';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { controlHeaders } from '../../base/headers/header-names.js';
import type { HeaderRecord, HeaderSource } from '../../base/headers/header-source.js';
import { headerValue, stripFlowHeaders } from '../../base/headers/header-source.js';
import { bodyBytes } from '../../base/request-body.js';
import { whenAborted as whenSignalAborted } from '../../base/when-aborted.js';
import type { Exchange } from '../http/exchange.js';
import type { Verdict } from '../http/http-flow-control.js';
import type { RequestFlow } from '../http/request-flow.js';
import type { HttpErrorResponse } from '../http/to-http-response.js';

type Handler = Dispatcher.DispatchHandler;
type Controller = Dispatcher.DispatchController;
type Given<Name extends keyof Handler> = Parameters<NonNullable<Handler[Name]>>;

type GivenHeaders = Dispatcher.DispatchOptions['headers'];
/** Undici's own type has no read-only forms. */
type UndiciHeaders = NonNullable<GivenHeaders> | null;
/** The forms that can be read more than once. */
type DispatchHeaders = HeaderRecord | string[] | null;

/** It is the handler of the dispatcher below, too: it passes everything to the caller, and learns of the end. */
export class OutboundCall implements Exchange<Dispatcher.DispatchOptions>, Handler {
  readonly req: Dispatcher.DispatchOptions;
  private given: DispatchHeaders;
  readonly flow: RequestFlow | undefined;
  /** The answer of the dispatcher below: false when it wants no more calls for now. */
  hasRoom = true;
  /** Its lease, once it goes on. */
  private leased: RequestFlow | undefined = undefined;
  /** The caller has been told that it failed, whatever the dispatcher says now. */
  private hasFailed = false;
  private reason: unknown = undefined;
  /** Stops the work below, once it has started. */
  private stopWork: ((reason: Error) => void) | undefined = undefined;
  private readonly handler: Handler;
  private readonly dispatch: Dispatcher.Dispatch;
  private readonly controller: Controller = waitingController((reason) => this.abort(reason));
  private isAnnounced = false;
  private isOver = false;
  private done: ((isSent: boolean) => void) | undefined = undefined;
  private readonly stopWatching: (() => void)[] = [];

  constructor(opts: Dispatcher.DispatchOptions, handler: Handler, dispatch: Dispatcher.Dispatch) {
    this.given = flattened(opts.headers);
    this.req = { ...opts, headers: this.given as UndiciHeaders };
    this.handler = handler;
    this.dispatch = dispatch;
    this.flow = handler instanceof OutboundCall ? handler.leased : undefined;
  }

  get headers(): HeaderSource {
    return readable(this.given);
  }

  stripHeaders(): void {
    this.given = stripped(this.given);
    this.req.headers = this.given as UndiciHeaders;
  }

  bodyBytes(unknownBodyBytes: number): number {
    const { body } = this.req;
    if (typeof body === 'string') return Buffer.byteLength(body);
    return bodyBytes(body, headerValue(this.headers, ['content-length']), unknownBodyBytes);
  }

  onEnd(done: (isSent: boolean) => void): void {
    this.done = done;
  }

  failure(): unknown {
    return this.reason;
  }

  /** Gives the caller a way to abort: undici gives it when the call starts. */
  wait(): void {
    const abort = (reason: Error): void => this.abort(reason);
    const { body, signal } = this.req as Dispatcher.RequestOptions;
    this.stopWatching.push(whenBodyFails(body, abort), whenAborted(signal, abort));
    if (!this.isOver) this.announce();
  }

  evict(_answer: () => HttpErrorResponse, reason: unknown): void {
    this.abort(reason as Error);
  }

  follow(verdict: Verdict): void {
    if (verdict.type === 'reject') this.respond(verdict.response);
    else if (verdict.type === 'fail') this.fail(verdict.error);
    else if (verdict.type === 'pass' && verdict.flow !== undefined) this.start(verdict.flow);
    else if (verdict.type === 'pass') this.hasRoom = this.dispatch(this.req, this.handler);
  }

  onRequestStart(controller: Controller, context: object | undefined): void {
    if (this.hasFailed) return void controller.abort(this.reason as Error);
    this.stopWork = (reason) => controller.abort(reason);
    this.handler.onRequestStart?.(controller, { ...context, flow: this.leased });
  }

  onRequestUpgrade(...given: Given<'onRequestUpgrade'>): void {
    // From here on the call is only a socket.
    const socket = given[3];
    this.stopWork = (reason) => void socket.destroy(reason);
    socket.once('close', () => this.end(socket.errored === null, socket.errored));
    this.handler.onRequestUpgrade?.(...given);
  }

  onResponseStarted(): void {
    this.handler.onResponseStarted?.();
  }

  onResponseStart(...given: Given<'onResponseStart'>): void {
    this.handler.onResponseStart?.(...given);
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.handler.onResponseData?.(controller, chunk);
  }

  onResponseEnd(...given: Given<'onResponseEnd'>): void {
    this.end(true);
    this.handler.onResponseEnd?.(...given);
  }

  /** Comes after `onResponseEnd` when that threw, as undici's own retry does. */
  onResponseError(controller: Controller, error: Error): void {
    if (this.hasFailed) return;
    this.end(false, error);
    this.handler.onResponseError?.(controller, error);
  }

  private end(isSent: boolean, reason?: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    this.reason = reason;
    this.stopListening();
    this.done?.(isSent);
  }

  private start(flow: RequestFlow): void {
    this.stopListening();
    this.leased = flow;
    try {
      this.hasRoom = this.dispatch(this.req, this);
    } catch (error) {
      this.fail(error);
    }
  }

  private abort(reason: Error): void {
    if (this.stopWork !== undefined) this.stopWork(reason);
    else this.fail(reason);
  }

  private fail(error: unknown): void {
    if (this.isOver) return;
    this.hasFailed = true;
    this.end(false, error);
    this.handler.onResponseError?.(this.controller, error as Error);
  }

  private announce(): void {
    if (this.isAnnounced) return;
    this.isAnnounced = true;
    this.handler.onRequestStart?.(this.controller, {});
  }

  private respond({ status, headers, body }: HttpErrorResponse): void {
    const { handler, controller, req } = this;
    try {
      this.announce();
      if (this.isOver) return;
      this.end(true);
      if (isStream(req.body)) req.body.destroy();
      handler.onResponseStart?.(controller, status, { ...headers }, STATUS_CODES[status]);
      if (req.method !== 'HEAD') handler.onResponseData?.(controller, Buffer.from(body));
      handler.onResponseEnd?.(controller, {});
    } catch (error) {
      // As undici does: its own retry throws what it wants to repeat, and goes on when it is told.
      handler.onResponseError?.(controller, error as Error);
    }
  }

  private stopListening(): void {
    for (const stop of this.stopWatching.splice(0)) stop();
  }
}

/** The `signal` of a dispatch, as undici takes it. */
type AbortSource = AbortSignal | EventEmitter;

/** Calls `abort` when the signal aborts, or at once if it has. Returns what stops listening. */
function whenAborted(given: unknown, abort: (reason: Error) => void): () => void {
  if (given === undefined || given === null) return () => {};
  const signal = given as AbortSource & { readonly aborted?: boolean; readonly reason?: Error };
  const listener = (): void => abort(signal.reason ?? new DOMException('The call was aborted', 'AbortError'));
  if ('addEventListener' in signal) return whenSignalAborted(signal, listener);
  if (signal.aborted === true) listener();
  else signal.on('abort', listener);
  return () => signal.off('abort', listener);
}

/** The controller of a call that no dispatcher has taken yet: there is nothing to pause, but the caller may abort. */
function waitingController(onAbort: (reason: Error) => void): Controller {
  let given: Error | null = null;
  return {
    get aborted() {
      return given !== null;
    },
    get reason() {
      return given;
    },
    paused: false,
    abort(reason: Error): void {
      if (given !== null) return;
      given = reason;
      onAbort(reason);
    },
    pause() {},
    resume() {},
  };
}

const isStream = (body: unknown): body is Readable => typeof (body as Readable | null | undefined)?.pipe === 'function';

/** Calls `fail` when a stream fails: nobody else listens before undici has it. Returns what stops listening. */
function whenBodyFails(body: unknown, fail: (error: Error) => void): () => void {
  if (!isStream(body)) return () => {};
  body.on('error', fail);
  return () => body.off('error', fail);
}

/** Pairs, which may come from an iterator, as a flat list; everything else as it is. */
function flattened(headers: GivenHeaders): DispatchHeaders {
  if (headers === undefined || headers === null || Array.isArray(headers)) return headers ?? null;
  if (!(Symbol.iterator in headers)) return headers as HeaderRecord;
  return [...(headers as Iterable<[string, string | readonly string[] | undefined]>)].flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().flatMap((text) => [name, text]),
  );
}

function readable(headers: DispatchHeaders): HeaderSource {
  if (headers === null) return {};
  if (!Array.isArray(headers)) return headers;
  return {
    get(wanted: string): string | null {
      const values = headers.filter((_, i) => i % 2 === 1 && headers[i - 1]!.toLowerCase() === wanted);
      return values.length === 0 ? null : values.join(', ');
    },
  };
}

/** Without the flow headers; the same object when there are none. */
function stripped(headers: DispatchHeaders): DispatchHeaders {
  if (headers === null) return null;
  if (Array.isArray(headers)) return headers.filter((_, i) => !isControl(headers[i - (i % 2)]!));
  return Object.keys(headers).some(isControl) ? stripFlowHeaders(headers) : headers;
}

const isControl = (name: string): boolean => controlHeaders.has(name.toLowerCase());
