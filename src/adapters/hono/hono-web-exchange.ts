/** Hono on a fetch runtime: requests and responses are all that there is, and Hono's context holds them. */
import type { Context } from 'hono';
import { WebExchange } from '../web/web-exchange.js';
import type { HonoExchange } from './hono-exchange.js';

export class HonoWebExchange extends WebExchange implements HonoExchange {
  private readonly c: Context;

  constructor(c: Context) {
    super(c.req.raw, c.get('flow'));
    this.c = c;
  }

  /** By a middleware in front that did not wait any longer. */
  override get isAnswered(): boolean {
    return this.c.finalized;
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
