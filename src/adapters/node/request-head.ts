/**
 * Reads the head of a request once: its body's length, its expectation, and whether it has flow headers. Every request
 * pays for this pass over the raw headers. Node makes the object `req.headers` when it is first read, which not every
 * handler does (bench: http).
 */
import { controlHeaders } from '../../base/headers/header-names.js';
import type { NodeRequest } from './node-request.js';

export class RequestHead {
  /** As the client wrote it; undefined without one. */
  contentLength: string | undefined = undefined;
  /** There is a `Transfer-Encoding`: a body of unknown length follows. */
  isChunked = false;
  /** There is an `Expect`: the client may wait for permission to upload. */
  hasExpectation = false;
  hasFlowHeaders = false;

  constructor(req: NodeRequest) {
    const { rawHeaders } = req;
    for (let i = 0; i < rawHeaders.length; i += 2) this.read(rawHeaders[i]!, rawHeaders[i + 1]!);
    // A request that never was on a wire, as those of adapters for serverless platforms.
    if (rawHeaders.length === 0) for (const name in req.headers) this.read(name, String(req.headers[name]));
  }

  /** Comparing lengths and first letters leaves next to nothing to lower-case. */
  private read(name: string, value: string): void {
    switch (name.length) {
      case 6:
        if (name.toLowerCase() === 'expect') this.hasExpectation = true;
        return;
      case 14:
        if (name.toLowerCase() === 'content-length') this.contentLength ??= value;
        return;
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') this.isChunked = true;
    }
    if (isFlowHeader(name)) this.hasFlowHeaders = true;
  }
}

/** Whether the name, in any case, is one of `controlHeaders`: all begin with an x, and most other headers do not. */
function isFlowHeader(name: string): boolean {
  return (name[0] === 'x' || name[0] === 'X') && controlHeaders.has(name.toLowerCase());
}

/**
 * Takes the flow headers off a request in place, so that a proxy behind the adapter cannot forward them: off `headers`,
 * `headersDistinct` and `rawHeaders`. Costs one pass over `rawHeaders` when there are none.
 */
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
