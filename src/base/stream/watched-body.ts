/** A response body that tells when its source has ended; of a short one also when nobody reads it. */
import { ReadAhead } from './read-ahead.js';

/** `isSent`: to the last byte. Otherwise it was cancelled, or failed with `error`. */
type Ended = (isSent: boolean, error?: unknown) => void;

export interface WatchedBody {
  /** To be sent in place of the one watched. */
  readonly stream: ReadableStream<Uint8Array>;
  /** Fails the stream, and tells its source to stop; `ended` is not called for that. */
  stop(reason: unknown): void;
}

/** Calls `ended` once at most. `awaitReader`: somebody has to read now, or no longer. */
export function watchedBody(
  body: ReadableStream<Uint8Array>,
  ended: Ended,
  awaitReader?: (isAwaited: boolean) => void,
): WatchedBody {
  let isOver = false;

  const end: Ended = (isSent, error) => {
    if (isOver) return;
    isOver = true;
    awaitReader?.(false);
    ended(isSent, error);
  };
  const ahead = new ReadAhead(body.getReader(), [], { over: end });
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        awaitReader?.(false);
        await ahead.pull(controller);
        awaitReader?.(!isOver);
      },
      cancel(reason) {
        end(false);
        return ahead.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  awaitReader?.(!isOver);
  return { stream, stop: (reason) => ahead.stop(reason) };
}
