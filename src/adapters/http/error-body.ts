/** Writes the body of a drop's response. */
import type { Drop, DropReason } from '../../index.js';
import type { DropExplanation } from '../../types/index.js';
import { isHeaderText, laterOverloadStatus, overloadCodes, sendable } from './error-contract.js';

/** The error that clients of the OpenAI API read. */
export interface ErrorObject {
  readonly message: string;
  readonly type: string;
  readonly param: null;
  readonly code: string;
  /** When a budget is there again, seconds since 1970. */
  readonly resets_at?: number | undefined;
}

/** RFC 9457 problem details, with the members that flow control adds. */
export interface ProblemDetails {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  /** One sentence that names the limit, its value and how full it was. */
  readonly detail: string;
  readonly code: DropExplanation['code'];
  readonly outcome: Drop['type'];
  readonly reason: DropReason;
  readonly priority: number;
  readonly resets_at?: number | undefined;
  /** The same for clients of the OpenAI API, which would show no message otherwise. */
  readonly error: ErrorObject;
}

export interface FormattedBody {
  readonly contentType: string;
  readonly body: string;
}

/**
 * - `problem`: RFC 9457 `application/problem+json`, with the error object of `openai` as its member `error`.
 * - `openai`: that object alone.
 * - a function: your own format, or `dynamoBody`, made from the problem details. Fairness IDs should not be echoed.
 */
export type ErrorBody = 'problem' | 'openai' | ((problem: ProblemDetails, drop: Drop) => FormattedBody);

export function formatBody(problem: ProblemDetails, drop: Drop, format: ErrorBody): FormattedBody {
  if (typeof format !== 'function') return plainBody(problem, format);
  const formatted = format(problem, drop);
  const isRight = isHeaderText(formatted.contentType) && typeof formatted.body === 'string';
  return sendable(formatted, isRight, 'body', 'contentType and body');
}

export function plainBody(problem: { readonly error: ErrorObject }, format: 'problem' | 'openai'): FormattedBody {
  return format === 'openai'
    ? { contentType: 'application/json', body: JSON.stringify({ error: problem.error }) }
    : { contentType: 'application/problem+json', body: JSON.stringify(problem) };
}

type Facts = Pick<ErrorObject, 'code' | 'resets_at'> & { readonly status: number; readonly detail: string };

export function errorObject({ status, detail, code, resets_at }: Facts): ErrorObject {
  const type = status === 429 ? 'rate_limit_error' : status < 500 ? 'invalid_request_error' : 'server_error';
  return { message: detail, type, param: null, code, resets_at };
}

const registered = 'https://iana.org/assignments/http-problem-types#';
const reducedCapacity = { type: `${registered}temporary-reduced-capacity`, title: 'No capacity for now' };

/** The problem types: two are registered by the IETF's draft on rate limit headers, the others need none. */
const problemTypes: Readonly<Record<number, { readonly type: string; readonly title: string }>> = {
  429: { type: `${registered}quota-exceeded`, title: 'Too many requests are waiting' },
  503: reducedCapacity,
  529: reducedCapacity,
  500: { type: 'about:blank', title: 'Internal Server Error' },
};

export function problemType(status: number): { readonly type: string; readonly title: string } {
  return problemTypes[status] ?? { type: 'about:blank', title: 'Request dropped by flow control' };
}

/** An error body `{ message, type, code }`, in the documented words for overload; at 529 in those of later releases. */
export function dynamoBody({ status, detail, code }: ProblemDetails): FormattedBody {
  const words = wordsFor(status, overloadCodes.includes(code), detail);
  return { contentType: 'application/json', body: JSON.stringify({ ...words, code: status }) };
}

function wordsFor(status: number, isOverload: boolean, detail: string): { message: string; type: string } {
  if (!isOverload) return { message: detail, type: status === 500 ? 'internal_server_error' : 'service_unavailable' };
  if (status === laterOverloadStatus) return { message: 'Service temporarily overloaded', type: 'Overloaded' };
  return {
    message: 'Service temporarily unavailable: All workers are busy, please retry later',
    type: 'service_unavailable',
  };
}
