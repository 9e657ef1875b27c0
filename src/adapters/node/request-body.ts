/** Measures and steers a request's body before the handler reads it. Nothing here takes a byte of it. */
import type { Server } from 'node:http';
import type { UploadState } from '../../base/stream/upload-watch.js';
import { http2StreamOf, type NodeRequest, type NodeResponse } from './node-request.js';
import type { RequestHead } from './request-head.js';

/** Content-Length; 0 without a body; `unknownBodyBytes` for a body of unknown length. */
export function bodyBytes(req: NodeRequest, head: RequestHead, unknownBodyBytes: number): number {
  if (head.contentLength !== undefined) {
    const bytes = Number(head.contentLength);
    return Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : unknownBodyBytes;
  }
  const isOpen = head.isChunked || http2StreamOf(req)?.endAfterHeaders === false;
  return isOpen ? unknownBodyBytes : 0;
}

/**
 * Lets Node read the body ahead while the request waits, up to the bytes that were booked for it. Node stops reading
 * from a connection whose body nobody takes. It then does not notice that the client has left, and a request with a
 * large prompt would wait although nobody needs it. HTTP/2 goes on reading by itself, as far as its window.
 */
export function readAhead(req: NodeRequest, bookedBytes: number): void {
  if (http2StreamOf(req) !== undefined) return;
  // A public way exists only for a whole server, the `highWaterMark` of createServer.
  const state = (req as { _readableState?: { highWaterMark: number } })._readableState;
  if (state === undefined || state.highWaterMark > bookedBytes) return;
  state.highWaterMark = bookedBytes + 1;
  // The sockets of injected requests, as of Fastify's `inject`, cannot be paused.
  const { socket }: { socket: Partial<Pick<NodeRequest['socket'], 'isPaused' | 'resume'>> } = req;
  if (socket.isPaused?.() === true) socket.resume?.();
}

/** HTTP/2 is left alone: Node 20 damaged its heap, and died, where streams were answered amid uploads being read. */
export function uploadState(req: NodeRequest): UploadState {
  if (req.complete || req.destroyed || req.httpVersionMajor > 1) return over;
  if (req.readableLength > 0) return unread;
  // The sockets of injected requests count nothing.
  const { bytesRead }: { bytesRead?: number } = req.socket;
  return bytesRead === undefined ? over : { type: 'coming', bytes: bytesRead };
}

const over: UploadState = { type: 'over' };
const unread: UploadState = { type: 'unread' };

/**
 * Whether a rejection must close the connection, because the client would go on uploading into it. HTTP/2 resets the
 * stream instead. A small body of known length is not worth a reconnect: Node drains it, and most of it has arrived
 * together with the headers.
 */
export function mustCloseToReject(req: NodeRequest, head: RequestHead): boolean {
  return req.httpVersionMajor === 1 && !req.complete && bodyBytes(req, head, Number.POSITIVE_INFINITY) > drainableBytes;
}

const drainableBytes = 16 * 1024;

/**
 * Tells a client that sent `Expect: 100-continue` to go on. Does something only where the host gave `checkContinue` to
 * the handler behind this adapter; otherwise Node has told the client before any handler ran.
 */
export function continueUpload(req: NodeRequest, res: NodeResponse): void {
  // A body that has arrived needs no permission.
  if (res.headersSent || req.complete || continued.has(res)) return;
  const { server } = req.socket as { server?: Pick<Server, 'listenerCount'> };
  if ((server?.listenerCount('checkContinue') ?? 0) === 0) return;
  continued.add(res);
  res.writeContinue();
}

const continued = new WeakSet<NodeResponse>();
