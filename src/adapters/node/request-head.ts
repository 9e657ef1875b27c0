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
export function isFlowHeader(name: string): boolean {
  return (name[0] === 'x' || name[0] === 'X') && controlHeaders.has(name.toLowerCase());
}
