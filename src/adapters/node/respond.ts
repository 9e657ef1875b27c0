/** Writes Node responses without a framework, breaks off those that have begun, and drops late writes of handlers. */
import { bandHeadroomHeader, queueDurationHeader } from '../../base/headers/header-names.js';
import type { RequestFlow } from '../http/request-flow.js';
import { type HttpErrorResponse, queueDuration } from '../http/to-http-response.js';
import { http2StreamOf, type NodeRequest, type NodeResponse } from './node-request.js';

export function respond(req: NodeRequest, res: NodeResponse, { status, headers, body }: HttpErrorResponse): void {
  res.statusCode = status;
  setHeaders(res, headers);
  // HTTP/2 takes a body on HEAD for an error.
  if (req.method === 'HEAD') res.end();
  else res.end(body);
}

export function setHeaders(res: NodeResponse, headers: Readonly<Record<string, string>>): void {
  for (const name in headers) res.setHeader(name, headers[name]!);
}

/** Tells how long the request waited, and the room in its band where asked, unless the response has begun. */
export function setFlowHeaders(res: NodeResponse, flow: RequestFlow): void {
  if (res.headersSent) return;
  res.setHeader(queueDurationHeader, queueDuration(flow));
  if (flow.bandHeadroom !== undefined) res.setHeader(bandHeadroomHeader, String(flow.bandHeadroom));
}

/** HTTP/2 error code INTERNAL_ERROR: clients take CANCEL for an orderly end. Source: RFC 9113, section 7. */
const internalError = 2;

/** To destroy an HTTP/2 response would end its stream as if it were complete. */
export function abortResponse(outgoing: NodeResponse): void {
  if ('stream' in outgoing) outgoing.stream.close(internalError);
  else outgoing.destroy();
}

/** HTTP/2 on Node 20 before its body was read: answers amid uploads damage the heap, so the stream is reset instead. */
export function mustAbortResponse(req: NodeRequest): boolean {
  return isNode20 && !req.complete && http2StreamOf(req)?.endAfterHeaders === false;
}

// Also loaded where there is no Node.
const isNode20 = globalThis.process?.version?.startsWith('v20.') === true;

/** A write after the end emits an error until the response is destroyed; without a listener it ends the process. */
export function ignoreLateErrors(res: NodeResponse): void {
  res.on('error', ignore);
}

/** Drops what a handler writes after the answer: throwing, it would have error handling break the connection off. */
export function dropLateWrites(res: NodeResponse): void {
  ignoreLateErrors(res);
  Object.assign(res, dropping);
}

function ignore(): void {}

function chain(this: NodeResponse): NodeResponse {
  return this;
}

/** The callback of `write` and `end` is the last argument. */
export function callBack(given: readonly unknown[]): void {
  const callback = given.at(-1);
  if (typeof callback === 'function') process.nextTick(callback as () => void);
}

const dropping = {
  setHeader: chain,
  setHeaders: chain,
  appendHeader: chain,
  removeHeader: ignore,
  flushHeaders: ignore,
  addTrailers: ignore,
  writeHead: chain,
  writeContinue: ignore,
  writeProcessing: ignore,
  writeEarlyHints: ignore,
  /** It returns true, because a handler that waits for `drain` would wait for ever. */
  write(...given: unknown[]): boolean {
    callBack(given);
    return true;
  },
  end(this: NodeResponse, ...given: unknown[]): NodeResponse {
    callBack(given);
    return this;
  },
};
