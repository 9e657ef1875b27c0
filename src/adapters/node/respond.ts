/** Writes to a Node response, for hosts without a framework of their own to do it. */
import { bandHeadroomHeader, queueDurationHeader } from '../../base/headers/header-names.js';
import type { RequestFlow } from '../http/request-flow.js';
import { type HttpErrorResponse, queueDuration } from '../http/to-http-response.js';
import type { NodeRequest, NodeResponse } from './node-request.js';

/** Sends the whole response. */
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

/**
 * Says how long the request waited, and the room left in its band where that is told, if the response has not begun.
 */
export function setFlowHeaders(res: NodeResponse, flow: RequestFlow): void {
  if (res.headersSent) return;
  res.setHeader(queueDurationHeader, queueDuration(flow));
  if (flow.bandHeadroom !== undefined) res.setHeader(bandHeadroomHeader, String(flow.bandHeadroom));
}
