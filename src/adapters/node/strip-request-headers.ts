/** Takes the flow headers off requests. */
import { controlHeaders } from '../../base/headers/header-names.js';
import type { NodeRequest } from './node-request.js';

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
