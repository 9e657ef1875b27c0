// What fairness by cost costs: policies beside round robin, with 1 to 100,000 tenants that have requests waiting. Each
// measurement has a process of its own, because code that serves several policies is slower than code that serves one;
// what counts is the ratio of each round, of CPU time. Then the heap that a waiting tenant takes, beyond what round
// robin does.
//
//     npm run bench -- fairness            about four minutes
//     npm run bench -- fairness 9 50000    rounds, and requests in each
//
// Two kinds of traffic:
//     in turn      a tenant sends again as soon as a request of its goes: everybody always waits, and round robin meets tenants in the order
//                  in which they lie in memory, for ever
//     at random    any tenant may send next: queues run empty and fill up again
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { deficitRoundRobin, FlowController, roundRobin, virtualTokenCounter } from '../dist/index.js';

const { positionals, values } = parseArgs({ allowPositionals: true, options: { child: { type: 'string' } } });
const [rounds = 7, requests = 50_000] = positionals.map(Number);

/**
 * Flows in no order that memory knows: what it costs that tenants do not go as they came, whatever the policy does
 * (each turn misses the caches).
 */
function anyOrder() {
  return {
    type: 'any-order',
    createSelector() {
      const flows = [];
      const places = new Map();
      let state = 1;
      return {
        pick() {
          state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
          return flows[state % flows.length];
        },
        flowActivated(flow) {
          places.set(flow, flows.length);
          flows.push(flow);
        },
        flowDeactivated(flow) {
          const place = places.get(flow);
          const last = flows.pop();
          if (last !== flow) flows[place] = last;
          if (last !== flow) places.set(last, place);
          places.delete(flow);
        },
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
  #state = 1;
  /** Undefined where the tenant whose request goes sends the next one. */
  #anybody;

  constructor(fairness, tenants, traffic) {
    this.#keys = new Map(
      Array.from({ length: tenants }, (_, i) => [`tenant-${i}`, { fairnessId: `tenant-${i}`, priority: 0 }]),
    );
    const saturationDetector = {
      type: 'one-seat',
      saturation: () => (this.#isTaken ? 1 : 0),
      dispatched: () => (this.#isTaken = true),
      released: () => (this.#isTaken = false),
    };
    const bands = [{ priority: 0, limits: unlimited, fairness }];
    this.#flow = new FlowController({
      saturationDetector,
      limits: unlimited,
      defaultRequestTtl: 0,
      maxFlows: 2 * tenants,
      bands,
    });
    this.#flow.on('dispatched', ({ lease }) => {
      this.#running = lease;
    });
    if (traffic === 'at random') this.#anybody = [...this.#keys.values()];
    for (const key of this.#keys.values()) for (let i = 0; i < 2; i++) this.#send(key);
  }

  play(count) {
    for (let i = 0; i < count; i++) {
      const lease = this.#running;
      this.#send(this.#anybody === undefined ? this.#keys.get(lease.fairnessId) : this.#draw(this.#anybody));
      lease.report({ promptTokens: lease.tokens, completionTokens: 100 + (i % 7) * 50 });
      lease.release();
    }
  }

  #draw(keys) {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return keys[this.#state % keys.length];
  }

  #send(key) {
    void this.#flow.enqueue(sizes[this.#sent++ % sizes.length], key);
  }
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** In a process of its own: prints ns of CPU time for a request. */
async function measure({ policy, tenants, traffic }) {
  const crowd = new Crowd(policies[policy](), tenants, traffic);
  const play = async (count) => {
    // Every turn of the event loop dispatches a thousand at most.
    for (let played = 0; played < count; played += 500) {
      crowd.play(500);
      await turn();
    }
  };
  await play(Math.max(requests, 2 * tenants));
  const before = process.cpuUsage();
  await play(requests);
  const { user, system } = process.cpuUsage(before);
  console.log(((user + system) / requests) * 1000);
}

function measureApart(measurement) {
  const self = fileURLToPath(import.meta.url);
  const given = ['--child', JSON.stringify(measurement), String(rounds), String(requests)];
  return Number(execFileSync(process.execPath, [self, ...given], { encoding: 'utf8' }));
}

function compare(tenants, traffic) {
  const names = Object.keys(policies);
  const ns = Object.fromEntries(names.map((policy) => [policy, []]));
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < names.length; i++) {
      const policy = names[(i + round) % names.length];
      ns[policy].push(measureApart({ policy, tenants, traffic }));
    }
  }
  for (const policy of names) {
    const over = (base) => median(ns[policy].map((each, round) => each / ns[base][round])).toFixed(2);
    const figures = `${median(ns[policy]).toFixed(0).padStart(6)} ns  × ${over('roundRobin')} round robin  × ${over('anyOrder')} any order`;
    console.log(`${String(tenants).padStart(7)} tenants  ${traffic.padEnd(10)}  ${policy.padEnd(20)} ${figures}`);
  }
}

function heapPerTenant(make, tenants) {
  const before = used();
  const crowd = new Crowd(make(), tenants);
  const bytes = (used() - before) / tenants;
  crowd.play(1);
  return bytes;
}

function tellHeap() {
  if (globalThis.gc === undefined) return;
  const tenants = 50_000;
  heapPerTenant(roundRobin, tenants);
  const base = heapPerTenant(roundRobin, tenants);
  for (const [name, make] of Object.entries(policies)) {
    const bytes = heapPerTenant(make, tenants) - base;
    console.log(`${name.padEnd(20)} ${bytes.toFixed(0).padStart(5)} B for a waiting tenant beyond round robin`);
  }
}

function used() {
  for (let i = 0; i < 4; i++) globalThis.gc?.();
  return process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
}

if (values.child !== undefined) {
  await measure(JSON.parse(values.child));
} else {
  for (const tenants of [1, 1000, 100_000]) for (const traffic of ['in turn', 'at random']) compare(tenants, traffic);
  tellHeap();
}
// What waits keeps a timer.
process.exit();
