/**
 * The end of one lease. Invariant: the lease is released exactly once, at the first of these: the answer ends, is
 * cancelled or fails; the caller aborts; an eviction; a time limit; an answer that nobody read is garbage collected.
 *
 *   caller's signal ─┐
 *   lease.signal ────┼─► abort ─► signal (of the work) ─► settle ─► usage told, lease released, listeners gone
 *   time limits ─────┘
 */
import { letProcessEnd } from '../base/clock.js';
import { type PieceSource, ReadAhead } from '../base/stream/read-ahead.js';
import { whenAborted } from '../base/when-aborted.js';
import type { Clock, Lease } from '../index.js';

/** Reads the answer while it passes. */
export interface AnswerReader<T> {
  push(chunk: T): void;
  end(): void;
}

export class LeaseEnd<T> {
  readonly lease: Lease;
  readonly caller: AbortSignal | undefined;
  isOver = false;
  /** The answer is the caller's, and holds the lease. Written by whoever passes it on. */
  isAnswered = false;
  reader: AnswerReader<T> | undefined = undefined;
  onOver: (() => void) | undefined = undefined;
  private readonly work = new AbortController();
  private clock: Clock | undefined = undefined;
  private idleTimer: unknown = undefined;
  private passedAtMs = 0;
  private readonly stopListening: readonly (() => void)[];

  constructor(lease: Lease, caller: AbortSignal | undefined) {
    this.lease = lease;
    this.caller = caller;
    const abort = (reason: unknown): void => this.abort(reason);
    this.stopListening = [lease.signal, caller].map((signal) => (signal ? whenAborted(signal, abort) : () => {}));
  }

  /** For the work that holds the lease. */
  get signal(): AbortSignal {
    return this.work.signal;
  }

  /** Stops the work, and gives the seat of an answer back. Before one, the work ends by itself or is put back. */
  abort(reason: unknown): void {
    if (this.isOver) return;
    this.work.abort(reason);
    if (this.isAnswered) this.settle();
  }

  /** From now on the work ends when nothing of its answer passes for `idleMs`. */
  awaitPieces(clock: Clock, idleMs: number): void {
    if (idleMs === Infinity || this.clock !== undefined) return;
    this.clock = clock;
    this.passedAtMs = clock.now();
    this.awaitPiece(idleMs, idleMs);
  }

  pass(piece: T): void {
    if (this.clock !== undefined) this.passedAtMs = this.clock.now();
    this.reader?.push(piece);
  }

  private awaitPiece(idleMs: number, delayMs: number): void {
    this.idleTimer = this.clock?.setTimeout(() => {
      const leftMs = this.passedAtMs + idleMs - (this.clock?.now() ?? 0);
      if (leftMs > 0) this.awaitPiece(idleMs, leftMs);
      else this.abort(new DOMException('Nothing of the answer passed for too long', 'TimeoutError'));
    }, delayMs);
    // The connection keeps the process alive while something may come; an answer that nobody reads must not.
    letProcessEnd(this.idleTimer);
  }

  settle(): void {
    if (!this.leave()) return;
    this.reader?.end();
    this.lease.release();
  }

  /** Ends without giving the seat back, for a lease that is put back into the queue. False when it has ended before. */
  leave(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.onOver?.();
    this.clock?.clearTimeout(this.idleTimer);
    for (const stop of this.stopListening) stop();
    return true;
  }
}

/** Streams that were collected before they ended. */
export type UnreadCount = { unread: number };

type Watched = { readonly end: LeaseEnd<unknown>; readonly counts: UnreadCount };

/** In runtimes without a FinalizationRegistry an answer must be read or cancelled. */
const registry: FinalizationRegistry<Watched> | undefined =
  typeof FinalizationRegistry === 'undefined' ? undefined : new FinalizationRegistry(collected);

function collected({ end, counts }: Watched): void {
  if (end.isOver) return;
  counts.unread += 1;
  end.abort(new DOMException('Nobody read the answer', 'AbortError'));
}

/**
 * Holds a lease until its source has ended, known of a short answer though nobody reads it. Invariant: nothing that
 * outlives the reader refers to the stream, so that an unread one is collected, which gives the lease back.
 */
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
