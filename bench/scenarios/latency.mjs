// What one request pays when nobody is in its way, and how long a free seat stays free when somebody waits for it.
import { concurrencyDetector, FlowController } from '../../dist/index.js';
import { Ledger } from '../lib/ledger.mjs';
import { concurrency, deferred, noOptions, nsPerOp, quantile } from '../lib/measure.mjs';

async function runUncontended(subject, jobs) {
  const ledger = new Ledger(jobs, concurrency);
  const gate = subject.create({ concurrency });
  const job = () => {
    ledger.start(ledger.ran);
    ledger.end();
  };
  const startedAtMs = performance.now();
  for (let i = 0; i < jobs; i++) await gate.submit(job, noOptions);
  const ns = nsPerOp(startedAtMs, jobs);
  ledger.verify(jobs);
  await gate.close();
  return { ns };
}

/** Held seats, counted: nothing less keeps a limit. */
class Counter {
  held = 0;
  #limit;

  constructor(limit) {
    this.#limit = limit;
  }

  tryEnter() {
    if (this.held >= this.#limit) return undefined;
    this.held++;
    return this;
  }

  async enter() {
    return this.tryEnter();
  }

  leave() {
    this.held--;
  }
}

const ways = {
  counter: () => {
    const counter = new Counter(concurrency);
    return {
      tryEnter: () => counter.tryEnter(),
      enter: () => counter.enter(),
      leave: () => counter.leave(),
      held: () => counter.held,
    };
  },
  headgate: () => {
    const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: concurrency }) });
    const request = { byteSize: 512 };
    const flowKey = { fairnessId: 'tenant-a', priority: 0 };
    return {
      tryEnter: () => flow.tryEnqueue(request, flowKey),
      enter: () => flow.enqueue(request, flowKey),
      leave: (outcome) => outcome.lease.release(),
      held: () => flow.stats().inFlight,
    };
  },
};

function verifyEmpty(seats) {
  if (seats.held() !== 0) throw new Error(`${seats.held()} seats are still held`);
}

async function runTry(makeSeats, jobs) {
  const seats = makeSeats();
  const startedAtMs = performance.now();
  for (let i = 0; i < jobs; i++) seats.leave(seats.tryEnter());
  const ns = nsPerOp(startedAtMs, jobs);
  verifyEmpty(seats);
  return { ns };
}

async function runEnqueue(makeSeats, jobs) {
  const seats = makeSeats();
  const startedAtMs = performance.now();
  for (let i = 0; i < jobs; i++) seats.leave(await seats.enter());
  const ns = nsPerOp(startedAtMs, jobs);
  verifyEmpty(seats);
  return { ns };
}

/** One seat, one that waits: from the end of the first job to the start of the second. */
async function runWakeUp(subject, jobs) {
  const gate = subject.create({ concurrency: 1 });
  const samples = new Float64Array(jobs);
  for (let i = 0; i < jobs; i++) {
    const hold = deferred();
    let endedAtMs = 0;
    const first = gate.submit(async () => {
      await hold.promise;
      endedAtMs = performance.now();
    }, noOptions);
    const second = gate.submit(() => {
      samples[i] = (performance.now() - endedAtMs) * 1e6;
    }, noOptions);
    await undefined;
    hold.resolve();
    await first;
    await second;
  }
  await gate.close();
  const sorted = samples.sort();
  if (sorted[0] < 0) throw new Error('the second job started before the first had ended');
  return { ns: quantile(sorted, 0.5), p99Ns: quantile(sorted, 0.99) };
}

export default [
  {
    name: 'uncontended',
    title: 'uncontended: submit while seats are free, one after the other',
    jobs: 200_000,
    run: runUncontended,
    skips: ['bare'],
  },
  {
    name: 'enqueue',
    title: 'enqueue: awaited, and released, while seats are free',
    jobs: 1_000_000,
    ways,
    run: runEnqueue,
  },
  { name: 'try', title: 'try: tryEnqueue and release, against a counter', jobs: 1_000_000, ways, run: runTry },
  {
    name: 'wake-up',
    title: 'wake-up: from the end of one job to the start of the one that waits for its seat, median',
    jobs: 50_000,
    run: runWakeUp,
    skips: ['bare'],
  },
];
