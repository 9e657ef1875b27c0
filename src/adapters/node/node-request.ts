/** Requests and responses of Node, in both protocols, and the flow headers of requests. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from 'node:http2';
import { controlHeaders } from '../../base/headers/header-names.js';

/** A request of node:http, or of node:http2's compatibility API. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;
/** A response of either. */
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** The stream of an HTTP/2 request; undefined for HTTP/1. */
export function http2StreamOf(req: NodeRequest): ServerHttp2Stream | undefined {
  return req.httpVersionMajor === 2 ? (req as Http2ServerRequest).stream : undefined;
}

/** Whether the name, in any case, is one of `controlHeaders`: all begin with an x, and most other headers do not. */
export function isFlowHeader(name: string): boolean {
  return (name[0] === 'x' || name[0] === 'X') && controlHeaders.has(name.toLowerCase());
}

/** Takes flow headers off `headers`, `headersDistinct` and `rawHeaders`, in place; one pass if there are none. */
export function stripRequestHeaders(req: NodeRequest): void {
  const { rawHeaders } = req;
  let i = 0;
  while (i < rawHeaders.length && !isFlowHeader(rawHeaders[i]!)) i += 2;
  // Without raw headers the request never was on a wire: its `headers` were made by hand.
  if (i >= rawHeaders.length && rawHeaders.length > 0) return;

  // First the derived forms: Node makes them when they are first read, out of all of rawHeaders or not at all.
  const { headers } = req;
  const distinct = 'headersDistinct' in req ? req.headersDistinct : {};
  for (const name of controlHeaders) {
    delete headers[name];
    delete distinct[name];
  }
  let kept = i;
  for (; i < rawHeaders.length; i += 2) {
    if (isFlowHeader(rawHeaders[i]!)) continue;
    rawHeaders[kept] = rawHeaders[i]!;
    rawHeaders[kept + 1] = rawHeaders[i + 1]!;
    kept += 2;
  }
  rawHeaders.length = kept;
}
