/** Errors of the gateway itself, in the body that clients of OpenAI's interface parse. Drops have their own bodies. */
import type { ServerResponse } from 'node:http';

/** An answer that the client can act on. `message` is shown to it. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/** The gateway does not read a larger body to its end before it answers with an error. */
export const uploadEnds = { connection: 'close' } as const;

/** Does nothing once an answer has begun. */
export function sendError(res: ServerResponse, { status, code, message, headers }: ApiError): void {
  if (res.headersSent || res.writableEnded) return;
  const type = status === 401 ? 'authentication_error' : status < 500 ? 'invalid_request_error' : 'server_error';
  sendJson(res, status, { error: { message, type, param: null, code } }, headers);
}

/** A `Buffer` is JSON already. */
export function sendJson(res: ServerResponse, status: number, body: unknown, headers: ApiError['headers'] = {}): void {
  const text = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  const own = { 'content-type': 'application/json', 'content-length': text.length, 'cache-control': 'no-store' };
  res.writeHead(status, { ...own, ...headers }).end(text);
}
