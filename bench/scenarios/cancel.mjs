// Those who wait leave by their AbortSignals. Beside it, in the same process: the same requests are dispatched instead.
import { setMaxListeners } from 'node:events';
import { concurrencyDetector, FlowController } from '../../dist/index.js';
import { concurrency, heapBytes, nsPerOp } from '../lib/measure.mjs';
import { WaitingCrowd } from '../lib/waiting-crowd.mjs';

const shared = 10;
const reason = new Error('the client left');

/** Every second request has a signal of its own; the others share ten. */
function fill(crowd, jobs) {
  const controllers = Array.from({ length: shared }, () => new AbortController());
  for (const { signal } of controllers) setMaxListeners(0, signal);
  for (let i = 0; i < jobs; i++) {
    const controller = i % 2 === 0 ? new AbortController() : controllers[i % shared];
    if (i % 2 === 0) controllers.push(controller);
    crowd.add({ signal: controller.signal });
  }
  return controllers;
}

async function dispatchAll(gate, jobs) {
  const crowd = new WaitingCrowd(gate, concurrency, jobs);
  fill(crowd, jobs);
  const startedAtMs = performance.now();
  await crowd.open();
  return nsPerOp(startedAtMs, jobs);
}

async function cancelAll(gate, jobs) {
  const crowd = new WaitingCrowd(gate, concurrency, jobs);
  const controllers = fill(crowd, jobs);
  const startedAtMs = performance.now();
  for (const controller of controllers) controller.abort(reason);
  await crowd.settled();
  const ns = nsPerOp(startedAtMs, jobs);
  await crowd.open();
  if (crowd.dropped !== jobs) throw new Error(`${jobs} should have been cancelled; ${crowd.dropped} were`);
  return ns;
}

async function run(subject, jobs) {
  const gate = subject.create({ concurrency, abort: true });
  const emptyBytes = heapBytes();
  const before = await dispatchAll(gate, jobs);
  const ns = await cancelAll(gate, jobs);
  // Twice, and the faster counts: a collection that happens to fall into it would flatter the ratio.
  const dispatchNs = Math.min(before, await dispatchAll(gate, jobs));
  await new Promise((resolve) => setImmediate(resolve));
  const keptBytes = (heapBytes() - emptyBytes) / jobs;
  await gate.close();
  return { ns, dispatchNs, perDispatch: ns / dispatchNs, keptBytes };
}

/**
 * As llm-d's MassCancellation: clients whose patience ends all at once, wave after wave; their arrival is part of the
 * time.
 */
async function runWaves(subject, jobs) {
  const clients = Math.min(5000, jobs);
  const waves = Math.ceil(jobs / clients);
  const gate = subject.create({ concurrency: 1, abort: true });
  const crowd = new WaitingCrowd(gate, 1, jobs);
  const startedAtMs = performance.now();
  let longestWaveMs = 0;
  for (let wave = 0; wave < waves; wave++) {
    const controllers = Array.from({ length: clients }, () => new AbortController());
    for (const { signal } of controllers) crowd.add({ signal });
    const cancelledAtMs = performance.now();
    for (const controller of controllers) controller.abort(reason);
    await new Promise((resolve) => setImmediate(resolve));
    longestWaveMs = Math.max(longestWaveMs, performance.now() - cancelledAtMs);
  }
  await crowd.settled();
  const ns = nsPerOp(startedAtMs, waves * clients);
  await crowd.open();
  if (crowd.dropped !== waves * clients)
    throw new Error(`${waves * clients} should have been cancelled; ${crowd.dropped} were`);
  await gate.close();
  return { ns, longestWaveMs };
}

const flowKey = { fairnessId: 'default-flow', priority: 0 };
const unlimited = { maxRequests: Infinity, maxBytes: Infinity };

/** What waits for a signal without any caller's frame. `node` is the least: a promise that a listener settles. */
const queues = {
  node: () => (signal) => new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true })),
  headgate: () => {
    const saturationDetector = concurrencyDetector({ maxConcurrency: 1 });
    const flow = new FlowController({ saturationDetector, limits: unlimited, defaultBand: { limits: unlimited } });
    void flow.enqueue({ byteSize: 0 }, flowKey);
    return (signal) => flow.enqueue({ byteSize: 0, signal }, flowKey);
  },
};

/** `abort()` without a reason makes an error with its stack for each, which is Node's. */
async function runAlone(makeQueue, jobs) {
  const wait = makeQueue();
  const cancelAll = async (...why) => {
    const controllers = Array.from({ length: jobs }, () => new AbortController());
    const waiting = controllers.map(({ signal }) => wait(signal));
    globalThis.gc();
    const startedAtMs = performance.now();
    for (const controller of controllers) controller.abort(...why);
    await Promise.all(waiting);
    return nsPerOp(startedAtMs, jobs);
  };
  return { ns: await cancelAll(reason), plainNs: await cancelAll() };
}

export default [
  {
    name: 'cancel',
    title: 'cancel: 100,000 waiting requests are cancelled, half by signals of their own, half by ten shared ones',
    jobs: 100_000,
    needs: ['abort'],
    run,
  },
  {
    name: 'cancel-alone',
    title:
      'cancel-alone: 100,000 waiting requests are cancelled by signals of their own, by enqueue alone, without a caller',
    jobs: 100_000,
    ways: queues,
    run: runAlone,
  },
  {
    name: 'mass-cancel',
    title: 'mass-cancel: waves of 5,000 clients arrive and all give up',
    jobs: 100_000,
    needs: ['abort'],
    run: runWaves,
  },
];
