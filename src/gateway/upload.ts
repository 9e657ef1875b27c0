/**
 * The body of one request as its client sends it. A client that stops sending, or sends next to nothing, is not waited for: it may hold
 * a seat, a place in a queue or memory meanwhile. Only time in which the client was to send counts, not time in which nobody read.
 */
import type { IncomingMessage } from 'node:http';
import { ApiError, uploadEnds } from './api-error.js';

export interface UploadLimits {
  /** The longest silence, ms; also how long an upload may be slower than `minBytesPerSecond` at its beginning. */
  readonly idleMs: number;
  readonly minBytesPerSecond: number;
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
   * Hands over all that arrives, as it arrives: without a promise for the whole and a timer for each piece, for who takes everything at
   * once. `done` is called once: at the end, or with the error that `next` would reject with, or that `take` throws; the rest is not read
   * then.
   */
  receive(take: (chunk: Buffer) => void, done: (error?: unknown) => void): void {
    const { req, limits } = this;
    const startedAtMs = performance.now();
    const timer = setTimeout(() => fail(tooSlow()), limits.idleMs);
    const settle = (): void => {
      clearTimeout(timer);
      req.off('data', receive).off('end', end).off('error', fail).off('close', left);
    };
    const fail = (error: unknown): void => {
      settle();
      req.pause();
      done(error);
    };
    const end = (): void => {
      settle();
      done();
    };
    const left = (): void => fail(req.errored ?? new Error('The client left'));
    const receive = (chunk: Buffer): void => {
      timer.refresh();
      this.bytes += chunk.length;
      this.waitedMs = performance.now() - startedAtMs;
      try {
        if (this.isTooSlow()) throw tooSlow();
        take(chunk);
      } catch (error) {
        fail(error);
      }
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
