/**
 * A request and a response of a fetch runtime. The runtime does not tell when a response ends. A client that leaves
 * shows as an abort of the request's signal, or as a cancelled body. Every other end is found by reading the body
 * through.
 */
import type { Context } from 'hono';
import type { HeaderSource } from '../../base/headers/header-source.js';
import { clientDisconnected } from '../http/client-disconnected.js';
import type { RequestFlow } from '../http/request-flow.js';
import type { HttpErrorResponse } from '../http/to-http-response.js';
import type { HonoExchange } from './hono-exchange.js';
import { stripContextHeaders } from './strip-context-headers.js';
import { WatchedBody } from './watched-body.js';

export class WebExchange implements HonoExchange {
  readonly boundsReadAhead = false;
  readonly endsInsideRuntime = false;
  readonly evicted: Promise<HttpErrorResponse>;
  private resolveEvicted: ((response: HttpErrorResponse) => void) | undefined = undefined;
  private readonly c: Context;
  private headersToAdd: Readonly<Record<string, string>> = {};
  private body: WatchedBody | undefined = undefined;
  private done: ((isSent: boolean) => void) | undefined = undefined;
  private signal: AbortSignal | undefined = undefined;
  private error: unknown = undefined;

  constructor(c: Context) {
    this.c = c;
    this.evicted = new Promise((resolve) => {
      this.resolveEvicted = resolve;
    });
  }

  get req(): Request {
    return this.c.req.raw;
  }

  get headers(): HeaderSource {
    return this.c.req.raw.headers;
  }

  get flow(): RequestFlow | undefined {
    return this.c.get('flow');
  }

  /** By a middleware in front that did not wait any longer. */
  get isAnswered(): boolean {
    return this.c.finalized;
  }

  get hasBegun(): boolean {
    return false;
  }

  stripHeaders(): void {
    stripContextHeaders(this.c);
  }

  bodyBytes(unknownBodyBytes: number): number {
    const declared = this.req.headers.get('content-length');
    if (declared === null) return this.req.body === null ? 0 : unknownBodyBytes;
    const bytes = Number(declared);
    return Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : unknownBodyBytes;
  }

  onEnd(done: (isSent: boolean) => void): void {
    this.done = done;
    this.signal = this.req.signal;
    if (this.signal.aborted) this.end(false);
    else this.signal.addEventListener('abort', this.leave);
  }

  failure(): unknown {
    return this.error ?? clientDisconnected();
  }

  wait(): void {}

  proceed(): void {}

  mustClose(): boolean {
    return false;
  }

  evict(answer: () => HttpErrorResponse, reason: unknown): void {
    setTimeout(() => {
      if (this.done === undefined) return;
      if (this.body === undefined) this.resolveEvicted?.(answer());
      else this.body.abortResponse(reason);
    });
  }

  begin(headers: Readonly<Record<string, string>>): void {
    this.headersToAdd = headers;
  }

  /**
   * Puts a response in place whose body tells when it ends. One without a body, or that somebody reads already, is
   * over.
   */
  finish(): void {
    const { c } = this;
    const { res } = c;
    // A switch of protocols cannot be copied.
    if (res.status === 101 || res.body?.locked) {
      this.end(true);
      return;
    }
    let { body } = res;
    if (body !== null && this.done !== undefined && c.req.method !== 'HEAD') {
      this.body = new WatchedBody(body, this.bodyEnded);
      body = this.body.stream;
    } else {
      this.end(true);
    }
    const headers = new Headers(res.headers);
    for (const [name, value] of Object.entries(this.headersToAdd)) headers.set(name, value);
    c.res = undefined;
    c.res = new Response(body, { status: res.status, statusText: res.statusText, headers });
  }

  close(): void {
    this.end(true);
  }

  private readonly leave = (): void => this.end(false);

  private readonly bodyEnded = (isSent: boolean, error: unknown): void => {
    this.error = error;
    this.end(isSent);
  };

  private end(isSent: boolean): void {
    const { done } = this;
    this.done = undefined;
    this.signal?.removeEventListener('abort', this.leave);
    done?.(isSent);
  }
}
