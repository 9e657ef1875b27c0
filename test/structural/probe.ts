/**
 * Measures memory and leftovers in a process of its own, started with --expose-gc, and prints the figures as JSON. Not
 * a test: see footprint.test.ts.
 */
import Denque from 'denque';
import { concurrencyDetector, FlowController, type FlowKey, type FlowRequest, roundRobin } from '../../src/index.js';

const requests = 50_000;
const flowKey: FlowKey = { fairnessId: 'a', priority: 0 };
const limits = { maxRequests: 1e6, maxBytes: 1e9 };

/** Something that one waits for, and gives back. */
interface Seats {
  submit(options?: Partial<FlowRequest>, key?: FlowKey): Promise<boolean>;
  open(): void;
}

/** The least that a fair wait can cost: a semaphore of one deque, resuming its caller. */
function permits(): Seats {
  const line = new Denque<() => void>();
  return {
    async submit() {
      await new Promise<void>((resolve) => line.push(resolve));
      line.shift()?.();
      return true;
    },
    open: () => line.shift()?.(),
  };
}

function headgate(): Seats & { flow: FlowController } {
  const flow = new FlowController({
    saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    limits,
    bands: [{ priority: 0, limits, fairness: roundRobin() }],
    flowIdleTimeout: '1ms',
  });
  const held = flow.tryEnqueue({ byteSize: 1 }, flowKey);
  return {
    flow,
    async submit(options, key = flowKey) {
      const outcome = await flow.enqueue({ byteSize: 1, ...options }, key);
      if (outcome.type !== 'Dispatched') return false;
      outcome.lease.release();
      return true;
    },
    open: () => held?.type === 'Dispatched' && held.lease.release(),
  };
}

function heapBytes(): number {
  for (let round = 0; round < 3; round++) globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

/**
 * Bytes that one call makes, garbage included: the median of several attempts, because a collection may fall into one,
 * and of the round where it is least, because a machine that is busy optimizes code late.
 */
function allocatedBy(call: () => unknown): number {
  return Math.min(...Array.from({ length: 10 }, () => medianOf(call)));
}

function medianOf(call: () => unknown): number {
  for (let i = 0; i < 20_000; i++) call();
  const calls = 500;
  const attempts: number[] = [];
  for (let attempt = 0; attempt < 21; attempt++) {
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < calls; i++) call();
    attempts.push((process.memoryUsage().heapUsed - before) / calls);
  }
  return attempts.sort((a, b) => a - b)[10] ?? 0;
}

/** Of a request that never waits, from `tryEnqueue` to `release`. */
function allocatedInPassing(): number {
  const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
  const request: FlowRequest = { byteSize: 1 };
  return allocatedBy(() => {
    const outcome = flow.tryEnqueue(request, flowKey);
    if (outcome?.type === 'Dispatched') outcome.lease.release();
  });
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Bytes that each waiting request occupies, and that each leaves behind when it went. */
async function backlog(seats: Seats): Promise<{ waiting: number; left: number }> {
  const promises: (Promise<boolean> | undefined)[] = new Array(requests).fill(undefined);
  const before = heapBytes();
  for (let i = 0; i < requests; i++) promises[i] = seats.submit();
  const waiting = (heapBytes() - before) / requests;
  seats.open();
  for (let i = 0; i < requests; i++) {
    if ((await promises[i]) !== true) throw new Error(`request ${i} was not dispatched`);
    promises[i] = undefined;
  }
  await turn();
  return { waiting, left: (heapBytes() - before) / requests };
}

/** Bytes that each request leaves behind that left the queue without a lease. */
async function leftBy(seats: Seats, leave: (submit: Seats['submit']) => Promise<unknown>): Promise<number> {
  const before = heapBytes();
  await leave((options, key) => seats.submit(options, key));
  await turn();
  return (heapBytes() - before) / requests;
}

async function cancelAll(submit: Seats['submit']): Promise<void> {
  const shared = new AbortController();
  const controllers = Array.from({ length: requests }, (_, i) => (i % 2 === 0 ? shared : new AbortController()));
  const all = controllers.map(({ signal }, i) => submit({ signal }, { fairnessId: `f${i % 100}` }));
  for (const controller of controllers) controller.abort('gone');
  if ((await Promise.all(all)).includes(true)) throw new Error('a cancelled request was dispatched');
}

async function expireAll(submit: Seats['submit']): Promise<void> {
  const all = Array.from({ length: requests }, (_, i) =>
    submit({ ttlMs: 1 + (i % 30) }, { fairnessId: `f${i % 100}` }),
  );
  if ((await Promise.all(all)).includes(true)) throw new Error('an expired request was dispatched');
}

async function main(): Promise<void> {
  // Twice: the first time pays for compiled code and grown tables.
  await backlog(permits());
  await backlog(headgate());
  const passing = allocatedInPassing();
  const bound = await backlog(permits());
  const own = await backlog(headgate());

  const full = headgate();
  for (const leave of [cancelAll, expireAll]) await leave(full.submit);
  const cancelled = await leftBy(full, cancelAll);
  const expired = await leftBy(full, expireAll);
  full.open();
  await turn();
  const resources = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout' || kind === 'Immediate');
  console.log(
    JSON.stringify({ passing, bound, own, cancelled, expired, resources, waiting: full.flow.stats().waiting }),
  );
}

await main();
