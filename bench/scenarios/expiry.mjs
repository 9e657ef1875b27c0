// Those who wait run out of time, all while the event loop is busy elsewhere. Beside it: the same requests are
// dispatched instead.
import { concurrencyDetector, FlowController } from '../../dist/index.js';
import { heapBytes, nsPerOp } from '../lib/measure.mjs';
import { Permits } from '../subjects/permit.mjs';

const unlimited = { maxRequests: Infinity, maxBytes: Infinity };
const flowKey = { fairnessId: 'default-flow', priority: 0 };
/** Longer than it takes to line up. */
const shortestMs = 3000;

/** `wait` resolves to undefined for a request whose time was up, and else to what `leave` takes. */
const ways = {
  permit: () => {
    const permits = new Permits({ concurrency: 1, abort: true });
    return {
      wait: (ttlMs) =>
        permits.acquire({ ttlMs }).then(
          () => true,
          () => undefined,
        ),
      leave: () => permits.release(),
      close() {},
    };
  },
  headgate: () => {
    const saturationDetector = concurrencyDetector({ maxConcurrency: 1 });
    const flow = new FlowController({ saturationDetector, limits: unlimited, defaultBand: { limits: unlimited } });
    return {
      wait: (ttlMs) =>
        flow
          .enqueue({ byteSize: 0, ttlMs }, flowKey)
          .then((outcome) => (outcome.type === 'Dispatched' ? outcome : undefined)),
      leave: (outcome) => outcome.lease.release(),
      close: () => flow.close(),
    };
  },
  effect: async () => {
    // Not above: it is large, and every other measurement would have it in memory.
    const { Effect, Option, Semaphore } = await import('effect');
    const semaphore = Semaphore.makeUnsafe(1);
    return {
      async wait(ttlMs) {
        const take = semaphore.take(1);
        const taken = await Effect.runPromise(
          ttlMs === Infinity ? Effect.asSome(take) : Effect.timeoutOption(take, ttlMs),
        );
        return Option.isSome(taken) ? true : undefined;
      },
      leave: () => Effect.runSync(semaphore.release(1)),
      close() {},
    };
  },
};

// As in its subject: what waits costs the others time there.
ways.effect.share = 0.1;

/** Blocks the thread, as a long computation would. */
function block(durationMs) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Math.max(durationMs, 0));
}

async function lineUp(queue, jobs, ttlOf) {
  const first = await queue.wait(Infinity);
  const startedAtMs = performance.now();
  const waiting = Array.from({ length: jobs }, (_, i) => queue.wait(ttlOf(i)));
  if (performance.now() - startedAtMs > shortestMs)
    throw new Error('lining up took longer than the shortest time to live');
  return { first, waiting };
}

async function dispatchAll(queue, jobs, ttlOf) {
  const { first, waiting } = await lineUp(queue, jobs, ttlOf);
  const startedAtMs = performance.now();
  queue.leave(first);
  for (const turn of waiting) {
    const outcome = await turn;
    if (outcome === undefined) throw new Error('a request expired that should have been dispatched');
    queue.leave(outcome);
  }
  return nsPerOp(startedAtMs, jobs);
}

async function expireAll(queue, jobs, ttlOf) {
  const { first, waiting } = await lineUp(queue, jobs, ttlOf);
  block(shortestMs + ttlOf(jobs - 1) - ttlOf(0) + 10);
  const startedAtMs = performance.now();
  const outcomes = await Promise.all(waiting);
  const ns = nsPerOp(startedAtMs, jobs);
  if (outcomes.some((outcome) => outcome !== undefined))
    throw new Error('a request was dispatched that should have expired');
  queue.leave(first);
  return ns;
}

const expiryOf = (ttlOf) =>
  async function run(makeQueue, jobs) {
    const queue = await makeQueue();
    const emptyBytes = heapBytes();
    const before = await dispatchAll(queue, jobs, ttlOf);
    const ns = await expireAll(queue, jobs, ttlOf);
    // Twice, and the faster counts: a collection that happens to fall into it would flatter the ratio.
    const dispatchNs = Math.min(before, await dispatchAll(queue, jobs, ttlOf));
    const keptBytes = (heapBytes() - emptyBytes) / jobs;
    await queue.close();
    return { ns, dispatchNs, perDispatch: ns / dispatchNs, keptBytes };
  };

export default [
  {
    name: 'expiry',
    title: 'expiry: the time of 100,000 waiting requests is up, all with the same time to live',
    jobs: 100_000,
    repeat: 1,
    ways,
    run: expiryOf(() => shortestMs),
  },
  {
    name: 'expiry-mixed',
    title: 'expiry-mixed: the same with a thousand different times to live',
    jobs: 100_000,
    repeat: 1,
    ways,
    run: expiryOf((i) => shortestMs + (i % 1000)),
  },
];
