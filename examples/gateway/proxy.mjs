// @ts-check
// The reverse proxy: one request to one model server, streamed both ways with back-pressure.
// Invariant: when either side is gone the other is told, so that no server generates for nobody. Of flow control it
// knows only whom to tell what an answer costs.

import { Agent, request } from 'node:http';
import { pipeline } from 'node:stream';
import { usageReader } from 'headgate/endpoints';
import { ApiError, sendError } from './openai.mjs';

/** @import { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http' */
/** @import { Lease } from 'headgate' */

/** @typedef {{ id: string, url: string, inFlight: number }} Upstream */

const agent = new Agent({ keepAlive: true });
/** Headers that are about one connection, or that Node writes itself. */
const hopByHop = new Set([
  'connection',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/** Between the client and this gateway only. */
const flowHeaders = /^x-(gateway|llm-d)-inference-|^x-(llm-d-)?slo-/;

/**
 * @param {IncomingMessage} req
 * @param {ServerResponse} res
 * @param {Upstream} upstream
 * @param {AbortSignal} [signal] Ends the exchange from the gateway's side.
 * @param {Lease} [lease] Is told what the answer costs while it passes.
 */
export function forward(req, res, upstream, signal, lease) {
  if (res.closed || signal?.aborted) return;
  const outgoing = request(new URL(req.url ?? '/', upstream.url), {
    method: req.method,
    headers: endToEnd(req.headers),
    agent,
  });
  const stop = () => outgoing.destroy();
  upstream.inFlight += 1;
  signal?.addEventListener('abort', stop);

  outgoing.once('response', (answer) => {
    res.writeHead(answer.statusCode ?? 502, { ...endToEnd(answer.headers), 'x-gateway-server': upstream.id });
    res.flushHeaders();
    const usage = usageReader({ lease });
    answer.on('data', (chunk) => usage.push(chunk)).once('close', () => usage.end());
    pipeline(answer, res, () => {}); // an answer cut short destroys `res`: the client must not take it for a whole one
  });
  outgoing.once('error', () => {
    if (signal?.aborted) return; // not the server's fault: whoever ended the exchange also ends the answer
    if (!res.headersSent && !res.closed) sendError(res, new ApiError(502, `${upstream.id} did not answer.`));
  });
  outgoing.once('close', () => {
    upstream.inFlight -= 1;
    signal?.removeEventListener('abort', stop);
  });
  res.once('close', () => {
    if (!res.writableFinished) outgoing.destroy();
  });
  req.pipe(outgoing);
}

/** @param {IncomingHttpHeaders} headers */
function endToEnd(headers) {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name) && !flowHeaders.test(name)));
}
