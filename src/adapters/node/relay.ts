/**
 * Streams an upstream's answer to the client. Invariant: the promise never rejects; when the client, the upstream or
 * the lease ends, the others end too; no stream is without a listener for errors, and no upstream works for nobody.
 *
 *   fetch(url, { signal }) ──► status, headers ──► chunk by chunk, paused while the client does not read ──► end
 *         │ rejected                                  │ client left · evicted: the body is cancelled
 *         └─► client left · evicted · 502             └─► upstream broke off: so does the response
 */
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import { type RelayEnd, type RelayOptions, relayedHeaders, type UpstreamAnswer } from '../http/relayed-answer.js';
import type { RequestFlow, WithFlow } from '../http/request-flow.js';
import { noAnswerResponse } from '../http/to-http-response.js';
import type { NodeRequest, NodeResponse } from './node-request.js';
import { onResponseEnd } from './on-response-end.js';
import { abortResponse, ignoreLateErrors, respond } from './respond.js';

/**
 * Sends what `fetch` answers: its status, its headers and its body, no faster than the client reads. Resolves when the
 * response is over, and never rejects, so that a handler need not catch. A client that leaves is no error. An upstream
 * without an answer becomes a 502, and an upstream that breaks off breaks off the response. Give `signal` to `fetch`,
 * so that the upstream stops with the client.
 * @example
 * app.post('/v1/chat/completions', async (req, res) => {
 *   await relay(fetch(url, { method: 'POST', body: JSON.stringify(req.body), signal: req.flow.signal }), req, res);
 * });
 */
export async function relay(
  upstream: UpstreamAnswer | PromiseLike<UpstreamAnswer>,
  req: NodeRequest,
  res: NodeResponse,
  options: RelayOptions = {},
): Promise<RelayEnd> {
  ignoreLateErrors(res);
  try {
    return await send(await upstream, req, res, options);
  } catch (error) {
    const flow = flowIn(req);
    if (isOver(req, res) || flow?.signal.aborted === true) return ended(flow);
    options.onError?.(error);
    if (res.headersSent) abortResponse(res);
    else respond(req, res, noAnswerResponse(flow?.errorBody));
    return 'upstream-failed';
  }
}

function send(answer: UpstreamAnswer, req: NodeRequest, res: NodeResponse, { onChunk, onError }: RelayOptions) {
  // After a redirect to nowhere, or 204, there is none.
  const body = Readable.fromWeb((answer.body as ReadableStream | null) ?? new Blob([]).stream());
  const flow = flowIn(req);
  return new Promise<RelayEnd>((resolve) => {
    let hasFailed = false;
    const fail = (error: unknown): void => {
      if (hasFailed || flow?.signal.aborted === true) return;
      hasFailed = true;
      if (!isOver(req, res)) onError?.(error);
      body.destroy();
      abortResponse(res);
    };
    body.on('error', fail);
    onResponseEnd(req, res, (isSent) => {
      body.destroy();
      resolve(hasFailed ? 'upstream-failed' : isSent ? 'sent' : ended(flow));
    });
    if (isOver(req, res)) return;
    begin(answer, res);
    res.on('drain', () => body.resume());
    body.on('data', (chunk: Uint8Array) => {
      try {
        onChunk?.(chunk);
      } catch (error) {
        return fail(error);
      }
      // Both protocols write alike; their types do not.
      if (!(res as ServerResponse).write(chunk)) body.pause();
    });
    body.on('end', () => res.end());
  });
}

/** Undefined on requests that were skipped. */
const flowIn = (req: WithFlow<NodeRequest>): RequestFlow | undefined => req.flow;

const ended = (flow: RequestFlow | undefined): RelayEnd => (flow?.lease.isEvicted === true ? 'evicted' : 'client-left');

const isOver = (req: NodeRequest, res: NodeResponse): boolean =>
  res.destroyed || res.closed || res.writableEnded || req.socket.destroyed;

function begin(answer: UpstreamAnswer, res: NodeResponse): void {
  res.statusCode = answer.status;
  for (const [name, value] of relayedHeaders(answer)) res.setHeader(name, value);
  // The first token may be long in coming: the client is told at once that it comes.
  (res as ServerResponse).flushHeaders();
}
