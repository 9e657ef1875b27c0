/** Whether a model server refused a request because it has too much to do, and for how long. */
import type { HeaderSource } from '../../base/headers/header-source.js';
import { isRefusal, retryAfterMs } from '../../base/headers/retry-after.js';
import { parseJson } from '../../base/stream/content-pieces.js';

/** An answer of a model server, as far as it was read. */
export interface WorkerAnswer {
  readonly status: number;
  /** The body of an error: plain text, or JSON with the message as `message`, `error` or `error.message`. */
  readonly body?: string | undefined;
}

/**
 * True for a refusal because of load: 429, 503 and 529, and errors whose message begins with `Server overloaded:`. The
 * endpoint should get no work for `refusalWaitMs`. Source: Dynamo, request rejection.
 */
export function isOverloadRefusal({ status, body = '' }: WorkerAnswer): boolean {
  if (!(status >= 400)) return false;
  const message = (textOf(parseJson(body)) ?? body).trimStart();
  if (message.startsWith('Server overloaded:')) return true;
  return isRefusal(status) && !message.startsWith('Server unavailable:');
}

const longestWaitMs = 3_600_000;

/**
 * How long a refused request should stay away, ms from 1 up to an hour: `retry-after-ms`, else `Retry-After`. Undefined
 * when the answer does not say. `nowEpochMs` serves dates in an answer without `Date`.
 */
export function refusalWaitMs(headers: HeaderSource, nowEpochMs: () => number = Date.now): number | undefined {
  const toldMs = retryAfterMs(headers, nowEpochMs);
  return toldMs === undefined ? undefined : Math.max(1, Math.min(toldMs, longestWaitMs));
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return undefined;
  return textOf(Reflect.get(value, 'message')) ?? textOf(Reflect.get(value, 'error'));
}
