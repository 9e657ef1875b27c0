/** Takes the flow headers off a request in place, so that a proxy behind the adapter cannot forward them. */
import { controlHeaders } from '../http/header-names.js';
import type { NodeRequest } from './on-response-end.js';

/** Removes them from `headers`, `headersDistinct` and `rawHeaders`; costs one pass over `rawHeaders` when there are none. */
export function stripRequestHeaders(req: NodeRequest): void {
  const { rawHeaders } = req;
  let kept = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    // Nearly all names differ in their first letter, which spares the lower-casing.
    if ((name[0] === 'x' || name[0] === 'X') && controlHeaders.has(name.toLowerCase())) continue;
    rawHeaders[kept] = name;
    rawHeaders[kept + 1] = rawHeaders[i + 1]!;
    kept += 2;
  }
  if (kept === rawHeaders.length) return;
  rawHeaders.length = kept;
  for (const name of controlHeaders) {
    delete req.headers[name];
    if ('headersDistinct' in req) delete req.headersDistinct[name];
  }
}
