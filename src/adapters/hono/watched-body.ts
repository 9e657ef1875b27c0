/**
 * A response body that tells when it ends. It never reads ahead: it takes a chunk when the reader asks for one. If
 * nobody reads for a minute, the body is broken off, because middleware may have thrown the response away, and no
 * runtime tells of that.
 */

/** Longer than any reader pauses that is still there. */
const unreadMs = 60_000;

/** `isSent`: to the last byte. Otherwise it was cancelled, or failed with `error`. */
type Ended = (isSent: boolean, error?: unknown) => void;

export class WatchedBody {
  /** To be sent in place of the one watched. */
  readonly stream: ReadableStream<Uint8Array>;
  private readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  private readonly ended: Ended;
  private controller: ReadableStreamDefaultController<Uint8Array> | undefined = undefined;
  private isOver = false;
  private unread: ReturnType<typeof setTimeout> | undefined = undefined;

  /** Calls `ended` once. */
  constructor(body: ReadableStream<Uint8Array>, ended: Ended) {
    this.reader = body.getReader();
    this.ended = ended;
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.controller = controller;
        },
        pull: (controller) => this.pull(controller),
        cancel: (reason) => {
          this.end(false);
          return this.reader.cancel(reason);
        },
      },
      { highWaterMark: 0 },
    );
    this.awaitReader();
  }

  /** Fails the stream, and tells its source to stop. */
  abortResponse(reason: unknown): void {
    if (this.isOver) return;
    this.controller?.error(reason);
    this.end(false, reason);
    // Its own failure is of no interest any more.
    this.reader.cancel(reason).catch(() => {});
  }

  private awaitReader(): void {
    this.unread = setTimeout(
      () => this.abortResponse(new DOMException('Nobody reads the response', 'TimeoutError')),
      unreadMs,
    );
    // Deno and browsers have numbers for timers.
    if (typeof this.unread === 'object') this.unread.unref();
  }

  private async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    clearTimeout(this.unread);
    try {
      const { done, value } = await this.reader.read();
      if (this.isOver) return;
      if (!done) {
        controller.enqueue(value);
        this.awaitReader();
        return;
      }
      controller.close();
      this.end(true);
    } catch (error) {
      if (this.isOver) return;
      controller.error(error);
      this.end(false, error);
    }
  }

  private end(isSent: boolean, error?: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.unread);
    this.ended(isSent, error);
  }
}
