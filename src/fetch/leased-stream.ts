/**
 * A stream that holds a lease until its source has ended, which is known of a short answer although nobody reads it.
 * Invariant: nothing that outlives the reader refers to the stream, so that an unread one can be collected, which gives
 * the lease back. The registry drops a lease end that is over, because a caller's abort reason may refer to the stream,
 * for instance by the stack of an error.
 */
import { type PieceSource, ReadAhead } from '../base/stream/read-ahead.js';
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

export function leasedStream<T>(
  source: PieceSource<T>,
  first: readonly T[],
  end: LeaseEnd<T>,
  counts: UnreadCount,
): ReadableStream<T> {
  const ahead = new ReadAhead<T>(source, first, { came: (piece) => end.pass(piece), over: () => end.settle() });
  const stream = new ReadableStream<T>(
    {
      async pull(controller) {
        // The whole answer may be here, and its lease be over.
        if (end.caller?.aborted) controller.error(end.caller.reason);
        else await ahead.pull(controller);
      },
      cancel(reason) {
        // Without an abort, which would fail the source before it can be cancelled.
        end.settle();
        return ahead.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  if (end.isOver) return stream;
  registry?.register(stream, { end, counts } as Watched, end);
  end.onOver = () => {
    registry?.unregister(end);
    if (end.signal.aborted) ahead.stop(end.signal.reason);
  };
  return stream;
}
