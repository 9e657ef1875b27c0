/** Streams an upstream's answer to the client of a Fastify request. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RelayEnd, RelayOptions, UpstreamAnswer } from '../http/relayed-answer.js';
import type { WithFlow } from '../http/request-flow.js';
import type { NodeRequest } from '../node/node-request.js';
import { relay as relayOnNode } from '../node/relay.js';

/**
 * Sends what `fetch` answers, as `relay` of `headgate/node` does; the reply is hijacked, and takes along the headers
 * that it has by then. `onSend` hooks do not see it.
 * @example
 * app.post('/v1/chat/completions', async (request, reply) => {
 *   await relay(fetch(url, { signal: request.flow.signal }), request, reply);
 * });
 */
export function relay(
  upstream: UpstreamAnswer | PromiseLike<UpstreamAnswer>,
  request: FastifyRequest,
  reply: FastifyReply,
  options: RelayOptions = {},
): Promise<RelayEnd> {
  reply.hijack();
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) reply.raw.setHeader(name, value);
  const req: WithFlow<NodeRequest> = request.raw;
  if (request.flow !== undefined) req.flow = request.flow;
  return relayOnNode(upstream, req, reply.raw, options);
}
