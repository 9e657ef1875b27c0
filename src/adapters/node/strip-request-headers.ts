/** Takes the flow headers off a request in place, so that a proxy behind the adapter cannot forward them. */
import { controlHeaders } from '../../base/headers/header-names.js';
import type { NodeRequest } from './node-request.js';

/** Removes them from `headers`, `headersDistinct` and `rawHeaders`; costs one pass over `rawHeaders` when there are none. */
export function stripRequestHeaders(req: NodeRequest): void {
  const { rawHeaders } = req;
  let i = 0;
  while (i < rawHeaders.length && !isControlHeader(rawHeaders[i]!)) i += 2;
  if (i >= rawHeaders.length) return;

  // First the derived forms: Node makes them when they are first read, out of all of rawHeaders or not at all.
  const { headers } = req;
  const distinct = 'headersDistinct' in req ? req.headersDistinct : {};
  for (const name of controlHeaders) {
    delete headers[name];
    delete distinct[name];
  }
  let kept = i;
  for (; i < rawHeaders.length; i += 2) {
    if (isControlHeader(rawHeaders[i]!)) continue;
    rawHeaders[kept] = rawHeaders[i]!;
    rawHeaders[kept + 1] = rawHeaders[i + 1]!;
    kept += 2;
  }
  rawHeaders.length = kept;
}

/** All begin with an x, and most other headers do not: that spares the lower-casing. */
function isControlHeader(name: string): boolean {
  return (name[0] === 'x' || name[0] === 'X') && controlHeaders.has(name.toLowerCase());
}
