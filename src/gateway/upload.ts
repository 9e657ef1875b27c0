/**
 * The body of one request as its client sends it. A client that stops sending, or sends next to nothing, is not waited
 * for: it may hold a seat, a place in a queue or memory meanwhile. Only time in which the client was to send counts,
 * not time in which nobody read.
 */
import type { IncomingMessage } from 'node:http';
import { ApiError, uploadEnds } from './api-error.js';
import type { ScanBudget } from './scan-budget.js';

export interface UploadLimits {
  /** The longest silence, ms; also how long an upload may be slower than `minBytesPerSecond` at its beginning. */
  readonly idleMs: number;
  readonly minBytesPerSecond: number;
}

/** The receiver of the pieces of a body. */
export interface PieceReceiver {
  /** Called for each piece when it arrives; may throw. */
  arrived(chunk: Buffer): void;
  /** Called for each piece that has arrived, in order, perhaps in a later turn; may throw. */
  readonly look: ((chunk: Buffer) => void) | undefined;
  done(error?: unknown): void;
}

export class Upload {
  private readonly req: IncomingMessage;
  private readonly limits: UploadLimits;
  private bytes = 0;
  private waitedMs = 0;

  constructor(req: IncomingMessage, limits: UploadLimits) {
    this.req = req;
    this.limits = limits;
  }

  /**
   * The bytes that have arrived, at least one; undefined at the end.
   * @throws (rejects) ApiError 408 when the client does not send; what the stream fails with when the client leaves
   */
  next(): Promise<Buffer | undefined> {
    const { req, limits } = this;
    const startedAtMs = performance.now();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => settle(() => reject(tooSlow())), limits.idleMs);
      const settle = (tell: () => void): void => {
        clearTimeout(timer);
        req.off('readable', look).off('end', look).off('error', fail).off('close', look);
        this.waitedMs += performance.now() - startedAtMs;
        tell();
      };
      const fail = (error: Error): void => settle(() => reject(error));
      const look = (): void => {
        const chunk: Buffer | null = req.read();
        if (chunk !== null) {
          this.bytes += chunk.length;
          settle(() => (this.isTooSlow() ? reject(tooSlow()) : resolve(chunk)));
        } else if (req.readableEnded) {
          settle(() => resolve(undefined));
        } else if (req.destroyed) {
          settle(() => reject(req.errored ?? new Error('The client left')));
        }
      };
      req.on('readable', look).on('end', look).on('error', fail).on('close', look);
      look();
    });
  }

  /**
   * Hands over each piece as it arrives, without a promise for the whole and a timer for each piece; for a receiver
   * that takes everything at once. Pieces are looked at when `scans` allows it; while one waits, no more is read.
   * `done` is called once: at the end, or with the error that `next` would reject with, or that the receiver throws;
   * the rest is not read then.
   */
  receive({ arrived, look, done }: PieceReceiver, scans: ScanBudget): void {
    const { req, limits } = this;
    let startedAtMs = performance.now();
    let isOver = false;
    let waitsForTurn = false;
    const timer = setTimeout(() => (waitsForTurn ? timer.refresh() : fail(tooSlow())), limits.idleMs);
    const settle = (): void => {
      isOver = true;
      clearTimeout(timer);
      req.off('data', receive).off('end', end).off('error', fail).off('close', left);
    };
    const fail = (error: unknown): void => {
      settle();
      req.pause();
      done(error);
    };
    // Node may tell of the end, and then of the close, of a stream that is paused because its last piece waits.
    const end = (): void => {
      if (waitsForTurn) return;
      settle();
      done();
    };
    const left = (): void => {
      if (!waitsForTurn || !req.readableEnded) fail(req.errored ?? new Error('The client left'));
    };
    const receive = (chunk: Buffer): void => {
      timer.refresh();
      this.bytes += chunk.length;
      this.waitedMs = performance.now() - startedAtMs;
      try {
        if (this.isTooSlow()) throw tooSlow();
        arrived(chunk);
        if (look === undefined || scans.spend(chunk.length)) look?.(chunk);
        else waitForTurn(chunk, look);
      } catch (error) {
        fail(error);
      }
    };
    const waitForTurn = (chunk: Buffer, lookAt: (chunk: Buffer) => void): void => {
      const sinceMs = performance.now();
      waitsForTurn = true;
      req.pause();
      scans.wait(chunk.length, () => {
        if (isOver) return;
        waitsForTurn = false;
        startedAtMs += performance.now() - sinceMs;
        timer.refresh();
        try {
          lookAt(chunk);
        } catch (error) {
          fail(error);
          return;
        }
        if (req.readableEnded) end();
        else req.resume();
      });
    };
    if (req.readableEnded) end();
    else if (req.destroyed) left();
    else req.on('data', receive).on('end', end).on('error', fail).on('close', left);
  }

  private isTooSlow(): boolean {
    const { idleMs, minBytesPerSecond } = this.limits;
    return this.waitedMs > idleMs && this.bytes < (this.waitedMs / 1000) * minBytesPerSecond;
  }
}

function tooSlow(): ApiError {
  return new ApiError(408, 'upload_timeout', 'The request was not received in time.', uploadEnds);
}
