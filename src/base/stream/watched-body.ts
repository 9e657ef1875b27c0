/**
 * A response body that tells when it ends: when its source has, which is known of a short one although nobody reads it.
 * One that nobody reads for too long is broken off, because middleware may have thrown the response away, and no
 * runtime tells of that.
 */
import { letProcessEnd } from '../clock.js';
import { ReadAhead } from './read-ahead.js';

/** `isSent`: to the last byte. Otherwise it was cancelled, or failed with `error`. */
type Ended = (isSent: boolean, error?: unknown) => void;

export interface WatchedBody {
  /** To be sent in place of the one watched. */
  readonly stream: ReadableStream<Uint8Array>;
  /** Fails the stream, and tells its source to stop. */
  abortResponse(reason: unknown): void;
}

/** Calls `ended` once. `unreadMs`: longer than any reader pauses that is still there; Infinity: as long as it takes. */
export function watchedBody(
  body: ReadableStream<Uint8Array>,
  ended: Ended,
  unreadMs: number = Number.POSITIVE_INFINITY,
): WatchedBody {
  let isOver = false;
  let unread: ReturnType<typeof setTimeout> | undefined;

  function end(isSent: boolean, error?: unknown): void {
    if (isOver) return;
    isOver = true;
    clearTimeout(unread);
    ended(isSent, error);
  }
  function abortResponse(reason: unknown): void {
    if (isOver) return;
    end(false, reason);
    ahead.stop(reason);
  }
  function awaitReader(): void {
    if (isOver || unreadMs === Number.POSITIVE_INFINITY) return;
    const abort = (): void => abortResponse(new DOMException('Nobody reads the response', 'TimeoutError'));
    unread = letProcessEnd(setTimeout(abort, unreadMs));
  }

  const ahead = new ReadAhead(body.getReader(), [], { over: end });
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(unread);
        await ahead.pull(controller);
        awaitReader();
      },
      cancel(reason) {
        end(false);
        return ahead.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  awaitReader();
  return { stream, abortResponse };
}
