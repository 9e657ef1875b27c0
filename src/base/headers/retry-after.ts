/** Whether a response asks to come back, and when. */
import { type HeaderSource, headerValue } from './header-source.js';

/** The three notations of RFC 9110 §5.6.7; `Date.parse` alone takes nearly anything for a date. */
const imfFixdate = /^[a-z]{3}, \d\d [a-z]{3} \d{4} \d\d:\d\d:\d\d GMT$/i;
const rfc850Date = /^[a-z]{6,9}, \d\d-[a-z]{3}-\d\d \d\d:\d\d:\d\d GMT$/i;
const asctimeDate = /^[a-z]{3} [a-z]{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/i;

/** By contract; 529 is what some model APIs say for overload. */
export function isRefusal(status: number): boolean {
  return status === 429 || status === 503 || status === 529;
}

const decimal = /^\d+(?:\.\d+)?$/;

/**
 * `retry-after-ms`, else `Retry-After`, in ms from 0 up: seconds, or a date, counted from the response's own `Date`, as
 * a client's clock may be wrong. Undefined when there is none. Source: RFC 9110 §10.2.3.
 */
export function retryAfterMs(headers: HeaderSource, nowEpochMs: () => number): number | undefined {
  const ms = headerValue(headers, ['retry-after-ms']);
  if (ms !== undefined && decimal.test(ms)) return Number(ms);
  const text = headerValue(headers, ['retry-after']);
  if (text === undefined) return undefined;
  if (decimal.test(text)) return Number(text) * 1000;
  const atMs = epochMsOf(text);
  if (atMs === undefined) return undefined;
  return Math.max(0, atMs - (epochMsOf(headerValue(headers, ['date'])) ?? nowEpochMs()));
}

function epochMsOf(text = ''): number | undefined {
  const isAsctime = asctimeDate.test(text);
  if (!isAsctime && !imfFixdate.test(text) && !rfc850Date.test(text)) return undefined;
  const epochMs = Date.parse(isAsctime ? `${text} GMT` : text);
  return Number.isNaN(epochMs) ? undefined : epochMs;
}
