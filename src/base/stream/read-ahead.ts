/**
 * Takes pieces of a stream ahead, up to a bound: a short answer's end is known, and its seat free, though nobody reads.
 *
 *   source ─► at most `mostHeldBytes` ─► pull, when somebody reads
 *
 * Invariant: it refers to the stream that it feeds only while somebody reads that, so that it can be collected.
 */

/** The part of a stream's reader that is used. */
export interface PieceSource<T> {
  read(): Promise<{ readonly done: boolean; readonly value?: T | undefined }>;
  cancel(reason?: unknown): Promise<void>;
}

export interface PieceListener<T> {
  /** A piece came from the source. An exception ends the stream as a failure. */
  readonly came?: ((piece: T) => void) | undefined;
  /** Once, unless `stop` or `cancel` was called: the source has ended, or has failed with `error`. */
  over?(isWhole: boolean, error?: unknown): void;
}

const mostHeldBytes = 65_536;
/** What a piece costs beside its bytes, so that crumbs count; and about what an object of one token costs. */
const bytesPerPiece = 64;

export class ReadAhead<T> {
  private readonly source: PieceSource<T>;
  private readonly listener: PieceListener<T>;
  private readonly held: T[] = [];
  private heldBytes = 0;
  private isReading = false;
  /** Nothing comes any more. */
  private isOver = false;
  private failure: { readonly error: unknown } | undefined = undefined;
  private isCancelled = false;
  private wake: (() => void) | undefined = undefined;

  /** `first` was read from the source before. */
  constructor(source: PieceSource<T>, first: readonly T[], listener: PieceListener<T>) {
    this.source = source;
    this.listener = listener;
    for (const piece of first) this.hold(piece);
    void this.fill();
  }

  /** Gives the reader of a stream its next piece; or its end, or the failure of the source, once nothing is held. */
  async pull(controller: ReadableStreamDefaultController<T>): Promise<void> {
    while (!this.isOver && this.held.length === 0) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
    if (this.isCancelled) return;
    const piece = this.held.shift();
    if (piece !== undefined) {
      this.heldBytes -= bytesOf(piece);
      controller.enqueue(piece);
      void this.fill();
    } else if (this.failure !== undefined) controller.error(this.failure.error);
    if (this.isOver && this.failure === undefined && this.held.length === 0) controller.close();
  }

  /** Drops what is held; whoever reads next gets the reason. */
  stop(reason: unknown): void {
    if (this.isCancelled) return;
    this.held.length = 0;
    this.end({ error: reason });
    this.leave(reason);
  }

  /** For a reader that wants no more. */
  cancel(reason: unknown): Promise<void> {
    this.isCancelled = true;
    this.held.length = 0;
    this.end(undefined);
    return this.source.cancel(reason);
  }

  private async fill(): Promise<void> {
    if (this.isReading) return;
    this.isReading = true;
    try {
      while (!this.isOver && this.heldBytes < mostHeldBytes) {
        const { done, value } = await this.source.read();
        if (this.isOver) return;
        if (done) {
          this.listener.over?.(true);
          this.end(undefined);
        } else this.hold(value as T);
      }
    } catch (error) {
      if (this.isOver) return;
      this.listener.over?.(false, error);
      this.end({ error });
      this.leave(error);
    } finally {
      this.isReading = false;
    }
  }

  private hold(piece: T): void {
    this.listener.came?.(piece);
    this.held.push(piece);
    this.heldBytes += bytesOf(piece);
    this.wake?.();
    this.wake = undefined;
  }

  /** A failure of the source is of no interest any more. */
  private leave(reason: unknown): void {
    this.source.cancel(reason).catch(() => {});
  }

  private end(failure: { readonly error: unknown } | undefined): void {
    this.isOver = true;
    this.failure = failure;
    this.wake?.();
    this.wake = undefined;
  }
}

/** A stream of `first`, and of what the source has after it. */
export function streamAhead<T>(
  source: PieceSource<T>,
  first: readonly T[],
  listener: PieceListener<T>,
): ReadableStream<T> {
  const ahead = new ReadAhead(source, first, listener);
  return new ReadableStream<T>(
    { pull: (controller) => ahead.pull(controller), cancel: (reason) => ahead.cancel(reason) },
    { highWaterMark: 0 },
  );
}

function bytesOf(piece: unknown): number {
  return bytesPerPiece + (ArrayBuffer.isView(piece) ? piece.byteLength : 0);
}
