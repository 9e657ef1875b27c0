// The denque semaphore, as one would write it by hand around `run(job)`. Jobs start in the context of whoever freed the
// seat.
import { AbortWatch } from './bounds/abort-watch.mjs';
import { waitingLine } from './bounds/waiting-lines.mjs';

class DenqueSemaphore {
  #free;
  #line;
  #aborts;

  constructor(shape) {
    this.#free = shape.concurrency;
    this.#line = waitingLine(shape);
    this.#aborts = shape.abort ? new AbortWatch() : undefined;
  }

  submit(job, options = {}) {
    return new Promise((resolve, reject) => {
      const entry = { job, resolve, reject, signal: undefined, isGone: false };
      if (this.#free > 0) {
        this.#free--;
        void this.#run(entry);
        return;
      }
      this.#line.push(entry, options);
      if (options.signal !== undefined) this.#aborts.watch(entry, options.signal);
    });
  }

  async #run(entry) {
    try {
      entry.resolve(await entry.job());
    } catch (error) {
      entry.reject(error);
    }
    const next = this.#next();
    if (next === undefined) this.#free++;
    else void this.#run(next);
  }

  #next() {
    let entry = this.#line.shift();
    if (this.#aborts === undefined) return entry;
    while (entry?.isGone) entry = this.#line.shift();
    if (entry !== undefined) this.#aborts.unwatch(entry);
    return entry;
  }

  keyCount() {
    return this.#line.keyCount;
  }

  close() {}
}

export default {
  name: 'denque',
  kind: 'bound',
  note: 'a denque semaphore, run(job) style',
  caps: { priority: true, abort: true, keys: true },
  create: (shape) => new DenqueSemaphore(shape),
};
