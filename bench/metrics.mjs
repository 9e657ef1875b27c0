// What metrics cost: a burst without them, with them, and after they were stopped. The ways take turns in one process,
// in another order each round, and each is compared with `off` of its own round: what others do on the machine falls on
// all of them alike.
//
//     npm run bench -- metrics --rounds 200 --jobs 10000
import { parseArgs } from 'node:util';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { Registry } from 'prom-client';
import { concurrencyDetector, FlowController, roundRobin } from '../dist/index.js';
import { openTelemetryMetrics } from '../dist/opentelemetry.js';
import { prometheusMetrics } from '../dist/prometheus.js';
import { microtaskJob } from './lib/jobs.mjs';
import { Ledger } from './lib/ledger.mjs';
import { describeMachine, today } from './lib/machine.mjs';
import { concurrency, nsPerOp, quantile } from './lib/measure.mjs';

const unlimited = { maxRequests: Infinity, maxBytes: Infinity };
const flowKeys = Array.from({ length: 8 }, (_, index) => ({ fairnessId: `tenant-${index}`, priority: 0 }));

const ways = {
  off: () => {},
  stopped: (flow) => prometheusMetrics(flow, { register: new Registry() }).stop(),
  prometheus: (flow) => prometheusMetrics(flow, { register: new Registry() }),
  opentelemetry: (flow) => openTelemetryMetrics(flow, { meterProvider: new MeterProvider({ readers: [] }) }),
};

/** One for each way, for the whole run: gateways live long. */
function makeFlow(switchOn) {
  const flow = new FlowController({
    saturationDetector: concurrencyDetector({ maxConcurrency: concurrency }),
    limits: unlimited,
    bands: [{ priority: 0, limits: unlimited, fairness: roundRobin() }],
  });
  switchOn(flow);
  return flow;
}

/** Nanoseconds per request of a burst that arrives in one turn. */
async function burst(flow, jobs) {
  const ledger = new Ledger(jobs, concurrency);
  async function one(index) {
    const { lease } = await flow.enqueue({ byteSize: 100 }, flowKeys[index % flowKeys.length]);
    await microtaskJob(ledger, index)();
    lease.release();
  }
  globalThis.gc();
  const startedAtMs = performance.now();
  const all = new Array(jobs);
  for (let index = 0; index < jobs; index++) all[index] = one(index);
  await Promise.all(all);
  const ns = nsPerOp(startedAtMs, jobs);
  ledger.verify(jobs);
  return ns;
}

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '200' }, jobs: { type: 'string', default: '10000' } },
});
const rounds = Number(values.rounds);
const jobs = Number(values.jobs);
const names = Object.keys(ways);
const flows = Object.fromEntries(names.map((name) => [name, makeFlow(ways[name])]));
const warmUp = Math.ceil(rounds / 10);
const taken = [];
for (let round = -warmUp; round < rounds; round++) {
  const figures = {};
  for (const offset of names.keys()) {
    const name = names[(offset + round + warmUp) % names.length];
    figures[name] = await burst(flows[name], jobs);
  }
  if (round >= 0) taken.push(figures);
}

console.log(`burst of ${jobs} requests, ${rounds} rounds; ${describeMachine()}; ${today()}`);
for (const name of names) {
  const sorted = (of) => taken.map(of).sort((a, b) => a - b);
  const ns = sorted((figures) => figures[name]);
  const throughput = sorted((figures) => figures.off / figures[name]);
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => `${(100 * quantile(throughput, share)).toFixed(1)} %`);
  console.log(
    `${name.padEnd(14)}${quantile(ns, 0.5).toFixed(0).padStart(6)} ns   throughput ${middle} of off (half of the rounds: ${low} to ${high})`,
  );
}
