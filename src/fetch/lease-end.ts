/**
 * The end of one lease. Invariant: the lease is released exactly once, at the first of these: the answer ends, is
 * cancelled or fails; the caller aborts; an eviction; a time limit; an answer that nobody read is garbage collected.
 *
 *   caller's signal ─┐
 *   lease.signal ────┼─► abort ─► signal (of the work) ─► settle ─► usage told, lease released, listeners gone
 *   time limits ─────┘
 */
import { letProcessEnd } from '../base/clock.js';
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
    this.stopListening = [lease.signal, caller].map((signal) =>
      signal === undefined ? () => {} : whenAborted(signal, abort),
    );
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
