/** Streams an upstream's answer to the client of a Koa context. */
import type { RelayEnd, RelayOptions, UpstreamAnswer } from '../http/relayed-answer.js';
import type { WithFlow } from '../http/request-flow.js';
import type { NodeRequest } from '../node/node-request.js';
import { relay as relayOnNode } from '../node/relay.js';
import type { KoaContext } from './flow-control.js';

/**
 * Sends what `fetch` answers, as `relay` of `headgate/node` does; Koa's own response is switched off, and middleware in
 * front cannot change it. `app.on('error')` is told of connections that broke (`ECONNRESET`), as of every response.
 * @example app.use((ctx) => relay(fetch(url, { signal: ctx.state.flow.signal }), ctx));
 */
export function relay(
  upstream: UpstreamAnswer | PromiseLike<UpstreamAnswer>,
  ctx: KoaContext & { respond?: boolean | undefined },
  options: RelayOptions = {},
): Promise<RelayEnd> {
  ctx.respond = false;
  // Koa's 404 of a context that nobody has answered yet.
  ctx.res.statusCode = 200;
  const req: WithFlow<NodeRequest> = ctx.req;
  if (ctx.flow !== undefined) req.flow = ctx.flow;
  return relayOnNode(upstream, req, ctx.res, options);
}
