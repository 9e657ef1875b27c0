/** What it means when a server cannot be reached, does not answer in time, or breaks off. */
import { unconnectedCodes } from '../../base/unconnected.js';
import { ApiError } from '../shared/api-error.js';

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

export function nothingWasSent(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(nothingWasSent);
  return unconnectedCodes.includes(codeOf(error));
}

export function failureOf(error: unknown, upstream: string): ApiError {
  if (error instanceof ApiError) return error;
  const code = codeOf(error);
  if (/^UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT$/.test(code))
    return new ApiError(504, 'upstream_timeout', `${upstream} did not answer in time.`);
  if (nothingWasSent(error)) return new ApiError(502, 'upstream_unreachable', `${upstream} cannot be reached.`);
  return new ApiError(502, 'upstream_failed', `${upstream} broke off before it answered.`);
}
