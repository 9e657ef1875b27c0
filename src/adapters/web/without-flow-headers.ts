/** Takes the flow headers off a request, so that a proxy behind the adapter cannot forward them. */
import { controlHeaders } from '../../base/headers/header-names.js';
import { stripFlowHeaders } from '../../base/headers/header-source.js';

/** The same request where the runtime allows to change it; otherwise a copy with the same body and signal. */
export function withoutFlowHeaders(request: Request): Request {
  const { headers } = request;
  const present = [...controlHeaders].filter((name) => headers.has(name));
  if (present.length === 0) return request;
  try {
    for (const name of present) headers.delete(name);
    return request;
  } catch {
    // Cloudflare's incoming requests are immutable.
    return new Request(request, { headers: stripFlowHeaders(headers) });
  }
}
