// Clients of every kind: patient and not, with old tenants and new sessions, alone and on shared connections.
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { seededRandom, zipf } from '../../lib/random.mjs';

const clients = 150;
const tenants = 5000;
const priorities = [100, 0, 0, 0, -10, -10, 7];

export class Traffic {
  /** Signals that several requests share; each is replaced when it was aborted. */
  connections = Array.from({ length: 10 }, makeConnection);
  #host;
  #random;
  #nextTenant;
  #isRunning = true;
  #sessions = 0;
  #done;

  constructor(host, seed) {
    this.#host = host;
    this.#random = seededRandom(seed);
    this.#nextTenant = zipf(this.#random, tenants, 1.1);
    this.#done = Promise.all(Array.from({ length: clients }, () => this.#client()));
  }

  /** No new requests; resolves when the last one has ended. */
  stop() {
    this.#isRunning = false;
    return this.#done;
  }

  async #client() {
    while (this.#isRunning) {
      await this.#request();
      if (this.#chance(0.2)) await delay(this.#random() * 20);
    }
  }

  async #request() {
    const patience = this.#patience();
    const request = {
      byteSize: Math.floor(this.#random() * 9000),
      signal: patience?.signal,
      ttlMs: this.#chance(0.3) ? 1 + Math.floor(this.#random() * 300) : undefined,
      sloTtftMs: this.#chance(0.3) ? 100 : undefined,
    };
    try {
      let outcome = await this.#host.enqueue(request, {
        fairnessId: this.#fairnessId(),
        priority: this.#pick(priorities),
      });
      while (outcome?.type === 'Dispatched') outcome = await this.#work(outcome.lease);
    } finally {
      clearTimeout(patience?.timer);
    }
  }

  /** Returns the next outcome when the request was evicted and waits again. */
  async #work(lease) {
    const evicted = new Promise((resolve) =>
      lease.signal.addEventListener('abort', () => resolve(true), { once: true }),
    );
    const timer = new AbortController();
    const finished = delay(this.#random() * 15, false, { signal: timer.signal }).catch(() => false);
    if (this.#chance(0.2)) lease.report({ completionTokens: 3 });
    const isEvicted = await Promise.race([evicted, finished]);
    timer.abort();
    if (isEvicted && this.#chance(0.5)) return await this.#host.requeue(lease);
    this.#host.release(lease);
    return undefined;
  }

  /** A signal of its own that aborts sooner or later, one of a shared connection, or none. */
  #patience() {
    if (this.#chance(0.3)) {
      const controller = new AbortController();
      return { signal: controller.signal, timer: setTimeout(() => controller.abort(), this.#random() * 100) };
    }
    if (!this.#chance(0.3)) return undefined;
    const index = Math.floor(this.#random() * this.connections.length);
    if (this.#chance(0.01)) this.connections[index].abort();
    if (this.connections[index].signal.aborted) this.connections[index] = makeConnection();
    return { signal: this.connections[index].signal };
  }

  #fairnessId() {
    return this.#chance(0.1) ? `session-${this.#sessions++}` : `tenant-${this.#nextTenant()}`;
  }

  #chance(share) {
    return this.#random() < share;
  }

  #pick(choices) {
    return choices[Math.floor(this.#random() * choices.length)];
  }
}

function makeConnection() {
  const controller = new AbortController();
  controller.signal.isShared = true;
  setMaxListeners(0, controller.signal);
  return controller;
}
