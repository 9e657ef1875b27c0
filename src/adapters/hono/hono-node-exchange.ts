/** Hono on @hono/node-server: Node tells when a response is over, Hono writes it. */
import type { Context } from 'hono';
import type { HttpErrorResponse } from '../http/to-http-response.js';
import { NodeExchange } from '../node/node-exchange.js';
import type { NodeRequest, NodeResponse } from '../node/node-request.js';
import { setHeaders } from '../node/respond.js';
import { withoutFlowHeaders } from '../web/without-flow-headers.js';
import type { HonoExchange } from './hono-exchange.js';

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

  finish(): void {}

  close(): void {}

  protected override answer(response: HttpErrorResponse): void {
    this.resolveEvicted?.(response);
  }
}
