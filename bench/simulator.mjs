// How fast the simulator is: simulated requests for each second of processor time with slots, simulated time over
// processor time for the serving model, and the heap over a run of ten million requests. Processor time, because a
// machine may be shared.
//
//     npm run bench -- --only simulator
import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { concurrencyDetector, roundRobin } from '../dist/index.js';
import { loadScenario, Simulation, simulate } from '../dist/simulator.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');
const cpuSeconds = () => process.cpuUsage().user / 1e6;
const limits = { maxRequests: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };

function slots(requests) {
  const rate = 72;
  return {
    duration: (requests / rate) * 1000,
    servers: [{ model: 'slots', slots: 8, serviceTime: { type: 'exponential', mean: 100 } }],
    traffic: [{ tenant: 'tenant', tenants: 4, arrivals: { type: 'poisson', rate: rate / 4 } }],
    flow: () => ({
      saturationDetector: concurrencyDetector({ maxConcurrency: 8 }),
      defaultRequestTtl: 0,
      bands: [{ priority: 0, limits, fairness: roundRobin() }],
    }),
  };
}

function slotsPerSecond(requests) {
  const startedAt = cpuSeconds();
  const { counts } = simulate(slots(requests));
  return counts.completed / (cpuSeconds() - startedAt);
}

/** The real trace of the VTC paper, with the policy of the paper. */
function timesRealTime() {
  const folder = new URL('../examples/scenarios/', import.meta.url);
  const readFile = (name) => readFileSync(new URL(name, folder), 'utf8');
  const { options } = loadScenario(readFile('vtc-real.yaml'), { readFile });
  simulate(options);
  const startedAt = cpuSeconds();
  const { endedAtMs } = simulate(options);
  return endedAtMs / 1000 / (cpuSeconds() - startedAt);
}

/** Heap in MB after each tenth of a run. */
function heapOver(requests) {
  const options = slots(requests);
  const simulation = new Simulation(options);
  return Array.from({ length: 10 }, (_, tenth) => {
    simulation.runUntil((options.duration * (tenth + 1)) / 10);
    collectGarbage();
    return process.memoryUsage().heapUsed / 1e6;
  });
}

export function runSimulatorBench({ quick = false } = {}) {
  slotsPerSecond(50_000);
  const perSecond = slotsPerSecond(quick ? 200_000 : 2_000_000);
  const factor = timesRealTime();
  const requests = quick ? 1_000_000 : 10_000_000;
  const heap = heapOver(requests);
  const verdict = (holds) => (holds ? 'holds' : 'DOES NOT HOLD');
  const grown = heap[9] / heap[1];
  console.log(
    `slots: ${Math.round(perSecond).toLocaleString('en')} requests a second (at least 200,000: ${verdict(perSecond >= 200_000)})`,
  );
  console.log(
    `serving model: ${Math.round(factor).toLocaleString('en')} × real time (at least 1,000: ${verdict(factor >= 1000)})`,
  );
  console.log(
    `heap over ${requests.toLocaleString('en')} requests, MB: ${heap.map((mb) => mb.toFixed(1)).join(' ')} (flat: ${verdict(grown < 1.2)})`,
  );
}
