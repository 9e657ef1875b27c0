/** Writes the body of a drop's response. */
import type { Drop, DropExplanation, DropReason } from '../../index.js';
import { checkedBody } from './check-drop-response.js';

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
}

export interface FormattedBody {
  readonly contentType: string;
  readonly body: string;
}

/**
 * - `problem`: RFC 9457 `application/problem+json`.
 * - `openai`: the error object that clients of the OpenAI API parse.
 * - a function: your own format, or `dynamoBody`, made from the problem details. Fairness IDs should not be echoed.
 */
export type ErrorBody = 'problem' | 'openai' | ((problem: ProblemDetails, drop: Drop) => FormattedBody);

export function formatBody(problem: ProblemDetails, drop: Drop, format: ErrorBody): FormattedBody {
  if (typeof format === 'function') return checkedBody(format(problem, drop));
  return format === 'openai'
    ? openaiBody(problem)
    : { contentType: 'application/problem+json', body: JSON.stringify(problem) };
}

function openaiBody({ status, detail, code }: ProblemDetails): FormattedBody {
  const type = status === 429 ? 'rate_limit_error' : 'server_error';
  return {
    contentType: 'application/json',
    body: JSON.stringify({ error: { message: detail, type, param: null, code } }),
  };
}

/** The problem type of a status: two are registered by the IETF's draft on rate limit headers, the others need none. */
export function problemType(status: number): { readonly type: string; readonly title: string } {
  switch (status) {
    case 429:
      return {
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title: 'Too many requests are waiting',
      };
    case 503:
    case 529:
      return {
        type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
        title: 'No capacity for now',
      };
    case 500:
      return { type: 'about:blank', title: 'Internal Server Error' };
    default:
      return { type: 'about:blank', title: 'Request dropped by flow control' };
  }
}
