// The permit bound: the denque semaphore as acquire and release, so that the job runs in its own caller's async
// context.
import { AbortWatch } from './bounds/abort-watch.mjs';
import { waitingLine } from './bounds/waiting-lines.mjs';

export class Permits {
  #free;
  #line;
  #aborts;

  constructor(shape) {
    this.#free = shape.concurrency;
    this.#line = waitingLine(shape);
    this.#aborts = shape.abort ? new AbortWatch() : undefined;
  }

  /** Resolves with the permit, at the latest when `ttlMs` is over: then it rejects with `expired`. */
  acquire(options) {
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
    if (this.#aborts === undefined) return new Promise((resolve) => this.#line.push(resolve, options));
    return new Promise((resolve, reject) => {
      const entry = { resolve, reject, signal: undefined, timer: undefined, isGone: false };
      this.#line.push(entry, options);
      if (options.signal !== undefined) this.#aborts.watch(entry, options.signal);
      if (options.ttlMs !== undefined) entry.timer = setTimeout(expire, options.ttlMs, entry);
    });
  }

  release() {
    if (this.#aborts === undefined) {
      const resolve = this.#line.shift();
      if (resolve === undefined) this.#free++;
      else resolve();
      return;
    }
    let entry = this.#line.shift();
    while (entry?.isGone) entry = this.#line.shift();
    if (entry === undefined) {
      this.#free++;
      return;
    }
    if (entry.signal !== undefined) this.#aborts.unwatch(entry);
    if (entry.timer !== undefined) clearTimeout(entry.timer);
    entry.resolve();
  }

  async submit(job, options = {}) {
    await this.acquire(options);
    try {
      return await job();
    } finally {
      this.release();
    }
  }

  keyCount() {
    return this.#line.keyCount;
  }

  close() {}
}

/** What `acquire` rejects with; one value, because no caller looks at its stack. */
export const expired = new Error('expired');

function expire(entry) {
  entry.isGone = true;
  entry.reject(expired);
}

export default {
  name: 'permit',
  kind: 'bound',
  note: 'the same as acquire and release: the job stays the caller’s own',
  caps: { priority: true, abort: true, keys: true },
  create: (shape) => new Permits(shape),
};
