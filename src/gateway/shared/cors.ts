/** Which origins may call the gateway from a browser, and what their scripts may see of an answer. */
import type { IncomingMessage, ServerResponse } from 'node:http';

export interface CorsConfig {
  /** `*` for every origin, or origins as browsers write them: scheme, host and port. */
  readonly origins: '*' | readonly string[];
  /** How long a browser need not ask again, ms. */
  readonly maxAge: number;
}

type Cors = CorsConfig | undefined;

/** Headers of the gateway that scripts may read. */
const exposed =
  'retry-after, retry-after-ms, x-request-id, x-llm-d-flow-queue-duration-ms, x-llm-d-flow-band-headroom-requests, x-llm-d-request-dropped-reason';

/** Names the origin in the answer when it may read it; whatever is answered later keeps these headers. */
export function allowOrigin(cors: Cors, req: IncomingMessage, res: ServerResponse): void {
  if (cors === undefined) return;
  // The answer differs by origin, also for those that may not read it.
  if (cors.origins !== '*') res.setHeader('vary', 'origin');
  const { origin } = req.headers;
  if (origin === undefined || (cors.origins !== '*' && !cors.origins.includes(origin))) return;
  res.setHeader('access-control-allow-origin', cors.origins === '*' ? '*' : origin);
  res.setHeader('access-control-expose-headers', exposed);
}

/** Answers OPTIONS: with what an origin may do that was allowed, and with the methods of the path in any case. */
export function answerOptions(cors: Cors, req: IncomingMessage, res: ServerResponse, allow: string): void {
  if (cors !== undefined && res.hasHeader('access-control-allow-origin')) {
    const asked = req.headers['access-control-request-headers'];
    res.setHeader('access-control-allow-methods', allow);
    if (asked !== undefined) res.setHeader('access-control-allow-headers', asked);
    res.setHeader('access-control-max-age', Math.floor(cors.maxAge / 1000));
  }
  res.writeHead(204, { allow }).end();
}
