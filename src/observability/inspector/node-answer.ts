/** A web response sent by a Node response, at the pace at which it is taken. */
import type { HeaderRecord } from '../../base/headers/header-source.js';
import type { InspectorRequest } from './options.js';

/** The part of `IncomingMessage` that is read. */
export interface NodeLikeRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: HeaderRecord;
  readonly socket?: { readonly remoteAddress?: string | undefined } | undefined;
}

/** The part of `ServerResponse` that is written, of HTTP/1 and HTTP/2. */
export interface NodeLikeResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  write(chunk: Uint8Array): boolean;
  end(): unknown;
  once(event: 'close' | 'drain', listener: () => void): unknown;
  destroy?(): unknown;
}

/** Never rejects: an exception of `ask` goes to `next`, or is 500; an answer that fails on its way is broken off. */
export async function answerNode(
  ask: (request: InspectorRequest) => Promise<Response>,
  req: NodeLikeRequest,
  res: NodeLikeResponse,
  next: ((error?: unknown) => void) | undefined,
): Promise<void> {
  let response: Response;
  try {
    const { method = 'GET', url = '/', headers, socket } = req;
    response = await ask({ method, url, headers, address: socket?.remoteAddress });
    if (response.bodyUsed) throw new TypeError('expected an answer that was not sent before');
  } catch (error) {
    if (next !== undefined) return next(error);
    response = new Response(null, { status: 500 });
  }
  try {
    res.statusCode = response.status;
    response.headers.forEach((value, name) => {
      res.setHeader(name, value);
    });
    if (response.body !== null) await send(response.body, res);
    res.end();
  } catch {
    res.destroy?.();
  }
}

/** Ends with the body, or with the connection. */
async function send(body: ReadableStream<Uint8Array>, res: NodeLikeResponse): Promise<void> {
  const closed = new Promise<true>((resolve) => res.once('close', () => resolve(true)));
  const reader = body.getReader();
  void closed.then(() => reader.cancel().catch(() => {}));
  for (let part = await reader.read(); !part.done; part = await reader.read())
    if (!res.write(part.value))
      await Promise.race([closed, new Promise<void>((resolve) => res.once('drain', resolve))]);
}
