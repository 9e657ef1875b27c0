/**
 * Finds out when a response is over, whatever ended it. The one place that knows which events Node really sends:
 * `close` of the response tells of every end but these.
 * - One that came before anybody listened: the state is looked at first.
 * - HTTP/1: a response pipelined behind another never hears that its connection closed (Node 20, 22): the socket tells.
 * - HTTP/2: a response without a body to a request whose upload goes on; and a stream that the client closed without an
 *   error while data was waiting to be sent (both Node 20 to 24): the stream tells, or is destroyed.
 */
import type { ServerHttp2Stream } from 'node:http2';
import { put } from '../../base/put.js';
import { type Linked, LinkedList } from '../../base/queues/linked-list.js';
import { http2StreamOf, type NodeRequest, type NodeResponse } from './node-request.js';

type Done = (isSent: boolean) => void;

/** Calls `done` once when the response ends, or at once if it has. `isSent`: it was sent to its last byte. */
export function onResponseEnd(req: NodeRequest, res: NodeResponse, done: Done): void {
  const stream = http2StreamOf(req);
  if (stream === undefined) onHttp1End(req, res, done);
  else onHttp2End(req, res, stream, done);
}

/** Express gives each response its own hidden class, so each property costs a lookup: few are read (bench: http). */
function onHttp1End(req: NodeRequest, res: NodeResponse, done: Done): void {
  const { socket } = req;
  // A response that is closed is also destroyed.
  if (res.destroyed || socket.destroyed) return void done(res.writableFinished);
  let waiters: Set<() => void> | undefined;
  let isOver = false;
  const finish = (): void => {
    if (isOver) return;
    isOver = true;
    res.removeListener('close', finish);
    waiters?.delete(finish);
    done(res.writableFinished);
  };
  // Not `once`: its wrapper would cost three times the listener (bench: http).
  res.on('close', finish);
  if (res.socket !== null) return;
  waiters = waitersOf(socket);
  waiters.add(finish);
}

function onHttp2End(req: NodeRequest, res: NodeResponse, stream: ServerHttp2Stream, done: Done): void {
  // HTTP/2 says writableFinished of a stream that the client reset; writableEnded tells the two apart.
  const isSent = (): boolean => res.writableEnded && res.writableFinished;
  if (res.closed || res.destroyed || req.socket.destroyed) return void done(isSent());
  const finish = (): void => {
    res.removeListener('close', finish);
    stream.removeListener('finish', finish).removeListener('aborted', finish);
    done(isSent());
  };
  res.on('close', finish);
  stream.on('finish', finish).on('aborted', finish);
  destroyIfStuck(stream);
}

type Socket = NodeRequest['socket'];

const waitersBySocket = new WeakMap<Socket, Set<() => void>>();

/** What to call when the socket closes: one listener per socket, however many responses are pipelined on it. */
function waitersOf(socket: Socket): Set<() => void> {
  const known = waitersBySocket.get(socket);
  if (known !== undefined) return known;
  const waiters = put(waitersBySocket, socket, new Set<() => void>());
  socket.once('close', () => {
    for (const finish of [...waiters]) finish();
  });
  return waiters;
}

/** Open streams are looked at so often. */
const intervalMs = 1_000;

class OpenStream implements Linked<OpenStream> {
  previous: OpenStream | undefined = undefined;
  next: OpenStream | undefined = undefined;
  /** When it was last looked at. */
  wasStuck = false;
  readonly stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream) {
    this.stream = stream;
  }
}

const openStreams = new LinkedList<OpenStream>();
const known = new WeakSet<ServerHttp2Stream>();
let timer: ReturnType<typeof setInterval> | undefined;

/**
 * Finds HTTP/2 streams that a client closed with NO_ERROR while data waits: Node (20 to 24) never ends them, and leases
 * would be held. Open streams are looked at once a second; one that was stuck twice is destroyed.
 */
export function destroyIfStuck(stream: ServerHttp2Stream): void {
  if (known.has(stream)) return;
  const open = new OpenStream(stream);
  known.add(stream);
  openStreams.push(open);
  stream.once('close', () => {
    openStreams.remove(open);
    if (openStreams.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  });
  timer ??= setInterval(look, intervalMs).unref();
}

function look(): void {
  for (const open of openStreams) {
    const { stream, wasStuck } = open;
    open.wasStuck = stream.closed && !stream.writableFinished;
    // Its `close` comes in a later turn.
    if (open.wasStuck && wasStuck) stream.destroy();
  }
}
