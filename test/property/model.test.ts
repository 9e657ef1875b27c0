import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  edf,
  FlowController,
  type FlowRequest,
  fcfs,
  globalStrict,
  type Lease,
  roundRobin,
  sloDeadline,
} from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { Random } from './random.js';
import { type Arrival, type Fairness, type Ordering, Reference } from './reference.js';

interface NumberedRequest extends FlowRequest {
  readonly id: number;
}

const fairnessPolicies = { globalStrict, roundRobin };
const orderingPolicies = { fcfs, edf, sloDeadline };
const fairnesses = Object.keys(fairnessPolicies) as Fairness[];
const orderings = Object.keys(orderingPolicies) as Ordering[];
const priorities = [7, 0, -2];

/** One history against both; every step must leave the same log. */
async function compare(
  seed: number,
  fairness: (priority: number) => Fairness,
  ordering: (priority: number) => Ordering,
): Promise<number> {
  const random = new Random(seed);
  const maxRunning = 1 + random.int(4);
  const clock = new ManualClock(random.int(1000));
  const reference = new Reference(clock.now(), maxRunning, fairness, ordering);
  const flow = new FlowController<NumberedRequest>({
    saturationDetector: concurrencyDetector({ maxConcurrency: maxRunning }),
    clock,
    defaultRequestTtl: 0,
    bands: priorities.map((priority) => ({
      priority,
      fairness: fairnessPolicies[fairness(priority)](),
      ordering: orderingPolicies[ordering(priority)](),
    })),
  });
  const log: string[] = [];
  const running: { id: number; lease: Lease }[] = [];
  const aborts = new Map<number, AbortController>();
  flow.on('dispatched', ({ item, lease }) => {
    const { id } = item.request as NumberedRequest;
    log.push(`${id} Dispatched`);
    running.push({ id, lease });
  });
  flow.on('dropped', ({ request, outcome }) => log.push(`${(request as NumberedRequest).id} ${outcome.type}`));
  // Few flows and short gaps at first, many flows and a long queue in other histories.
  const flows = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'].slice(0, 1 + random.int(10));
  const load = 0.35 + random.next() * 0.4;
  for (let id = 0; id < 150; id++) {
    if (random.chance(load)) {
      const ttlMs = random.chance(0.5) ? 5 + random.int(12) * 20 : 0;
      const sloTtftMs = random.chance(0.6) ? random.int(8) * 25 : undefined;
      const receivedAtMs = random.chance(0.3) ? clock.now() - random.int(5) * 10 : clock.now();
      const key = { fairnessId: random.pick(flows), priority: random.pick(priorities) };
      const abort = new AbortController();
      aborts.set(id, abort);
      const arrival: Arrival = {
        id,
        ...key,
        arrivedAtMs: clock.now(),
        receivedAtMs,
        ttlMs: ttlMs === 0 ? Number.POSITIVE_INFINITY : ttlMs,
        sloTtftMs: sloTtftMs ?? Number.POSITIVE_INFINITY,
      };
      reference.arrive(arrival);
      void flow.enqueue({ id, byteSize: 1, ttlMs, receivedAtMs, sloTtftMs, signal: abort.signal }, key);
    } else if (random.chance(0.65) && running.length > 0) {
      const [{ id: ended, lease }] = running.splice(random.int(running.length), 1) as [{ id: number; lease: Lease }];
      reference.release(ended);
      lease.release();
    } else if (random.chance(0.4)) {
      const aborted = random.int(id + 1);
      reference.abort(aborted);
      aborts.get(aborted)?.abort();
    } else {
      const ms = random.int(40);
      reference.advance(ms);
      clock.advance(ms);
    }
    expect(log, `history ${seed}, step ${id}`).toEqual(reference.log);
  }
  const { length } = log;
  await flow.close();
  return length;
}

describe.each(fairnesses)('under %s', (fairness) => {
  it.each(orderings)('%s dispatches in the order of the reference', async (ordering) => {
    let decisions = 0;
    for (let seed = 0; seed < 40; seed++) {
      decisions += await compare(
        seed,
        () => fairness,
        () => ordering,
      );
    }
    expect(decisions).toBeGreaterThan(2000);
  });
});

it('bands of different policies keep out of each other’s way', async () => {
  for (let seed = 1000; seed < 1040; seed++) {
    await compare(
      seed,
      (priority) => fairnesses[(seed + priority + 2) % 2] as Fairness,
      (priority) => orderings[(seed + priority + 2) % 3] as Ordering,
    );
  }
});
