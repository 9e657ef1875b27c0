// What operators and machines do meanwhile: other configurations, servers that come and go, telemetry, a pool that is
// empty for a while.
import { configurations } from './host.mjs';

const mostServers = 12;

export class Chaos {
  #host;
  #timers;
  #configured = 0;
  #added = 0;

  constructor(host) {
    this.#host = host;
    this.#timers = [
      setInterval(() => this.#reconfigure(), 700),
      setInterval(() => this.#replaceServer(), 300),
      setInterval(() => this.#emptyPool(), 11_000),
      setInterval(() => this.#reportLoad(), 50),
    ];
  }

  stop() {
    for (const timer of this.#timers) clearInterval(timer);
  }

  #reconfigure() {
    this.#configured++;
    this.#host.flow.reconfigure(configurations[this.#configured % configurations.length]);
  }

  #replaceServer() {
    const { pool } = this.#host;
    if (pool.endpoints.length > 4) pool.remove(pool.endpoints[0]);
    while (pool.endpoints.length < mostServers && this.#added % 3 !== 2) pool.add(`server-a${this.#added++}`);
    this.#added++;
  }

  /** Servers come back one by one with the next replacements. */
  #emptyPool() {
    for (const endpoint of this.#host.pool.endpoints) this.#host.pool.remove(endpoint);
  }

  #reportLoad() {
    for (const { id, inFlightRequests } of this.#host.pool.endpoints) {
      this.#host.pool.report(id, { waitingQueueSize: 0, runningRequests: inFlightRequests, kvCacheUsage: 0.5 });
    }
  }
}
