/**
 * Finds HTTP/2 streams that are over although Node does not say so. When a client closes a stream with NO_ERROR while
 * data waits to be sent, Node (20 to 24) neither sends that data nor ends the stream. A client could hold leases that
 * way, by asking, not reading, and closing. No event tells of it, so open streams are looked at once a second, and one
 * that was stuck twice is destroyed, which makes Node say `close`.
 */
import type { ServerHttp2Stream } from 'node:http2';
import { type Linked, LinkedList } from '../../base/queues/linked-list.js';

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

/** Watches the stream until it closes. O(1), and O(open streams) once a second. */
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
