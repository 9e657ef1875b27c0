import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from 'node:http2';

/** A request of node:http, or of node:http2's compatibility API. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;
/** A response of either. */
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** The stream of an HTTP/2 request; undefined for HTTP/1. */
export function http2StreamOf(req: NodeRequest): ServerHttp2Stream | undefined {
  return req.httpVersionMajor === 2 ? (req as Http2ServerRequest).stream : undefined;
}
