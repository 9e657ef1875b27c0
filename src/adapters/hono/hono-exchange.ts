/** The exchange as Hono's middleware needs it, on Node and elsewhere: it adds to the one of every adapter. */
import type { Context } from 'hono';
import type { Exchange } from '../http/exchange.js';
import type { HttpErrorResponse } from '../http/to-http-response.js';
import { NodeExchange } from '../node/node-exchange.js';
import type { NodeRequest, NodeResponse } from '../node/node-request.js';
import { setHeaders } from '../node/respond.js';
import { WebExchange, withoutFlowHeaders } from '../web/web-exchange.js';

export interface HonoExchange extends Exchange<Request> {
  /** Resolves with an answer if the request was evicted, or its client sent nothing, before its handler responded. */
  readonly evicted: Promise<HttpErrorResponse>;
  /** The handler is about to run; `headers` are for the response. */
  begin(headers: Readonly<Record<string, string>>): void;
  /** The handler has left its response in `c.res`. */
  finish?(): void;
  /** There is no response that anything would have to be held for. */
  close?(): void;
}

/** On a fetch runtime: requests and responses are all that there is, and Hono's context holds them. */
export class HonoWebExchange extends WebExchange implements HonoExchange {
  private readonly c: Context;

  constructor(c: Context) {
    super(c.req.raw, c.get('flow'));
    this.c = c;
  }

  /** By a middleware in front that did not wait any longer. */
  get isAnswered(): boolean {
    return this.c.finalized && !this.hasBegunEarly;
  }

  override stripHeaders(): void {
    super.stripHeaders();
    this.c.req.raw = this.req;
  }

  finish(): void {
    const response = this.watched(this.c.res);
    if (response === this.c.res) return;
    this.c.res = undefined;
    this.c.res = response;
  }
}

/** On @hono/node-server: Node tells when a response is over, Hono writes it. */
export class HonoNodeExchange extends NodeExchange<Request> implements HonoExchange {
  readonly evicted: Promise<HttpErrorResponse>;
  private resolveEvicted: ((response: HttpErrorResponse) => void) | undefined = undefined;
  private readonly c: Context;

  constructor(c: Context, incoming: NodeRequest, outgoing: NodeResponse) {
    super(incoming, outgoing, c.req.raw, c.get('flow'));
    this.c = c;
    this.evicted = new Promise((resolve) => {
      this.resolveEvicted = resolve;
    });
  }

  /** The web's headers first: node-server derives them from Node's, and keeps what it once derived. */
  override stripHeaders(): void {
    const { req } = this.c;
    req.raw = withoutFlowHeaders(req.raw);
    super.stripHeaders();
  }

  /** Set on Node's response, because touching `c.res` would cost node-server's fast path. */
  begin(headers: Readonly<Record<string, string>>): void {
    if (!this.outgoing.headersSent) setHeaders(this.outgoing, headers);
  }

  protected override answer(response: HttpErrorResponse): void {
    this.resolveEvicted?.(response);
  }
}
