/** An upstream's answer as the response of a Hono handler, on Node and on fetch runtimes. */
import type { Context } from 'hono';
import { type RelayOptions, relayedHeaders, type UpstreamAnswer } from '../http/relayed-answer.js';
import { noAnswerResponse } from '../http/request-faults.js';
import type { RequestFlow } from '../http/request-flow.js';

/**
 * The response that sends what `fetch` answers: its status, its headers and its body, no faster than the client reads.
 * Never rejects: a client that leaves is no error, and an upstream without an answer is told as 502.
 *
 * @example
 * app.post('/v1/chat/completions', async (c) => relay(fetch(url, { signal: c.var.flow.signal }), c));
 */
export async function relay(
  upstream: UpstreamAnswer | PromiseLike<UpstreamAnswer>,
  c: Context,
  { onChunk, onError }: RelayOptions = {},
): Promise<Response> {
  const flow: RequestFlow | undefined = c.get('flow');
  const signal = flow?.signal;
  try {
    const answer = await upstream;
    const headers = new Headers();
    for (const [name, value] of relayedHeaders(answer)) for (const each of [value].flat()) headers.append(name, each);
    const body =
      answer.body === null ? null : quiet(answer.body as ReadableStream<Uint8Array>, signal, onChunk, onError);
    return c.newResponse(body, { status: answer.status as 200, headers });
  } catch (error) {
    // The adapter answers for who was evicted, and nobody reads the answer to who left.
    if (signal?.aborted === true) return c.newResponse(null, 503);
    onError?.(error);
    const { status, headers, body } = noAnswerResponse(flow?.errorBody);
    return c.newResponse(body, { status: status as 502, headers: { ...headers } });
  }
}

/** The body, which reports its failure unless it failed because nobody wants it any more. */
function quiet(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal | undefined,
  onChunk: RelayOptions['onChunk'],
  onError: RelayOptions['onError'],
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) {
            controller.close();
            return;
          }
          onChunk?.(value);
          controller.enqueue(value);
        } catch (error) {
          if (signal?.aborted !== true) onError?.(error);
          controller.error(error);
          reader.cancel(error).catch(() => {});
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
