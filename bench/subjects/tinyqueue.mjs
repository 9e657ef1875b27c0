// A semaphore over tinyqueue: what a heap costs where lines would do.
import TinyQueue from 'tinyqueue';

const byPriority = (a, b) => b.priority - a.priority || a.sequence - b.sequence;

class HeapSemaphore {
  #free;
  #sequence = 0;
  #heap = new TinyQueue([], byPriority);

  constructor({ concurrency }) {
    this.#free = concurrency;
  }

  submit(job, { priority = 0 } = {}) {
    return new Promise((resolve, reject) => {
      const entry = { job, resolve, reject, priority, sequence: this.#sequence++ };
      if (this.#free > 0) {
        this.#free--;
        void this.#run(entry);
      } else {
        this.#heap.push(entry);
      }
    });
  }

  async #run(entry) {
    try {
      entry.resolve(await entry.job());
    } catch (error) {
      entry.reject(error);
    }
    const next = this.#heap.pop();
    if (next === undefined) this.#free++;
    else void this.#run(next);
  }

  keyCount() {
    return 0;
  }

  close() {}
}

export default {
  name: 'tinyqueue',
  kind: 'bound',
  note: 'a heap by priority and arrival, run(job) style',
  caps: { priority: true, abort: false, keys: false },
  create: (shape) => new HeapSemaphore(shape),
};
