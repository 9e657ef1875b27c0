// A gate whose seats are taken, and a crowd that waits behind it.
import { Ledger } from './ledger.mjs';
import { deferred } from './measure.mjs';

export class WaitingCrowd {
  dispatched = 0;
  dropped = 0;
  #opened = deferred();
  #running;
  #size = 0;
  #settled = undefined;
  #ledger;
  #gate;

  constructor(gate, seats, jobs) {
    this.#gate = gate;
    this.#ledger = new Ledger(seats + jobs, seats);
    this.#running = Array.from({ length: seats }, (_, index) => gate.submit(() => this.#hold(index)));
  }

  async #hold(index) {
    this.#ledger.start(index);
    await this.#opened.promise;
    this.#ledger.end();
  }

  add(options) {
    const index = this.#running.length + this.#size++;
    this.#gate
      .submit(() => this.#hold(index), options)
      .then(
        () => {
          this.dispatched++;
          this.#left();
        },
        () => {
          this.dropped++;
          this.#left();
        },
      );
  }

  /** Lets everybody go, and waits until they have. */
  async open() {
    this.#opened.resolve();
    await Promise.all(this.#running);
    await this.settled();
    this.#ledger.verify(this.#running.length + this.dispatched);
  }

  /** Waits until the whole crowd has left, one way or the other. */
  async settled() {
    if (this.#isGone) return;
    this.#settled = deferred();
    await this.#settled.promise;
  }

  get #isGone() {
    return this.dispatched + this.dropped === this.#size;
  }

  /** Counted, because to wait for all promises at once would take longer than what is measured. */
  #left() {
    if (this.#isGone) this.#settled?.resolve();
  }
}
