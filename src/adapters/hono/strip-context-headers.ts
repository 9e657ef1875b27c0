/** Takes the flow headers off a Hono request, so that a proxy behind the adapter cannot forward them. */
import type { Context } from 'hono';
import { controlHeaders } from '../../base/headers/header-names.js';
import { stripFlowHeaders } from '../../base/headers/header-source.js';

/** In place where the runtime allows it; otherwise `c.req.raw` becomes a copy with the same body and signal. */
export function stripContextHeaders({ req }: Context): void {
  const { headers } = req.raw;
  const present = [...controlHeaders].filter((name) => headers.has(name));
  if (present.length === 0) return;
  try {
    for (const name of present) headers.delete(name);
  } catch {
    // Cloudflare's incoming requests are immutable.
    req.raw = new Request(req.raw, { headers: stripFlowHeaders(headers) });
  }
}
