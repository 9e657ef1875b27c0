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
  let body: Reader | undefined;
  try {
    const { method = 'GET', url = '/', headers, socket } = req;
    response = await ask({ method, url, headers, address: socket?.remoteAddress });
    // Throws for a body that was sent before.
    body = response.body?.getReader();
  } catch (error) {
    if (next !== undefined) return next(error);
    response = new Response(null, { status: 500 });
  }
  try {
    res.statusCode = response.status;
    response.headers.forEach((value, name) => {
      res.setHeader(name, value);
    });
    if (body !== undefined) await send(body, res);
    res.end();
  } catch {
    res.destroy?.();
  }
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** Ends with the body, or with the connection. */
async function send(reader: Reader, res: NodeLikeResponse): Promise<void> {
  let wakeUp: () => void = () => {};
  let isClosed = false;
  res.once('close', () => {
    isClosed = true;
    wakeUp();
    reader.cancel().catch(() => {});
  });
  for (let part = await reader.read(); !part.done && !isClosed; part = await reader.read()) {
    if (res.write(part.value) || isClosed) continue;
    await new Promise<void>((resolve) => {
      wakeUp = resolve;
      res.once('drain', resolve);
    });
  }
}
