/** One header of a request, without `req.headers`: Node makes that object when it is first read, which not every handler does (bench: http). */
import type { NodeRequest } from './node-request.js';

/** The first value under `name`, which is in lower case; undefined without one. */
export function headerOf(req: NodeRequest, name: string): string | undefined {
  const { rawHeaders } = req;
  // A request that never was on a wire, as those of adapters for serverless platforms.
  if (rawHeaders.length === 0) return req.headers[name]?.toString();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i]!;
    if (candidate.length === name.length && candidate.toLowerCase() === name) return rawHeaders[i + 1];
  }
  return undefined;
}
