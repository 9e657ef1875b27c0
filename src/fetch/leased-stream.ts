/**
 * A stream that passes through untouched while it holds a lease. It never reads ahead: it takes a chunk when the reader
 * asks for one.
 *
 * Invariant: nothing that outlives the reader refers to the stream, so that one that nobody reads can be collected; the
 * lease is given back then. The lease end, the source's reader and the registry know nothing of the stream. The
 * registry drops the lease end when it is over, because the abort reason of a caller may refer to the stream, for
 * instance by the stack of an error.
 */
import type { LeaseEnd } from './lease-end.js';

/** Streams that were collected before they ended. */
export interface UnreadCount {
  unread: number;
}

interface Watched {
  readonly end: LeaseEnd<unknown>;
  readonly counts: UnreadCount;
}

/** In runtimes without a FinalizationRegistry an answer must be read or cancelled. */
const registry: FinalizationRegistry<Watched> | undefined =
  typeof FinalizationRegistry === 'undefined' ? undefined : new FinalizationRegistry(collected);

function collected({ end, counts }: Watched): void {
  if (end.isOver) return;
  counts.unread += 1;
  end.abort(new DOMException('Nobody read the answer', 'AbortError'));
}

/** `held` was read from the source before. */
export function leasedStream<T>(
  source: ReadableStreamDefaultReader<T>,
  held: T[],
  end: LeaseEnd<T>,
  counts: UnreadCount,
): ReadableStream<T> {
  const stream = new ReadableStream<T>(
    {
      async pull(controller) {
        try {
          const { done, value } = held.length > 0 ? { done: false, value: held.shift() as T } : await source.read();
          if (end.signal.aborted) throw end.signal.reason;
          if (done) {
            end.settle();
            controller.close();
            return;
          }
          end.pass(value as T);
          controller.enqueue(value as T);
        } catch (error) {
          end.settle();
          controller.error(end.signal.aborted ? end.signal.reason : error);
        }
      },
      cancel(reason) {
        // Without an abort, which would fail the source before it can be cancelled.
        end.settle();
        return source.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  if (end.isOver) return stream;
  registry?.register(stream, { end, counts } as Watched, end);
  end.onOver = () => registry?.unregister(end);
  return stream;
}
