/** The response that a request gets which announces a larger body than the host takes. It is no drop: no limit of flow control was reached. */
import type { ErrorBody } from './error-body.js';
import type { HttpErrorResponse } from './to-http-response.js';

const status = 413;
const code = 'ERR_FLOW_REQUEST_TOO_LARGE';

/** A body format of the host's own is for drops: such hosts get problem details. */
export function tooLargeResponse(maxRequestBytes: number, format: ErrorBody | undefined): HttpErrorResponse {
  const detail = `A request may have at most ${maxRequestBytes} bytes.`;
  const isOpenai = format === 'openai';
  const body = isOpenai
    ? { error: { message: detail, type: 'invalid_request_error', param: null, code } }
    : { type: 'about:blank', title: 'Content Too Large', status, detail, code };
  const contentType = isOpenai ? 'application/json' : 'application/problem+json';
  return { status, headers: { 'content-type': contentType, 'cache-control': 'no-store' }, body: JSON.stringify(body) };
}
