/** A request and a response of a fetch runtime, which tells of no end: it shows as an abort, or in the body. */
import { letProcessEnd } from '../../base/clock.js';
import { controlHeaders } from '../../base/headers/header-names.js';
import { type HeaderSource, stripFlowHeaders } from '../../base/headers/header-source.js';
import { declaredBytes } from '../../base/request-body.js';
import { type WatchedBody, watchedBody } from '../../base/stream/watched-body.js';
import type { Exchange } from '../http/exchange.js';
import type { LifeSigns } from '../http/life-signs.js';
import type { RequestFlow } from '../http/request-flow.js';
import type { HttpErrorResponse } from '../http/to-http-response.js';

/** Longer than any reader pauses that is still there. */
const unreadMs = 60_000;

export class WebExchange implements Exchange<Request> {
  req: Request;
  readonly flow: RequestFlow | undefined;
  /** Resolves with the answer when the request was evicted before its handler responded. */
  readonly evicted: Promise<HttpErrorResponse>;
  signs: LifeSigns | undefined = undefined;
  early: Promise<unknown> | undefined = undefined;
  private resolveEvicted: ((response: HttpErrorResponse) => void) | undefined = undefined;
  private headersToAdd: Readonly<Record<string, string>> = {};
  private body: WatchedBody | undefined = undefined;
  private done: ((isSent: boolean) => void) | undefined = undefined;
  private signal: AbortSignal | undefined = undefined;
  private error: unknown = undefined;
  private isBodyOver = false;
  private unread: ReturnType<typeof setTimeout> | undefined = undefined;

  constructor(request: Request, flow: RequestFlow | undefined) {
    this.req = request;
    this.flow = flow;
    this.evicted = new Promise((resolve) => {
      this.resolveEvicted = resolve;
    });
  }

  get headers(): HeaderSource {
    return this.req.headers;
  }

  stripHeaders(): void {
    this.req = withoutFlowHeaders(this.req);
  }

  bodyBytes(unknownBodyBytes: number): number {
    const declared = this.req.headers.get('content-length');
    if (declared === null) return this.req.body === null ? 0 : unknownBodyBytes;
    return declaredBytes(declared, unknownBodyBytes);
  }

  onEnd(done: (isSent: boolean) => void): void {
    this.done = done;
    this.signal = this.req.signal;
    if (this.signal.aborted) this.end(false);
    else this.signal.addEventListener('abort', this.leave);
  }

  failure(): unknown {
    return this.error;
  }

  evict(answer: () => HttpErrorResponse, reason: unknown): void {
    setTimeout(() => {
      if (this.body !== undefined) this.breakOff(reason);
      else this.resolveEvicted?.(answer());
    });
  }

  showLife(signs: LifeSigns): void {
    this.signs = signs;
  }

  begin(headers: Readonly<Record<string, string>>): void {
    this.headersToAdd = headers;
  }

  /** The response to send, whose body tells its end. One without a body, or that somebody reads already, is over. */
  watched(response: Response): Response {
    // A switch of protocols cannot be copied.
    if (response.status === 101 || response.body?.locked) {
      this.end(true);
      return response;
    }
    let { body } = response;
    if (body !== null && this.done !== undefined && this.req.method !== 'HEAD') {
      this.body = watchedBody(body, this.bodyEnded, this.awaitReader);
      body = this.body.stream;
    } else this.end(true);
    const headers = new Headers(response.headers);
    for (const [name, value] of Object.entries(this.headersToAdd)) headers.set(name, value);
    return new Response(body, { status: response.status, statusText: response.statusText, headers });
  }

  close(): void {
    this.end(true);
  }

  readonly leave = (): void => this.end(false);

  private readonly bodyEnded = (isSent: boolean, error: unknown): void => {
    if (this.isBodyOver) return;
    this.isBodyOver = true;
    clearTimeout(this.unread);
    this.error = error;
    this.end(isSent);
  };

  /** Middleware may have thrown the response away, and no runtime tells of that. */
  private readonly awaitReader = (isAwaited: boolean): void => {
    clearTimeout(this.unread);
    const abort = (): void => this.breakOff(new DOMException('Nobody reads the response', 'TimeoutError'));
    if (isAwaited && !this.isBodyOver) this.unread = letProcessEnd(setTimeout(abort, unreadMs));
  };

  private breakOff(reason: unknown): void {
    if (this.isBodyOver) return;
    this.bodyEnded(false, reason);
    this.body?.stop(reason);
  }

  private end(isSent: boolean): void {
    const { done } = this;
    this.done = undefined;
    this.signal?.removeEventListener('abort', this.leave);
    done?.(isSent);
  }
}

/** Takes the flow headers off, so that none is forwarded: in place, or else in a copy with its body and signal. */
export function withoutFlowHeaders(request: Request): Request {
  const { headers } = request;
  const present = [...controlHeaders].filter((name) => headers.has(name));
  if (present.length === 0) return request;
  try {
    for (const name of present) headers.delete(name);
    return request;
  } catch {
    // Cloudflare's incoming requests are immutable.
    return new Request(request, { headers: stripFlowHeaders(headers) });
  }
}
