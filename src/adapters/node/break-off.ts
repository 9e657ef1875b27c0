/** Ends a response that has begun so that its client can tell: it must not take a part for the whole. */
import type { NodeResponse } from './node-request.js';

/** HTTP/2 error code INTERNAL_ERROR: clients take CANCEL for an orderly end. Source: RFC 9113, section 7. */
const internalError = 2;

/** Destroying an HTTP/2 response would end its stream as if all had been said. */
export function breakOff(outgoing: NodeResponse): void {
  if ('stream' in outgoing) outgoing.stream.close(internalError);
  else outgoing.destroy();
}
