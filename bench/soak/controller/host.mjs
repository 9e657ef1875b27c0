// The host whose traffic the soak test is: a controller with everything switched on, and the host's own account of what
// it did.
import { getEventListeners } from 'node:events';
import {
  concurrencyDetector,
  EndpointPool,
  FlowController,
  globalStrict,
  inFlightEviction,
  roundRobin,
  sloDeadline,
} from '../../../dist/index.js';

const perEndpoint = 4;

/** What may be configured while traffic runs; every one is gone through in turn. */
export const configurations = [
  {
    bands: [{ priority: 100, fairness: roundRobin() }, { priority: 0, fairness: roundRobin() }, { priority: -10 }],
    overflow: 'displace',
  },
  {
    bands: [
      { priority: 100, fairness: globalStrict() },
      { priority: 0, minShare: 0.2 },
    ],
    bandOrder: 'aging',
    bandPromotion: '50ms',
  },
  {
    bands: [{ priority: 0, ordering: sloDeadline() }],
    limits: { maxRequests: 100, maxBytes: '1Mi' },
    overflow: 'reject',
  },
  {
    bands: [{ priority: 100 }, { priority: 0, flowLimits: { maxRequests: 3 } }],
    limits: { maxRequests: 2000 },
    bandOrder: 'strict',
  },
];

export class Host {
  pool = new EndpointPool();
  flow;
  /** Calls of `enqueue` and `requeue`, and how many of them have settled. */
  asked = 0;
  settled = 0;
  outcomes = {};
  heldLeases = 0;
  violations = [];

  constructor() {
    for (let i = 0; i < 8; i++) this.pool.add(`server-${i}`);
    this.flow = new FlowController({
      pool: this.pool,
      saturationDetector: concurrencyDetector({ maxConcurrency: perEndpoint }),
      eviction: inFlightEviction({ graceMs: 5, timeoutMs: 200 }),
      defaultRequestTtl: '400ms',
      noEndpointRequestTtl: '100ms',
      maxFlows: 2000,
      flowIdleTimeout: '2s',
      bandIdleTimeout: '2s',
      ...configurations[0],
    });
  }

  async enqueue(request, key) {
    this.asked++;
    return this.#note(await this.flow.enqueue(request, key), request.signal);
  }

  async requeue(lease) {
    this.asked++;
    this.heldLeases--;
    return this.#note(await lease.requeue());
  }

  release(lease) {
    this.heldLeases--;
    lease.release();
  }

  #note(outcome, signal) {
    this.settled++;
    this.outcomes[outcome.type] = (this.outcomes[outcome.type] ?? 0) + 1;
    if (outcome.type === 'Dispatched') this.heldLeases++;
    if (signal?.isShared !== true && signal !== undefined && getEventListeners(signal, 'abort').length > 0) {
      this.violate('a listener is left on the signal of a request that was settled');
    }
    return outcome;
  }

  violate(what) {
    this.violations.push(what);
  }

  /** Called between turns: the controller's figures must agree among themselves, and with what the host knows. */
  checkBalance() {
    const stats = this.flow.stats();
    const settled = stats.dispatched + stats.rejected + stats.evicted;
    this.#mustEqual('enqueued = dispatched + rejected + evicted + waiting', stats.enqueued, settled + stats.waiting);
    this.#mustEqual('enqueued = what the host asked for', stats.enqueued, this.asked);
    this.#mustEqual('settled = promises that were resolved', settled, this.settled);
    this.#mustEqual('in flight = leases that the host holds', stats.inFlight, this.heldLeases);
    this.#mustEqual('in flight = dispatched - released', stats.inFlight, stats.dispatched - stats.released);
    for (const [type, count] of Object.entries(stats.outcomes))
      this.#mustEqual(`outcome ${type}`, count, this.outcomes[type] ?? 0);
    if (stats.waiting < 0 || stats.waitingBytes < 0)
      this.violate(`waiting ${stats.waiting}, bytes ${stats.waitingBytes}`);
    if (stats.waiting === 0) this.#mustEqual('bytes of nothing', stats.waitingBytes, 0);
    if (stats.pluginErrors > 0) this.violate(`${stats.pluginErrors} plugin errors`);
    return stats;
  }

  #mustEqual(what, left, right) {
    if (left !== right) this.violate(`${what}: ${left} is not ${right}`);
  }
}
