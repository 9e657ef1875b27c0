/** An upstream's answer as the response of a handler. */
import { streamAhead } from '../../base/stream/read-ahead.js';
import { type RelayOptions, relayedHeaders, type UpstreamAnswer } from '../http/relayed-answer.js';
import type { RequestFlow } from '../http/request-flow.js';
import { noAnswerResponse } from '../http/to-http-response.js';
import { flowIn } from './flow-control.js';

export interface RelayedParts {
  readonly body: ReadableStream<Uint8Array> | string | null;
  readonly status: number;
  readonly headers: Headers;
}

/**
 * The response that sends what `fetch` answers: its status, its headers and its body, no faster than the client reads.
 * Never rejects: a client that leaves is no error, and an upstream without an answer is told as 502.
 * @example
 * export const POST = (request) => inTurn(request, (request, { signal }) => relay(fetch(url, { signal }), request));
 */
export async function relay(
  upstream: UpstreamAnswer | PromiseLike<UpstreamAnswer>,
  request: Request,
  options: RelayOptions = {},
): Promise<Response> {
  const { body, ...head } = await relayedParts(upstream, flowIn(request), options);
  return new Response(body, head);
}

/** The same for hosts that make the response themselves. */
export async function relayedParts(
  upstream: UpstreamAnswer | PromiseLike<UpstreamAnswer>,
  flow: RequestFlow | undefined,
  options: RelayOptions,
): Promise<RelayedParts> {
  const signal = flow?.signal;
  try {
    const answer = await upstream;
    const headers = new Headers();
    for (const [name, value] of relayedHeaders(answer)) for (const each of [value].flat()) headers.append(name, each);
    const over = (isWhole: boolean, error: unknown): void => {
      // It failed because nobody wants it any more.
      if (!isWhole && signal?.aborted !== true) options.onError?.(error);
    };
    const source = answer.body as ReadableStream<Uint8Array> | null;
    const body = source && streamAhead(source.getReader(), [], { came: options.onChunk, over });
    return { body, status: answer.status, headers };
  } catch (error) {
    // The adapter answers for who was evicted, and nobody reads the answer to who left.
    if (signal?.aborted === true) return { body: null, status: 503, headers: new Headers() };
    options.onError?.(error);
    const { body, status, headers } = noAnswerResponse(flow?.errorBody);
    return { body, status, headers: new Headers(headers) };
  }
}
