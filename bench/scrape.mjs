// What one scrape costs the event loop while 100,000 requests wait, by the number of tenants that they come from:
// reading the controller, and printing: with prom-client at once, and in parts by `exposition`. Compare with
// `overview({ flows: 'all' })`, which exporters must not take.
//
//     npm run bench -- scrape --rounds 50 --waiting 100000
import { parseArgs } from 'node:util';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { Registry } from 'prom-client';
import { concurrencyDetector, FlowController, overviewOf, roundRobin } from '../dist/index.js';
import { openTelemetryMetrics } from '../dist/opentelemetry.js';
import { exposition, prometheusMetrics } from '../dist/prometheus.js';
import { describeMachine, today } from './lib/machine.mjs';
import { quantile } from './lib/measure.mjs';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '50' }, waiting: { type: 'string', default: '100000' } },
});
const rounds = Number(values.rounds);
const waiting = Number(values.waiting);
const unlimited = { maxRequests: Infinity, maxBytes: Infinity };

class PullReader extends MetricReader {
  async onForceFlush() {}
  async onShutdown() {}
}

function fill(tenants) {
  const flow = new FlowController({
    saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    limits: unlimited,
    defaultRequestTtl: 0,
    maxFlows: 2 * waiting,
    bands: [{ priority: 0, limits: unlimited, fairness: roundRobin() }],
  });
  return {
    flow,
    load() {
      for (let index = 0; index <= waiting; index++)
        void flow.enqueue({ byteSize: 10 }, { fairnessId: `tenant-${index % tenants}` });
    },
  };
}

/** Ms of each round, sorted; the first tenth is warm-up. */
async function measure(work) {
  const taken = [];
  for (let round = -Math.ceil(rounds / 10); round < rounds; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    const startedAtMs = performance.now();
    await work();
    if (round >= 0) taken.push(performance.now() - startedAtMs);
  }
  return taken.sort((a, b) => a - b);
}

/** Ms of the event loop that a scrape in parts takes in all, and that it takes longest at a time: both by round. */
async function measureParts(register) {
  const [all, longest] = [[], []];
  for (let round = -Math.ceil(rounds / 10); round < rounds; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    const parts = exposition(register);
    const taken = [];
    for (let isDone = false; !isDone; ) {
      // Between two parts the event loop turns; what the first turn of a part costs is asked for beside that.
      const idle = performance.eventLoopUtilization();
      isDone = (await parts.next()).done;
      taken.push(performance.eventLoopUtilization(idle).active);
    }
    if (round < 0) continue;
    all.push(taken.reduce((sum, ms) => sum + ms, 0));
    longest.push(Math.max(...taken));
  }
  return [all, longest].map((list) => list.sort((a, b) => a - b));
}

function print(name, sorted, note = '') {
  const [low, middle, high] = [0, 0.5, 0.9].map((share) => quantile(sorted, share).toFixed(2).padStart(8));
  console.log(`  ${name.padEnd(44)}${low}${middle}${high} ms  ${note}`);
}

console.log(`${waiting} waiting requests, ${rounds} rounds, least, median and 90 %; ${describeMachine()}; ${today()}`);
for (const tenants of [1, 100, 1000, waiting]) {
  console.log(`${tenants} tenants`);
  for (const fairnessIdLabel of [false, true]) {
    const { flow, load } = fill(tenants);
    const register = new Registry();
    prometheusMetrics(flow, { register, fairnessIdLabel });
    load();
    const lines = (await register.metrics()).split('\n').length;
    const label = fairnessIdLabel ? 'with fairness_id' : 'without fairness_id';
    print(`Prometheus ${label}`, await measure(() => register.metrics()), `${lines} lines`);
    const [all, longest] = await measureParts(register);
    print(`exposition ${label}, all parts`, all);
    print(`exposition ${label}, the longest part`, longest);
    const reader = new PullReader();
    openTelemetryMetrics(flow, {
      meterProvider: new MeterProvider({ readers: [reader] }),
      fairnessIdAttribute: fairnessIdLabel,
    });
    print(`OpenTelemetry ${label}`, await measure(() => reader.collect()));
    if (fairnessIdLabel) {
      print('stats()', await measure(() => flow.stats()));
      print('figures()', await measure(() => flow.figures()));
      print('overview()', await measure(() => overviewOf(flow)));
      print("overview({ flows: 'all' })", await measure(() => overviewOf(flow, { flows: 'all' })));
    }
    // What waits would keep the process alive.
    await flow.close();
  }
}
