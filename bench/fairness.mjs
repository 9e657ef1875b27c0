// What fairness by cost costs: policies beside round robin, with 1 to 100,000 tenants that keep a request waiting. They take turns in one
// process, and what counts is the ratio of each round, of CPU time. Then the heap that a waiting tenant takes, beyond what round robin does.
//
//     npm run bench:fairness               about two minutes
//     npm run bench:fairness -- 9 50000    rounds, and requests in each
import { parseArgs } from 'node:util';
import { deficitRoundRobin, FlowController, roundRobin, virtualTokenCounter } from '../dist/index.js';

const { positionals } = parseArgs({ allowPositionals: true });
const [rounds = 7, requests = 50_000] = positionals.map(Number);

/** Flows in no order that memory knows: what it costs that tenants do not go as they came, whatever the policy does (each turn misses the caches). */
function anyOrder() {
  return {
    type: 'any-order',
    createSelector() {
      const flows = [];
      let state = 1;
      return {
        pick() {
          state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
          return flows[state % flows.length];
        },
        flowActivated: (flow) => void flows.push(flow),
        flowDeactivated: (flow) => void flows.splice(flows.indexOf(flow), 1),
      };
    },
  };
}

const policies = { roundRobin, anyOrder, virtualTokenCounter, deficitRoundRobin };
const unlimited = { maxRequests: Infinity, maxBytes: Infinity };
const sizes = Array.from({ length: 1024 }, (_, i) => ({ byteSize: 1, tokens: 10 + ((i * 7919) % 997) }));

/** One seat, and tenants that send again as soon as a request of theirs goes. */
class Crowd {
  #keys;
  #flow;
  #running;
  #sent = 0;
  #isTaken = false;

  constructor(fairness, tenants) {
    this.#keys = new Map(Array.from({ length: tenants }, (_, i) => [`tenant-${i}`, { fairnessId: `tenant-${i}`, priority: 0 }]));
    const saturationDetector = {
      type: 'one-seat',
      saturation: () => (this.#isTaken ? 1 : 0),
      dispatched: () => (this.#isTaken = true),
      released: () => (this.#isTaken = false),
    };
    const bands = [{ priority: 0, limits: unlimited, fairness }];
    this.#flow = new FlowController({ saturationDetector, limits: unlimited, defaultRequestTtl: 0, maxFlows: 2 * tenants, bands });
    this.#flow.on('dispatched', ({ lease }) => {
      this.#running = lease;
    });
    for (const key of this.#keys.values()) for (let i = 0; i < 2; i++) this.#send(key);
  }

  play(count) {
    for (let i = 0; i < count; i++) {
      const lease = this.#running;
      this.#send(this.#keys.get(lease.fairnessId));
      lease.report({ promptTokens: lease.tokens, completionTokens: 100 + (i % 7) * 50 });
      lease.release();
    }
  }

  #send(key) {
    void this.#flow.enqueue(sizes[this.#sent++ % sizes.length], key);
  }
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const turn = () => new Promise((resolve) => setImmediate(resolve));

async function compare(tenants) {
  const ways = Object.entries(policies).map(([name, make]) => ({ name, crowd: new Crowd(make(), tenants), ns: [] }));
  for (let round = -1; round < rounds; round++) {
    for (let i = 0; i < ways.length; i++) {
      const way = ways[(i + round + ways.length) % ways.length];
      await turn();
      const before = process.cpuUsage();
      // Every turn of the event loop dispatches a thousand at most.
      for (let played = 0; played < requests; played += 500) {
        way.crowd.play(500);
        await turn();
      }
      const { user, system } = process.cpuUsage(before);
      if (round >= 0) way.ns.push(((user + system) / requests) * 1000);
    }
  }
  const [turns, disorder] = ways;
  for (const { name, ns } of ways) {
    const over = (base) => median(ns.map((each, round) => each / base.ns[round])).toFixed(2);
    const figures = `${median(ns).toFixed(0).padStart(6)} ns  × ${over(turns)} round robin  × ${over(disorder)} any order`;
    console.log(`${String(tenants).padStart(7)} tenants  ${name.padEnd(20)} ${figures}`);
  }
}

function heapPerTenant(make, tenants) {
  const before = used();
  const crowd = new Crowd(make(), tenants);
  const bytes = (used() - before) / tenants;
  crowd.play(1);
  return bytes;
}

function used() {
  for (let i = 0; i < 4; i++) globalThis.gc?.();
  return process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
}

for (const tenants of [1, 1000, 100_000]) await compare(tenants);
if (globalThis.gc !== undefined) {
  const tenants = 50_000;
  heapPerTenant(roundRobin, tenants);
  const base = heapPerTenant(roundRobin, tenants);
  for (const [name, make] of Object.entries(policies)) {
    console.log(
      `${name.padEnd(20)} ${(heapPerTenant(make, tenants) - base).toFixed(0).padStart(5)} B for a waiting tenant beyond round robin`,
    );
  }
}
// What waits keeps a timer.
process.exit();
