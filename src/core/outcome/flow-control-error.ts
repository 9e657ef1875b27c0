/** A drop that has to travel as an exception. */
import { type DropCode, explainDrop } from './explain-drop.js';
import type { Drop, DropType } from './outcome.js';

/** How a drop is to be answered. */
export interface DropResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

const brand = Symbol.for('headgate.FlowControlError');

/**
 * Thrown for a drop by `flow.run`, and by HTTP adapters with `onDrop: 'throw'`. Has the shapes of an http-errors error
 * and of Hono's HTTPException, so that frameworks answer with its status, headers and message.
 */
export class FlowControlError extends Error {
  override readonly name = 'FlowControlError';
  readonly code: DropCode;
  readonly outcome: DropType;
  /** The drop itself: reason, limit, time in the queue. */
  readonly drop: Drop;
  readonly status: number;
  /** The same as `status`. */
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The message is written for the client, whatever the status. */
  readonly expose = true;

  /** `response` replaces the answer of the default error contract; the type of the body is the host's to write. */
  constructor(drop: Drop, response: DropResponse = defaultResponse(drop)) {
    const { code, detail } = explainDrop(drop);
    super(detail);
    this.code = code;
    this.outcome = drop.type;
    this.drop = drop;
    this.status = response.status;
    this.statusCode = response.status;
    const { 'content-type': _, ...headers } = response.headers;
    this.headers = headers;
    Object.defineProperty(this, brand, { value: true });
  }

  /** Hono calls this on an error. */
  getResponse(): Response {
    return new Response(this.message, { status: this.status, headers: this.headers });
  }

  /** True across the ESM and the CommonJS copy of the package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && brand in value;
  }
}

function defaultResponse(drop: Drop): DropResponse {
  const { status, retryAfterSeconds, retryAfterMs } = explainDrop(drop);
  const headers: Record<string, string> = { 'cache-control': 'no-store' };
  if (status !== 500 && retryAfterSeconds !== undefined) {
    headers['retry-after'] = String(retryAfterSeconds);
    headers['retry-after-ms'] = String(retryAfterMs);
  }
  return { status, headers };
}
