// The permit bound that answers as headgate does: a record of each request that waits, a deadline for it, an outcome,
// and a lease to give back. What is left beyond it is headgate's own: books, limits, tiers, the gate.
import Denque from 'denque';
import { run } from '../adapter.mjs';
import { waitingLine } from './bounds/waiting-lines.mjs';

let captured;
const capture = (settle) => {
  captured = settle;
};

/** As many fields as headgate's, most of them never used. */
class Waiting {
  flow = undefined;
  deadlines = undefined;
  abortGroup = undefined;
  rest = undefined;
  tokens = 0;
  ttlMs = 60_000;

  constructor(settle, request, key, priority, sequence, nowMs) {
    this.settle = settle;
    this.request = request;
    this.band = undefined;
    this.key = key;
    this.priority = priority;
    this.byteSize = 0;
    this.sequence = sequence;
    this.enqueuedAtMs = nowMs;
  }
}

class Lease {
  isReleased = false;
  #owner;

  constructor(owner, record) {
    this.#owner = owner;
    this.record = record;
  }

  release() {
    if (this.isReleased) return;
    this.isReleased = true;
    this.#owner.release();
  }
}

class Records {
  #free;
  #line;
  #deadlines = new Denque();
  #sequence = 0;

  constructor(shape) {
    this.#free = shape.concurrency;
    this.#line = waitingLine(shape);
  }

  enqueue(options) {
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve({ type: 'Dispatched', lease: new Lease(this, undefined), queuedMs: 0 });
    }
    const promise = new Promise(capture);
    const record = new Waiting(captured, options, options.key, options.priority, this.#sequence++, performance.now());
    this.#line.push(record, options);
    this.#deadlines.push(record);
    return promise;
  }

  release() {
    const record = this.#line.shift();
    if (record === undefined) {
      this.#free++;
      return;
    }
    this.#deadlines.shift();
    const { settle } = record;
    record.settle = undefined;
    record.request = undefined;
    settle({ type: 'Dispatched', lease: new Lease(this, record), queuedMs: performance.now() - record.enqueuedAtMs });
  }

  submit(job, options = {}) {
    return run(this.enqueue(options), job, options.signal);
  }

  keyCount() {
    return this.#line.keyCount;
  }

  close() {}
}

export default {
  name: 'record',
  kind: 'bound',
  note: 'the permit bound with a record and a deadline for what waits, two readings of the clock, an outcome and a lease: the least for what headgate answers',
  caps: { priority: true, abort: false, keys: true },
  create: (shape) => new Records(shape),
};
