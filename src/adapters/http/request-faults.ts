/** The responses of requests that are wrong by themselves. They are no drops: no limit of flow control was reached. */
import type { ErrorBody } from './error-body.js';
import type { HttpErrorResponse } from './to-http-response.js';

/** The request announces a larger body than the host takes. */
export function tooLargeResponse(maxRequestBytes: number, format: ErrorBody | undefined): HttpErrorResponse {
  const detail = `A request may have at most ${maxRequestBytes} bytes.`;
  return faultResponse(413, 'Content Too Large', detail, 'ERR_FLOW_REQUEST_TOO_LARGE', format);
}

/** The client does not send what it announced. */
export function slowUploadResponse(format: ErrorBody | undefined): HttpErrorResponse {
  return faultResponse(
    408,
    'Request Timeout',
    'The request was not received in time.',
    'ERR_FLOW_UPLOAD_TIMEOUT',
    format,
  );
}

/** A body format of the host's own is for drops: such hosts get problem details. */
function faultResponse(
  status: number,
  title: string,
  detail: string,
  code: string,
  format: ErrorBody | undefined,
): HttpErrorResponse {
  const isOpenai = format === 'openai';
  const body = isOpenai
    ? { error: { message: detail, type: 'invalid_request_error', param: null, code } }
    : { type: 'about:blank', title, status, detail, code };
  const contentType = isOpenai ? 'application/json' : 'application/problem+json';
  return { status, headers: { 'content-type': contentType, 'cache-control': 'no-store' }, body: JSON.stringify(body) };
}
