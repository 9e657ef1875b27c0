/** An upstream's answer as the response of a Hono handler, on Node and on fetch runtimes. */
import type { Context } from 'hono';
import type { RelayOptions, UpstreamAnswer } from '../http/relayed-answer.js';
import { relayedParts } from '../web/relay.js';

/**
 * The response that sends what `fetch` answers: its status, its headers and its body, no faster than the client reads.
 * Never rejects: a client that leaves is no error, and an upstream without an answer is told as 502.
 * @example app.post('/v1/chat/completions', async (c) => relay(fetch(url, { signal: c.var.flow.signal }), c));
 */
export async function relay(
  upstream: UpstreamAnswer | PromiseLike<UpstreamAnswer>,
  c: Context,
  options: RelayOptions = {},
): Promise<Response> {
  const { body, status, headers } = await relayedParts(upstream, c.get('flow'), options);
  return c.newResponse(body, { status: status as 200, headers });
}
