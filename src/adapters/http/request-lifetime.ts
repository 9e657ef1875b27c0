/** Holds the lease of a request until its response has ended, and tells the lease how it ended. */

import type { StopWatching } from '../../base/stream/upload-watch.js';
import type { Lease } from '../../index.js';
import type { Exchange } from './exchange.js';

export class RequestLifetime<Req> {
  readonly exchange: Exchange<Req>;
  /** The response has ended, sent or not. */
  isOver = false;
  /** While it waits. */
  waiting: AbortController | undefined = undefined;
  /** Once it was dispatched. */
  lease: Lease | undefined = undefined;
  /** While its body is to come. */
  stopWatching: StopWatching | undefined = undefined;
  private readonly isReleasedAtEnd: boolean;

  constructor(exchange: Exchange<Req>, isReleasedAtEnd: boolean) {
    this.exchange = exchange;
    this.isReleasedAtEnd = isReleasedAtEnd;
    exchange.onEnd((isSent) => this.end(isSent));
  }

  /** Aborts when the response ends first. */
  wait(): AbortSignal {
    this.waiting = new AbortController();
    return this.waiting.signal;
  }

  private end(isSent: boolean): void {
    this.isOver = true;
    this.stopWatching?.();
    if (!isSent) this.lease?.abort(this.exchange.failure());
    if (this.exchange.endsInsideRuntime) setImmediate(() => this.giveBack());
    else this.giveBack();
  }

  /** May start the next handler. */
  private giveBack(): void {
    this.waiting?.abort('the client left');
    if (this.isReleasedAtEnd) this.lease?.release();
  }
}
