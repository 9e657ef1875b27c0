/**
 * HTTP/2 streams that are over and do not know it: when a client closes a stream with NO_ERROR while the response has data waiting
 * to be sent, Node (20 to 24) neither sends that data nor ends the stream. A client could hold leases that way, by asking, not
 * reading, and closing. No event tells of it, so open streams are looked at once a second, and one that was stuck twice is destroyed,
 * which makes Node say `close`.
 */
import type { ServerHttp2Stream } from 'node:http2';

const intervalMs = 1_000;
/** Open streams, and whether each was stuck when last looked at. */
const openStreams = new Map<ServerHttp2Stream, boolean>();
let timer: ReturnType<typeof setInterval> | undefined;

/** Watches the stream until it closes. O(1), and O(open streams) once a second. */
export function destroyIfStuck(stream: ServerHttp2Stream): void {
  if (openStreams.has(stream)) return;
  openStreams.set(stream, false);
  stream.once('close', () => {
    openStreams.delete(stream);
    if (openStreams.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  });
  timer ??= setInterval(look, intervalMs).unref();
}

function look(): void {
  for (const [stream, wasStuck] of openStreams) {
    const isStuck = stream.closed && !stream.writableFinished;
    if (isStuck && wasStuck) stream.destroy();
    else openStreams.set(stream, isStuck);
  }
}
