/** Ends the response of a request that the controller evicted while it ran. */
import { type ErrorResponseOptions, toHttpResponse } from '../http/to-http-response.js';
import type { Lease } from '../index.js';
import type { NodeRequest, NodeResponse } from './node-request.js';
import { mustCloseToRefuse } from './request-body.js';

/** HTTP/2 error code INTERNAL_ERROR: clients take CANCEL for an orderly end. Source: RFC 9113, section 7. */
const internalError = 2;

/**
 * Watches a lease that may be evicted. The handler is told first, by `lease.signal`; what it has not ended itself by the next turn of
 * the event loop is ended here: with 429 and `evicted-priority` when no byte was sent, otherwise by breaking the stream off.
 */
export function endWhenEvicted(lease: Lease, queuedMs: number, req: NodeRequest, res: NodeResponse, options: ErrorResponseOptions): void {
  if (!lease.isEvictable) return;
  const end = (): void => {
    if (res.writableEnded || res.destroyed) return;
    if (res.headersSent) breakOff(res);
    else answer(lease, queuedMs, req, res, options);
  };
  lease.signal.addEventListener('abort', () => lease.isEvicted && setImmediate(end), { once: true });
}

/** Destroying an HTTP/2 response would end its stream as if all had been said. */
function breakOff(res: NodeResponse): void {
  if ('stream' in res) res.stream.close(internalError);
  else res.destroy();
}

function answer(
  { fairnessId, priority }: Lease,
  queuedMs: number,
  req: NodeRequest,
  res: NodeResponse,
  options: ErrorResponseOptions,
): void {
  const drop = { type: 'EvictedOther', reason: 'evicted', fairnessId, priority, queuedMs } as const;
  const { status, headers, body } = toHttpResponse(drop, options);
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  if (mustCloseToRefuse(req)) res.setHeader('connection', 'close');
  if (req.method === 'HEAD') res.end();
  else res.end(body);
}
