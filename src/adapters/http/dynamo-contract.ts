/**
 * The answers of Dynamo's front end to requests that it sheds: a status of the host's choice, and the flat bodies of
 * its releases.
 */
import { type Drop, explainDrop } from '../../index.js';
import type { DropExplanation } from '../../types/index.js';
import type { FormattedBody, ProblemDetails } from './error-body.js';
import { droppedReasons, type HttpErrorMapping } from './http-error-mapping.js';

/** The status that Dynamo's later releases use for overload. */
const laterOverloadStatus = 529;

const others: Partial<Record<DropExplanation['cause'], number>> = { internal: 500, revoked: 403 };

const overloadCodes: readonly string[] = [
  'ERR_FLOW_SATURATED',
  'ERR_FLOW_OVERLOADED',
  'ERR_FLOW_TTL_EXPIRED',
  'ERR_FLOW_INFEASIBLE',
];

/**
 * An error contract for clients of Dynamo. Drops because of load, an expired TTL among them, get `overloadStatus`.
 * Faults get 500, requests that became void while they waited 403, and the rest 503. Give it together with
 * `body: dynamoBody`. Source: Dynamo, request rejection.
 *
 * @example
 * const overloadStatus = dynamoOverloadStatus(process.env.DYN_HTTP_OVERLOAD_STATUS_CODE);
 * toHttpResponse(drop, { contract: dynamoContract(overloadStatus), body: dynamoBody });
 */
export function dynamoContract(overloadStatus = 503): (drop: Drop) => HttpErrorMapping {
  return (drop) => {
    const { cause, code } = explainDrop(drop);
    const status = overloadCodes.includes(code) ? overloadStatus : (others[cause] ?? 503);
    return { status, droppedReason: droppedReasons[cause] };
  };
}

/**
 * The status that Dynamo reads from `DYN_HTTP_OVERLOAD_STATUS_CODE`: an integer from 200 to 999, and 529 for anything
 * else.
 */
export function dynamoOverloadStatus(text: string | undefined): number {
  const status = /^\d{3}$/.test(text ?? '') ? Number(text) : 0;
  return status >= 200 ? status : laterOverloadStatus;
}

/** An error body `{ message, type, code }`, in the documented words for overload; at 529 in those of later releases. */
export function dynamoBody({ status, detail, code }: ProblemDetails): FormattedBody {
  const words = wordsFor(status, overloadCodes.includes(code), detail);
  return { contentType: 'application/json', body: JSON.stringify({ ...words, code: status }) };
}

function wordsFor(
  status: number,
  isOverload: boolean,
  detail: string,
): { readonly message: string; readonly type: string } {
  if (isOverload && status === laterOverloadStatus)
    return { message: 'Service temporarily overloaded', type: 'Overloaded' };
  if (isOverload) {
    return {
      message: 'Service temporarily unavailable: All workers are busy, please retry later',
      type: 'service_unavailable',
    };
  }
  return { message: detail, type: status === 500 ? 'internal_server_error' : 'service_unavailable' };
}
