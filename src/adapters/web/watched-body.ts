/**
 * A response body that tells when it ends: when the handler's stream has, which is known of a short one although nobody
 * reads it. If nobody reads a longer one for a minute, it is broken off, because middleware may have thrown the
 * response away, and no runtime tells of that.
 */
import { letProcessEnd } from '../../base/clock.js';
import { ReadAhead } from '../../base/stream/read-ahead.js';

/** Longer than any reader pauses that is still there. */
const unreadMs = 60_000;

/** `isSent`: to the last byte. Otherwise it was cancelled, or failed with `error`. */
type Ended = (isSent: boolean, error?: unknown) => void;

export class WatchedBody {
  /** To be sent in place of the one watched. */
  readonly stream: ReadableStream<Uint8Array>;
  private readonly ahead: ReadAhead<Uint8Array>;
  private readonly ended: Ended;
  private isOver = false;
  private unread: unknown = undefined;

  /** Calls `ended` once. */
  constructor(body: ReadableStream<Uint8Array>, ended: Ended) {
    this.ended = ended;
    this.ahead = new ReadAhead(body.getReader(), [], { over: (isSent, error) => this.end(isSent, error) });
    this.stream = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => this.pull(controller),
        cancel: (reason) => {
          this.end(false);
          return this.ahead.cancel(reason);
        },
      },
      { highWaterMark: 0 },
    );
    this.awaitReader();
  }

  /** Fails the stream, and tells its source to stop. */
  abortResponse(reason: unknown): void {
    if (this.isOver) return;
    this.end(false, reason);
    this.ahead.stop(reason);
  }

  private awaitReader(): void {
    if (this.isOver) return;
    const abort = (): void => this.abortResponse(new DOMException('Nobody reads the response', 'TimeoutError'));
    this.unread = letProcessEnd(setTimeout(abort, unreadMs));
  }

  private async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.stopTimer();
    await this.ahead.pull(controller);
    this.awaitReader();
  }

  private end(isSent: boolean, error?: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    this.stopTimer();
    this.ended(isSent, error);
  }

  private stopTimer(): void {
    clearTimeout(this.unread as ReturnType<typeof setTimeout> | undefined);
  }
}
