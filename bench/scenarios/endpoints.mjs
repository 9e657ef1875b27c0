// A hundred model servers that report their load while requests are picked onto them. The bounds know one number
// instead.
import { EndpointPool, FlowController, utilizationDetector } from '../../dist/index.js';
import { microtaskJob } from '../lib/jobs.mjs';
import { Ledger } from '../lib/ledger.mjs';
import { noOptions, nsPerOp } from '../lib/measure.mjs';
import denque from '../subjects/denque.mjs';
import permit from '../subjects/permit.mjs';

const servers = 100;
const perServer = 5;
const producers = 1000;
/** Requests from one report to the next, of whichever server. */
const requestsPerReport = 10;
const unlimited = { maxRequests: Infinity, maxBytes: Infinity };
const flowKey = { fairnessId: 'default-flow', priority: 0 };
const idle = { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0.2 };

class Pooled {
  #pool = new EndpointPool();
  #flow;
  #next = 0;

  constructor() {
    for (let i = 0; i < servers; i++) this.#pool.add(`server-${i}`);
    const saturationDetector = utilizationDetector({
      queueDepthThreshold: perServer,
      metricsStalenessThreshold: '60s',
    });
    this.#flow = new FlowController({
      saturationDetector,
      pool: this.#pool,
      limits: unlimited,
      defaultBand: { limits: unlimited },
    });
    for (let i = 0; i < servers; i++) this.report();
  }

  report() {
    this.#pool.report(`server-${this.#next++ % servers}`, idle);
  }

  async submit(job) {
    const outcome = await this.#flow.enqueue({ byteSize: 0 }, flowKey);
    try {
      return await job();
    } finally {
      outcome.lease.release();
    }
  }

  close() {
    return this.#flow.close();
  }
}

async function run(subject, jobs) {
  // A report says that a server's queue is empty: what it holds beyond that is the server's own affair.
  const isLimited = subject !== pooled;
  const ledger = new Ledger(jobs, isLimited ? servers * perServer : producers);
  const gate = subject.create({ concurrency: servers * perServer });
  let next = 0;
  async function produce() {
    while (next < jobs) {
      const index = next++;
      if (index % requestsPerReport === 0) gate.report?.();
      await gate.submit(microtaskJob(ledger, index), noOptions);
    }
  }
  const startedAtMs = performance.now();
  await Promise.all(Array.from({ length: producers }, produce));
  const ns = nsPerOp(startedAtMs, jobs);
  ledger.verify(jobs);
  await gate.close();
  return { ns };
}

const pooled = { create: () => new Pooled() };

export default [
  {
    name: 'endpoints',
    title: 'endpoints: 100 endpoints, 1,000 producers, a report of telemetry with every tenth request',
    jobs: 100_000,
    ways: { denque, permit, headgate: pooled },
    run,
  },
];
