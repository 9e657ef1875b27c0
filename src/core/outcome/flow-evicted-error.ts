/** Why `lease.signal` aborts when a running request must give up its seat. */

const brand = Symbol.for('headgate.FlowEvictedError');

/** The reason of `lease.signal` after an eviction; frameworks answer it with 429 (http-errors, HTTPException). */
export class FlowEvictedError extends Error {
  override readonly name = 'FlowEvictedError';
  readonly code = 'ERR_FLOW_EVICTED';
  readonly status = 429;
  readonly statusCode = 429;
  readonly headers: Readonly<Record<string, string>> = {
    'x-llm-d-request-dropped-reason': 'evicted-priority',
    'retry-after': '1',
    'retry-after-ms': '1000',
    'cache-control': 'no-store',
  };
  readonly expose = true;

  constructor() {
    super('The request was evicted for one of higher priority.');
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
