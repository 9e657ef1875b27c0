/** The responses of requests that were dropped, and of those that fail by themselves. */
import { bandHeadroomHeader, droppedReasonHeader, queueDurationHeader } from '../../base/headers/header-names.js';
import { isRefusal } from '../../base/headers/retry-after.js';
import { type Drop, explainDrop } from '../../index.js';
import { dynamoBody, type ErrorBody, errorObject, formatBody, plainBody, problemType } from './error-body.js';
import { type ErrorContract, mapDrop } from './error-contract.js';

/** OpenAI's clients obey no longer wait, and try again at once; Anthropic's sleep through any. */
const longestObeyedMs = 60_000;

/** How a drop is answered. */
export interface ErrorResponseOptions {
  /** Which status and which dropped reason. @default 'gateway-api' */
  contract?: ErrorContract | undefined;
  /** The form of the body. @default 'problem'; Dynamo's with the `dynamo` contract */
  body?: ErrorBody | undefined;
  /** Largest Retry-After before jitter, seconds. @default 30 */
  maxRetryAfterSeconds?: number | undefined;
  /** Whether the pool has endpoints now; with `llm-d` an expired TTL is 503 without them. @default it has */
  hasEndpoints?: (() => boolean) | undefined;
  /** Source of the jitter on Retry-After, 0 <= value < 1. @default Math.random */
  random?: (() => number) | undefined;
}

/** A response for any framework. */
export interface HttpErrorResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * The response to a drop: status by the contract, dropped reason, `retry-after` and `retry-after-ms` where coming back
 * makes sense, the time it waited, body.
 * @throws FlowConfigError when a function of `options` answers what cannot be sent; what such a function throws
 * @example
 * const outcome = await flow.enqueue(request, key);
 * if (outcome.type !== 'Dispatched') {
 *   const { status, headers, body } = toHttpResponse(outcome);
 *   return new Response(body, { status, headers });
 * }
 */
export function toHttpResponse(drop: Drop, options: ErrorResponseOptions = {}): HttpErrorResponse {
  const {
    contract = 'gateway-api',
    body: format = contract === 'dynamo' ? dynamoBody : 'problem',
    maxRetryAfterSeconds,
    hasEndpoints,
    random = Math.random,
  } = options;
  const explanation = explainDrop(drop, maxRetryAfterSeconds);
  const { status, droppedReason } = mapDrop(drop, explanation, contract, hasEndpoints);
  const { cause, code, detail, retryAfterSeconds, retryAfterMs = 0 } = explanation;
  const isBudget = cause === 'budget';
  const resets_at = isBudget && retryAfterMs > 0 ? Math.ceil((Date.now() + retryAfterMs) / 1000) : undefined;
  const { type: outcome, reason, priority } = drop;
  const { type, title } = problemType(status);
  const error = errorObject({ status, detail, code, resets_at });
  const problem = { type, title, status, detail, code, outcome, reason, priority, resets_at, error };
  const { contentType, body } = formatBody(problem, drop, format);
  const headers: Record<string, string> = { 'content-type': contentType, 'cache-control': 'no-store' };
  headers[queueDurationHeader] = queueDuration(drop);
  if (droppedReason !== undefined) headers[droppedReasonHeader] = droppedReason;
  if (retryAfterSeconds !== undefined && isRefusal(status)) {
    const drawn = random();
    const draw = drawn >= 0 && drawn < 1 ? drawn : 0;
    headers['retry-after'] = jittered(retryAfterSeconds, draw);
    headers['retry-after-ms'] = jitteredMs(retryAfterMs, draw);
  }
  if (retryAfterMs > longestObeyedMs || (isBudget && retryAfterMs === 0)) headers['x-should-retry'] = 'false';
  if (cause === 'shutting-down') headers['x-should-retry'] = 'true';
  return { status, headers, body };
}

/** The header that every response carries which went through flow control, dispatched or dropped. */
export function queueDurationHeaders(waited: { readonly queuedMs: number }): Record<string, string> {
  return { [queueDurationHeader]: queueDuration(waited) };
}

/** The header that tells the room left in a band; none where that is not known. */
export function bandHeadroomHeaders(headroom: number | undefined): Record<string, string> {
  return headroom === undefined ? {} : { [bandHeadroomHeader]: String(headroom) };
}

/** The request announces a larger body than the host takes. */
export function tooLargeResponse(maxRequestBytes: number, format: ErrorBody | undefined): HttpErrorResponse {
  const detail = `A request may have at most ${maxRequestBytes} bytes.`;
  return faultResponse(413, 'Content Too Large', detail, 'ERR_FLOW_REQUEST_TOO_LARGE', format);
}

/** The client does not send what it announced. */
export function slowUploadResponse(format: ErrorBody | undefined): HttpErrorResponse {
  const detail = 'The request was not received in time.';
  return faultResponse(408, 'Request Timeout', detail, 'ERR_FLOW_UPLOAD_TIMEOUT', format);
}

/** The model server gave no answer to the request that `relay` passes on. */
export function noAnswerResponse(format: ErrorBody | undefined): HttpErrorResponse {
  return faultResponse(502, 'Bad Gateway', 'No answer from the model server.', 'ERR_FLOW_NO_ANSWER', format);
}

/** Another error of a request by itself, as clients of OpenAI's interface read it. */
export function openaiError(status: number, detail: string, code: string): HttpErrorResponse {
  return faultResponse(status, '', detail, code, 'openai');
}

/** No drops: no limit was reached. A body format of the host's own is for drops: such hosts get problem details. */
function faultResponse(status: number, title: string, detail: string, code: string, format: ErrorBody | undefined) {
  const problem = { type: 'about:blank', title, status, detail, code, error: errorObject({ status, detail, code }) };
  const { contentType, body } = plainBody(problem, format === 'openai' ? 'openai' : 'problem');
  return { status, headers: { 'content-type': contentType, 'cache-control': 'no-store' }, body };
}

/** The value of the queue-duration header. Sub-millisecond waits read 0. */
export const queueDuration = ({ queuedMs }: { readonly queuedMs: number }): string => String(Math.trunc(queuedMs));

/** Up to a fifth more, a second at least: clients told the same number would all come back in the same second. */
function jittered(seconds: number, draw: number): string {
  const whole = Math.floor(seconds);
  return String(whole + Math.floor((Math.ceil(whole / 5) + 1) * draw));
}

/** As much more, in ms: clients that read this header are spread within the second, too. */
const jitteredMs = (ms: number, draw: number): string => String(Math.floor(ms + Math.max(ms / 5, 1_000) * draw));
