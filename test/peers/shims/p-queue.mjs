// p-queue's interface on a controller, but for intervals, which are a quota's here. A priority is a band.
import { EventEmitter } from 'eventemitter3';
import { concurrencyDetector, FlowController } from 'headgate';
import { TimeoutError } from 'p-timeout';

export { TimeoutError };

function checked(name, value, isRight, expected) {
  if (isRight) return value;
  throw new TypeError(`Expected \`${name}\` to be ${expected}, got \`${value}\` (${typeof value})`);
}

const isCount = (value) => typeof value === 'number' && value >= 1;
const isSpan = (value) => value === undefined || (Number.isFinite(value) && value > 0);

/** Rejects when the time is over or the signal aborts; `stop` ends both. */
function interrupted(signal, timeout, message) {
  let stop = () => {};
  const promise = new Promise((_, reject) => {
    const leave = () => reject(signal.reason);
    signal?.addEventListener('abort', leave, { once: true });
    const timer = timeout && setTimeout(() => reject(new TimeoutError(message)), timeout);
    stop = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', leave);
    };
  });
  return { promise, stop };
}

export default class PQueue extends EventEmitter {
  timeout;
  #flow;
  #concurrency;
  #isPaused;
  #ids = 1n;
  #waiting = new Set();
  #running = new Set();

  constructor(options) {
    super();
    const { concurrency, autoStart, timeout } = { concurrency: Number.POSITIVE_INFINITY, autoStart: true, ...options };
    this.#concurrency = checked('concurrency', concurrency, isCount(concurrency), 'a number from 1 and up');
    this.timeout = checked('timeout', timeout, isSpan(timeout), 'a positive finite number');
    this.#isPaused = !autoStart;
    this.#flow = new FlowController({ ...this.#gate, defaultRequestTtl: 0, maxBands: 1_000 });
  }

  get #gate() {
    const maxConcurrency = Math.min(this.#concurrency, 2 ** 31 - 1);
    return { saturationDetector: this.#isPaused ? () => 1 : concurrencyDetector({ maxConcurrency }) };
  }

  get size() {
    return this.#flow.stats().waiting;
  }

  get pending() {
    return this.#flow.stats().inFlight;
  }

  get isPaused() {
    return this.#isPaused;
  }

  get isSaturated() {
    return this.pending === this.#concurrency && this.size > 0;
  }

  get runningTasks() {
    return Array.from(this.#running, ({ id, priority, startTime, timeout }) => {
      const timeoutRemaining = timeout && Math.max(0, startTime + timeout - Date.now());
      return { id, priority, startTime, timeout, timeoutRemaining };
    });
  }

  get concurrency() {
    return this.#concurrency;
  }

  set concurrency(next) {
    this.#concurrency = checked('concurrency', next, isCount(next), 'a number from 1 and up');
    this.#flow.reconfigure(this.#gate);
  }

  sizeBy({ priority = 0 }) {
    return [...this.#waiting].filter((task) => task.priority === priority).length;
  }

  async add(work, { priority = 0, id = String(this.#ids++), signal, timeout = this.timeout } = {}) {
    checked('timeout', timeout, isSpan(timeout), 'a positive finite number');
    return new Promise((resolve, reject) => {
      const task = { id, priority, signal, timeout, work, resolve, reject, forget: () => {} };
      if (signal !== undefined) {
        const leave = () => {
          this.#leave(task);
          reject(signal.reason);
          this.#tellEnds();
          this.emit('next');
        };
        task.forget = () => signal.removeEventListener('abort', leave);
        if (signal.aborted) return leave();
        signal.addEventListener('abort', leave, { once: true });
      }
      this.emit('add');
      void this.#enter(task);
    });
  }

  async #enter(task) {
    const leaving = new AbortController();
    task.leaving = leaving;
    this.#waiting.add(task);
    const key = { fairnessId: 'all', priority: Math.trunc(task.priority) };
    const outcome = await this.#flow.enqueue({ byteSize: 1, signal: leaving.signal }, key);
    if (outcome.type === 'Dispatched') await this.#run(task, outcome.lease);
  }

  #leave(task) {
    this.#waiting.delete(task);
    task.forget();
    task.leaving?.abort();
  }

  async #run(task, lease) {
    const { work, signal, timeout, resolve, reject } = task;
    this.#waiting.delete(task);
    task.forget();
    task.startTime = Date.now();
    this.#running.add(task);
    this.emit('active');
    const message = `Task timed out after ${timeout}ms (queue has ${this.pending} running, ${this.size} waiting)`;
    const { promise, stop } = interrupted(signal, timeout, message);
    try {
      signal?.throwIfAborted();
      const result = await Promise.race([work({ signal }), promise]);
      resolve(result);
      this.emit('completed', result);
    } catch (error) {
      reject(error);
      this.emit('error', error);
    } finally {
      stop();
      this.#running.delete(task);
      queueMicrotask(() => {
        const isLast = this.size === 0;
        lease.release();
        if (this.pending === 0) this.emit('pendingZero');
        if (isLast) this.#tellEnds();
        this.emit('next');
      });
    }
  }

  #tellEnds() {
    if (this.size > 0) return;
    this.emit('empty');
    if (this.pending === 0) this.emit('idle');
  }

  addAll(all, options) {
    return Promise.all(all.map((work) => this.add(work, options)));
  }

  setPriority(id, priority) {
    checked('priority', priority, Number.isFinite(priority), 'a finite number');
    const task = [...this.#waiting].find((each) => each.id === id);
    if (task === undefined) throw new ReferenceError(`No promise function with the id "${id}" exists in the queue.`);
    task.leaving.abort();
    task.priority = priority;
    void this.#enter(task);
  }

  start() {
    if (!this.#isPaused) return this;
    this.#isPaused = false;
    this.#flow.reconfigure(this.#gate);
    return this;
  }

  pause() {
    this.#isPaused = true;
    this.#flow.reconfigure(this.#gate);
  }

  clear() {
    for (const task of [...this.#waiting]) this.#leave(task);
    this.#tellEnds();
    this.emit('next');
  }

  async onEmpty() {
    if (this.size > 0) await this.#once('empty');
  }

  async onIdle() {
    if (this.size + this.pending > 0) await this.#once('idle');
  }

  async onPendingZero() {
    if (this.pending > 0) await this.#once('pendingZero');
  }

  async onSizeLessThan(limit) {
    while (this.size >= limit) await this.#once('next', 'active');
  }

  onError() {
    return new Promise((_, reject) => {
      this.once('error', reject);
    });
  }

  #once(...names) {
    return new Promise((resolve) => {
      const told = () => {
        for (const name of names) this.off(name, told);
        resolve();
      };
      for (const name of names) this.on(name, told);
    });
  }
}
