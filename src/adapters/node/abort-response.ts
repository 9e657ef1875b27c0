/** Ends a response that has begun so that its client notices, and does not take a part for the whole. */
import { http2StreamOf, type NodeRequest, type NodeResponse } from './node-request.js';

/** HTTP/2 error code INTERNAL_ERROR: clients take CANCEL for an orderly end. Source: RFC 9113, section 7. */
const internalError = 2;

/** To destroy an HTTP/2 response would end its stream as if it were complete. */
export function abortResponse(outgoing: NodeResponse): void {
  if ('stream' in outgoing) outgoing.stream.close(internalError);
  else outgoing.destroy();
}

/**
 * True where a request must not be answered, but broken off: HTTP/2 on Node 20, before its body was read to the end.
 * Node 20 damaged its heap and died ("corrupted size vs. prev_size") where streams were answered in the middle of
 * uploads; a reset leaves nothing to be sent.
 */
export function mustAbortResponse(req: NodeRequest): boolean {
  return isNode20 && !req.complete && http2StreamOf(req)?.endAfterHeaders === false;
}

const isNode20 = process.version.startsWith('v20.');
