/** Clients that can leave at any point, for both protocols. */
import http from 'node:http';
import http2 from 'node:http2';
import { connect, type Socket } from 'node:net';
import type { Writable } from 'node:stream';
import type { Host } from './application.js';
import { deferred, within } from './until.js';

interface RequestOptions {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  /** Sent and ended. Without it and without `upload` there is no body. */
  readonly body?: string;
  /** Leaves the body open; write to `exchange.upload`. */
  readonly upload?: boolean;
}

/** One request and what came of it. */
interface Exchange {
  readonly status: Promise<number>;
  readonly headers: Promise<Record<string, string>>;
  /** The whole body. Rejects when the response breaks off. */
  readonly text: Promise<string>;
  readonly upload: Writable;
  /** What has come of the body so far. */
  received(): string;
  /** Stops reading the response. */
  pause(): void;
  /** Closes the connection, or resets the stream with `code`. */
  leave(code?: number): void;
}

export interface Client {
  request(options?: RequestOptions): Exchange;
  close(): void;
}

export function clientFor(host: Host, port: number): Client {
  return host.protocol === 'http1' ? http1Client(port) : http2Client(port);
}

/** A connection for every request at a time. */
function http1Client(port: number): Client {
  const agent = new http.Agent({ keepAlive: true });
  return {
    request({ method, path = '/', headers = {}, body, upload = false } = {}) {
      const verb = method ?? (body !== undefined || upload ? 'POST' : 'GET');
      const req = http.request({ port, method: verb, path, headers, agent });
      const exchange = collect(req, (onHead, onData, onEnd, onError) => {
        req.on('response', (res) => {
          onHead(res.statusCode ?? 0, res.headers as Record<string, string>);
          res.on('data', onData).on('end', onEnd).on('error', onError);
        });
        req.on('error', onError).on('close', () => onError(new Error('closed')));
      });
      if (upload) req.flushHeaders();
      else req.end(body);
      return { ...exchange, upload: req, pause: () => void req.socket?.pause(), leave: () => void req.destroy() };
    },
    close: () => agent.destroy(),
  };
}

/** All requests as streams of one session. */
function http2Client(port: number): Client {
  const session = http2.connect(`http://localhost:${port}`);
  session.on('error', () => {});
  return {
    request({ method, path = '/', headers = {}, body, upload = false } = {}) {
      const hasBody = body !== undefined || upload;
      const verb = method ?? (hasBody ? 'POST' : 'GET');
      const stream = session.request({ ':method': verb, ':path': path, ...headers }, { endStream: !hasBody });
      const exchange = collect(stream, (onHead, onData, onEnd, onError) => {
        stream.on('response', (head) => onHead(head[':status'] ?? 0, head as Record<string, string>));
        stream.on('data', onData).on('end', onEnd).on('error', onError);
        stream.on('close', () => onError(new Error('closed')));
      });
      if (body !== undefined) stream.end(body);
      return {
        ...exchange,
        upload: stream,
        pause: () => void stream.pause(),
        leave: (code = http2.constants.NGHTTP2_CANCEL) => stream.close(code),
      };
    },
    close: () => session.destroy(),
  };
}

type Subscribe = (
  onHead: (status: number, headers: Record<string, string>) => void,
  onData: (chunk: Buffer) => void,
  onEnd: () => void,
  onError: (error: Error) => void,
) => void;

function collect(upload: Writable, subscribe: Subscribe): Omit<Exchange, 'leave' | 'pause'> {
  let received = '';
  const head = deferred<{ status: number; headers: Record<string, string> }>();
  const text = deferred<string>();
  subscribe(
    (status, headers) => head.resolve({ status, headers }),
    (chunk) => {
      received += chunk.toString();
    },
    () => text.resolve(received),
    (error) => {
      head.reject(error);
      text.reject(error);
    },
  );
  // Who leaves does not look at the rest.
  head.promise.catch(() => {});
  text.promise.catch(() => {});
  const status = head.promise.then(({ status }) => status);
  const headers = head.promise.then(({ headers }) => headers);
  status.catch(() => {});
  headers.catch(() => {});
  return {
    status: watched('status', status),
    headers: watched('headers', headers),
    text: watched('body', text.promise),
    upload,
    received: () => received,
  };
}

function watched<T>(what: string, promise: Promise<T>): Promise<T> {
  const limited = within(what, promise);
  limited.catch(() => {});
  return limited;
}

/** Bytes on a connection, for what no HTTP client would do: pipelining, half requests. */
export interface RawConnection {
  readonly socket: Socket;
  received(): string;
  isClosed(): boolean;
}

export function rawConnection(port: number): RawConnection {
  const socket = connect(port);
  let received = '';
  let closed = false;
  socket.setNoDelay(true);
  socket.on('data', (chunk) => {
    received += chunk.toString();
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    closed = true;
  });
  return { socket, received: () => received, isClosed: () => closed };
}
