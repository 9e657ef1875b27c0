/** The responses of requests that fail by themselves. They are no drops: no limit of flow control was reached. */
import { type ErrorBody, errorObject, plainBody } from './error-body.js';
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

/** The model server gave no answer to the request that `relay` passes on. */
export function noAnswerResponse(format: ErrorBody | undefined): HttpErrorResponse {
  return faultResponse(502, 'Bad Gateway', 'No answer from the model server.', 'ERR_FLOW_NO_ANSWER', format);
}

/** A body format of the host's own is for drops: such hosts get problem details. */
function faultResponse(status: number, title: string, detail: string, code: string, format: ErrorBody | undefined) {
  const problem = { type: 'about:blank', title, status, detail, code, error: errorObject({ status, detail, code }) };
  const { contentType, body } = plainBody(problem, format === 'openai' ? 'openai' : 'problem');
  return { status, headers: { 'content-type': contentType, 'cache-control': 'no-store' }, body };
}
