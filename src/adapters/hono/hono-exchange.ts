/** The exchange as Hono's middleware needs it, on Node and elsewhere: it adds to the one of every adapter. */
import type { Exchange } from '../http/exchange.js';
import type { HttpErrorResponse } from '../http/to-http-response.js';

export interface HonoExchange extends Exchange<Request> {
  /**
   * Resolves with the answer when the request was evicted, or its client sent nothing, before its handler responded.
   */
  readonly evicted: Promise<HttpErrorResponse>;
  /** The handler is about to run; `headers` are for the response. */
  begin(headers: Readonly<Record<string, string>>): void;
  /** The handler has left its response in `c.res`. */
  finish(): void;
  /** There is no response that anything would have to be held for. */
  close(): void;
}
