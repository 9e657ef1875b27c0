// Watches what a subject does with the jobs, so that one that loses, repeats, reorders or over-runs them cannot look
// fast.
export class Ledger {
  running = 0;
  peak = 0;
  ran = 0;
  #times;
  #limit;

  constructor(jobs, limit) {
    this.#times = new Uint8Array(jobs);
    this.#limit = limit;
  }

  start(index) {
    this.#times[index]++;
    this.ran++;
    if (++this.running > this.peak) this.peak = this.running;
  }

  end() {
    this.running--;
  }

  /** Throws unless `expected` jobs ran, each once, and never more than the limit at a time. */
  verify(expected) {
    if (this.ran !== expected) throw new Error(`${expected} jobs should have run; ${this.ran} did`);
    if (this.running !== 0) throw new Error(`${this.running} jobs are still running`);
    if (this.peak > this.#limit) throw new Error(`${this.peak} jobs ran at once; the limit is ${this.#limit}`);
    const repeated = this.#times.findIndex((times) => times > 1);
    if (repeated >= 0) throw new Error(`job ${repeated} ran ${this.#times[repeated]} times`);
  }
}

/** Throws unless every job's promise had the job's own result. */
export function verifyResults(results) {
  const wrong = results.findIndex((result, index) => result !== index);
  if (wrong >= 0) throw new Error(`job ${wrong} should have returned ${wrong}; got ${results[wrong]}`);
}
