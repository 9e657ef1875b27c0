/**
 * Reads the usage out of a model's stream while it passes, and keeps the lease informed: at the first token, and at the
 * end.
 */
import type { Lease } from '../../index.js';
import type { AnswerReader } from '../lease-end.js';
import { isContent, type StreamPart, usageOf } from './language-model.js';

/** A lease is told of tokens when so many came since. */
const reportEvery = 32;

export class StreamUsage<P extends StreamPart> implements AnswerReader<P> {
  private readonly lease: Lease;
  private pieces = 0;
  private reported = 0;
  private isTold = false;

  constructor(lease: Lease) {
    this.lease = lease;
  }

  push(part: P): void {
    if (part.type === 'finish' && part.usage !== undefined) {
      const usage = usageOf(part.usage);
      this.isTold = usage.completionTokens !== undefined;
      this.lease.report(usage);
    } else if (isContent(part)) {
      this.pieces += 1;
      if (this.pieces === 1 || this.pieces - this.reported >= reportEvery) this.report();
    }
  }

  end(): void {
    if (!this.isTold && this.pieces > this.reported) this.report();
  }

  /** About one token in each piece, until the provider tells. */
  private report(): void {
    this.reported = this.pieces;
    this.lease.report({ completionTokens: this.pieces });
  }
}
