/**
 * A million of something, in a process of its own: prints what was looked at, what is left, and how much heap it holds.
 * Not a test: see scale.test.ts.
 */
import {
  concurrencyDetector,
  FlowController,
  type FlowControllerOptions,
  type FlowKey,
  type FlowStats,
  type Lease,
  roundRobin,
} from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { countWork } from './work-meter.js';

const million = 1_000_000;
const limits = { maxRequests: 2 * million, maxBytes: 2 * million };
const request = { byteSize: 1 };

/** What one scenario did. Work is counted in elements that were looked at. */
export interface ScaleFigures {
  /** Requests, and the work per request on the way in and on the way out. */
  requests: number;
  workIn: number;
  workOut: number;
  /** The most that a single request caused on its way in, and on its way out. */
  mostIn: number;
  mostOut: number;
  /** At the height of it. */
  flows: number;
  waiting: number;
  /** At the end. */
  stats: FlowStats;
  timers: number;
  listeners: number;
  /** Bytes per request. */
  left: number;
}

class Scenario {
  readonly clock = new ManualClock();
  readonly flow: FlowController;
  /** The lease that came last. */
  lease: Lease | undefined;

  constructor(options: Partial<FlowControllerOptions> = {}) {
    this.flow = new FlowController({
      saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
      clock: this.clock,
      limits,
      bands: [{ priority: 0, limits, fairness: roundRobin() }],
      maxFlows: 10_000,
      ...options,
    });
  }

  /** Takes the only seat. */
  hold(): void {
    const outcome = this.flow.tryEnqueue(request, { fairnessId: 'held' });
    if (outcome?.type === 'Dispatched') this.lease = outcome.lease;
  }
}

/** Runs `step` for each of `count`, and tells the work per step and the most that one took. */
function each(count: number, step: (index: number) => void): { mean: number; most: number } {
  let most = 0;
  const all = countWork((lookedAt) => {
    for (let i = 0; i < count; i++) {
      const before = lookedAt();
      step(i);
      most = Math.max(most, lookedAt() - before);
    }
  });
  return { mean: all / count, most };
}

function heapBytes(): number {
  for (let round = 0; round < 3; round++) globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

type Partly = Omit<ScaleFigures, 'stats' | 'timers' | 'left' | 'listeners'> & { listeners?: number };

/** A million fairness IDs, each seen once: half of them pass through, half of them wait. */
async function ids(): Promise<[Scenario, Partly]> {
  const scenario = new Scenario();
  const { flow } = scenario;
  const passed = each(million / 2, (i) => {
    const outcome = flow.tryEnqueue(request, { fairnessId: `passing-${i}` });
    if (outcome?.type === 'Dispatched') outcome.lease.release();
  });
  scenario.hold();
  const queued = each(million / 2, (i) => void flow.enqueue(request, { fairnessId: `waiting-${i}` }));
  const { flows, waiting } = flow.stats();
  await flow.close();
  const most = Math.max(passed.most, queued.most);
  return [
    scenario,
    { requests: million, workIn: queued.mean, workOut: passed.mean, mostIn: most, mostOut: most, flows, waiting },
  ];
}

/** Signals are the host's: these count who listens, and cost nothing else. */
class PlainSignal {
  static listeners = 0;
  aborted = false;
  private listener: { handleEvent(): void } | undefined = undefined;

  addEventListener(_type: 'abort', listener: { handleEvent(): void }): void {
    this.listener = listener;
    PlainSignal.listeners++;
  }

  removeEventListener(): void {
    this.listener = undefined;
    PlainSignal.listeners--;
  }

  abort(): void {
    this.aborted = true;
    this.listener?.handleEvent();
  }
}

/**
 * A million requests that wait in one band are aborted, in waves, each from another end; every request has a signal of
 * its own.
 */
async function aborts(): Promise<[Scenario, Partly]> {
  const scenario = new Scenario();
  const { flow } = scenario;
  scenario.hold();
  const count = million / 4;
  // Front to back, back to front, scattered by a multiplier without a common factor, and in swapped pairs.
  const orders = [
    (i: number) => i,
    (i: number) => count - 1 - i,
    (i: number) => (i * 7919) % count,
    (i: number) => i ^ 1,
  ];
  const figures = { requests: million, workIn: 0, workOut: 0, mostIn: 0, mostOut: 0, flows: 0, waiting: 0 };
  for (const place of orders) {
    const signals = Array.from({ length: count }, () => new PlainSignal());
    const queued = each(count, (i) => {
      const signal = signals[i] as unknown as AbortSignal;
      void flow.enqueue({ byteSize: 1, signal }, { fairnessId: `f${i % 10}` });
    });
    figures.waiting = Math.max(figures.waiting, flow.stats().waiting);
    figures.flows = Math.max(figures.flows, flow.stats().flows);
    const left = each(count, (i) => signals[place(i)]?.abort());
    figures.workIn = Math.max(figures.workIn, queued.mean);
    figures.workOut = Math.max(figures.workOut, left.mean);
    figures.mostIn = Math.max(figures.mostIn, queued.most);
    figures.mostOut = Math.max(figures.mostOut, left.most);
  }
  return [scenario, { ...figures, listeners: PlainSignal.listeners }];
}

/** One flow with a million requests beside a hundred thousand flows with one. */
async function giant(): Promise<[Scenario, Partly]> {
  const scenario = new Scenario({ maxFlows: 200_000 });
  const { flow, clock } = scenario;
  scenario.hold();
  const small = 100_000;
  const big: FlowKey = { fairnessId: 'big' };
  const queued = each(million, () => void flow.enqueue(request, big));
  const others = each(small, (i) => void flow.enqueue(request, { fairnessId: `small-${i}` }));
  const { flows, waiting } = flow.stats();
  const served = new Map<string, number>();
  flow.on('dispatched', ({ item, lease }) => {
    scenario.lease = lease;
    served.set(item.fairnessId, (served.get(item.fairnessId) ?? 0) + 1);
  });
  const dispatched = each(small + 1, () => scenario.lease?.release());
  if (served.size !== small + 1) throw new Error(`${served.size} flows were served in the first round`);
  // Idle flows are forgotten, a few with each request that comes.
  clock.advance(600_000);
  scenario.lease?.release();
  for (let i = 0; i < small / 4; i++) {
    const outcome = flow.tryEnqueue(request, big);
    if (outcome?.type === 'Dispatched') outcome.lease.release();
  }
  return [
    scenario,
    {
      requests: million + small,
      workIn: Math.max(queued.mean, others.mean),
      workOut: dispatched.mean,
      mostIn: Math.max(queued.most, others.most),
      mostOut: dispatched.most,
      flows,
      waiting,
    },
  ];
}

async function main(name: string): Promise<void> {
  const before = heapBytes();
  const run = { ids, aborts, giant }[name];
  if (run === undefined) throw new Error(`expected ids, aborts or giant, got ${name}`);
  const [{ flow, clock, lease }, figures] = await run();
  lease?.release();
  await flow.close();
  await new Promise((resolve) => setImmediate(resolve));
  const left = (heapBytes() - before) / figures.requests;
  console.log(JSON.stringify({ listeners: 0, ...figures, stats: flow.stats(), timers: clock.pendingTimers, left }));
}

await main(process.argv[2] ?? '');
