// A million requests wait behind closed seats; then they go. What does each one that waits cost, in time and in memory?
import { concurrencyDetector, FlowController } from '../../dist/index.js';
import { Ledger } from '../lib/ledger.mjs';
import { concurrency, deferred, heapBytes, noOptions, nsPerOp } from '../lib/measure.mjs';
import { Permits } from '../subjects/permit.mjs';

/** The promise of `submit` is kept for each request, as a caller would. */
async function run(subject, jobs) {
  const ledger = new Ledger(jobs + concurrency, concurrency);
  const gate = subject.create({ concurrency });
  const opened = deferred();
  const job = async () => {
    ledger.start(ledger.ran);
    await opened.promise;
    ledger.end();
  };
  const running = Array.from({ length: concurrency }, () => gate.submit(job, noOptions));
  const waiting = new Array(jobs);
  const emptyBytes = heapBytes();
  const startedAtMs = performance.now();
  for (let i = 0; i < jobs; i++) waiting[i] = gate.submit(job, noOptions);
  const buildNs = nsPerOp(startedAtMs, jobs);
  const bytes = (heapBytes() - emptyBytes) / jobs;
  const openedAtMs = performance.now();
  opened.resolve();
  await Promise.all(running);
  await Promise.all(waiting);
  const drainNs = nsPerOp(openedAtMs, jobs);
  ledger.verify(jobs + concurrency);
  waiting.fill(undefined);
  const keptBytes = (heapBytes() - emptyBytes) / jobs;
  await gate.close();
  return { ns: buildNs + drainNs, buildNs, drainNs, bytes, keptBytes };
}

const request = { byteSize: 0 };
const flowKey = { fairnessId: 'default-flow', priority: 0 };
const unlimited = { maxRequests: Infinity, maxBytes: Infinity };

/** What waits without any caller's frame: `wait` returns a promise of what `leave` takes. */
const queues = {
  permit: () => {
    const permits = new Permits({ concurrency: 1 });
    return { wait: () => permits.acquire(noOptions), leave: () => permits.release() };
  },
  headgate: () => {
    const saturationDetector = concurrencyDetector({ maxConcurrency: 1 });
    const flow = new FlowController({ saturationDetector, limits: unlimited, defaultBand: { limits: unlimited } });
    return { wait: () => flow.enqueue(request, flowKey), leave: (outcome) => outcome.lease.release() };
  },
};

async function runAlone(makeQueue, jobs) {
  const queue = makeQueue();
  const first = await queue.wait();
  const waiting = new Array(jobs);
  const emptyBytes = heapBytes();
  const startedAtMs = performance.now();
  for (let i = 0; i < jobs; i++) waiting[i] = queue.wait();
  const buildNs = nsPerOp(startedAtMs, jobs);
  const bytes = (heapBytes() - emptyBytes) / jobs;
  const openedAtMs = performance.now();
  queue.leave(first);
  for (let i = 0; i < jobs; i++) {
    queue.leave(await waiting[i]);
    waiting[i] = undefined;
  }
  const drainNs = nsPerOp(openedAtMs, jobs);
  const keptBytes = (heapBytes() - emptyBytes) / jobs;
  return { ns: buildNs + drainNs, buildNs, drainNs, bytes, keptBytes };
}

export default [
  {
    name: 'backlog',
    title: 'backlog: 1,000,000 requests wait, then go; the caller’s promises included',
    jobs: 1_000_000,
    repeat: 1,
    // Beyond their means: they shift or copy arrays.
    skips: ['bare', 'effect', 'cockatiel', 'pacer', 'bottleneck'],
    run,
  },
  {
    name: 'backlog-alone',
    title: 'backlog-alone: the same by enqueue alone, without a caller',
    jobs: 1_000_000,
    repeat: 1,
    ways: queues,
    run: runAlone,
  },
];
