/**
 * Closed loops of clients at a number of seats, as Kubernetes tests its fair queueing: how many seats does each have
 * over time?
 */
import { expect, it } from 'vitest';
import { maxMinShares } from '../../../scripts/max-min-shares.mjs';
import { type FlowFairnessPolicy, roundRobin, shuffleSharded, virtualTokenCounter } from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { deal, flowHash } from '../../../src/tiers/2-fairness/by-cost/shuffle-sharding.js';
import { startTimeFairQueueing } from '../../../src/tiers/2-fairness/virtual-token-counter.js';
import { FakeBand, type Running, usage } from '../../tiers/2-fairness/by-cost/fake-band.js';

/** Seconds. `think` may be a little below 0: the next call then comes before this one ends. */
type Client = readonly [hash: number, threads: number, calls: number, exec: number, think: number, seats: number];

interface Setup {
  /** 0: what does not fit is rejected, and its thread ends. Below 0: nobody is limited. */
  readonly queues: number;
  readonly hand: number;
  readonly limit: number;
  readonly eval: number;
  readonly clients: readonly Client[];
}

/**
 * The time is divided among the phases. Short queues, which reject, and phases that upstream expects to be unfair make
 * no difference here: nobody is rejected, and all shares are fair.
 */
interface Case {
  readonly name: string;
  readonly phases: readonly { readonly expected: readonly number[]; readonly upstreamMargin: number }[];
  readonly setup: Setup;
}

interface Apf {
  readonly cases: readonly Case[];
}

/** The fair part of what clients with so many threads could use. */
function fairSeats({ limit, queues, clients }: Setup, threads: readonly number[]): number[] {
  const used = ([, , , exec, think, seats]: Client): number => (seats * exec) / (exec + think);
  const demands = clients.map((client, i) => (threads[i] as number) * used(client));
  return maxMinShares(demands, queues < 0 ? Number.POSITIVE_INFINITY : limit);
}

/** Threads of each client in each phase. The first of two has half the threads of the clients that this explains. */
function threadsOf({ name, phases, setup }: Case): number[][] {
  const all = setup.clients.map(([, threads]) => threads);
  const fits = (threads: readonly number[], phase: number): boolean =>
    fairSeats(setup, threads).every((fair, i) => Math.abs(fair - (phases[phase]?.expected[i] as number)) < 1e-3 * fair);
  const subsets = phases.length === 1 ? 1 : 2 ** all.length;
  for (let subset = 0; subset < subsets; subset++) {
    const first = all.map((threads, i) => ((subset >> i) & 1 ? Math.floor(threads / 2) : threads));
    const threads = phases.map((_, phase) => (phase === 0 ? first : all));
    if (threads.every(fits)) return threads;
  }
  throw new Error(`nobody knows the clients of ${name} whose fair shares are expected`);
}

/**
 * Seats that are taken, by client, on average over each phase. A head that does not fit waits, and nobody passes it.
 * Without a policy nobody waits.
 */
function seatsOf(
  policy: FlowFairnessPolicy | undefined,
  { limit, queues, eval: seconds, clients }: Setup,
  threadsOfPhases: readonly (readonly number[])[],
  names: readonly string[] = clients.map((_, i) => String(i)),
): number[][] {
  const clock = new ManualClock();
  const band = new FakeBand(policy ?? roundRobin());
  const phaseMs = (seconds * 1000) / threadsOfPhases.length;
  const taken = threadsOfPhases.map(() => clients.map(() => 0));
  const capacity = queues < 0 ? Number.POSITIVE_INFINITY : limit;
  let free = capacity;
  let blocked: Running | undefined;
  const threads = new Map<number, { left: number }>();

  const note = (client: number, seats: number, fromMs: number): void => {
    for (const [phase, sums] of taken.entries()) {
      const spanMs = Math.min(clock.now(), (phase + 1) * phaseMs) - Math.max(fromMs, phase * phaseMs);
      sums[client] = (sums[client] as number) + seats * Math.max(spanMs, 0);
    }
  };
  const run = ({ flow, item }: Running): void => {
    const client = names.indexOf(flow.fairnessId);
    const [, , , exec, think, seats] = clients[client] as Client;
    free -= seats;
    const fromMs = clock.now();
    const thread = threads.get(item.sequence) as { left: number };
    threads.delete(item.sequence);
    clock.setTimeout(() => {
      free += seats;
      note(client, seats, fromMs);
      band.nowMs = clock.now();
      band.settle({ flow, item }, usage(seats * exec * 1000));
      serve();
    }, exec * 1000);
    if (--thread.left > 0) clock.setTimeout(() => send(client, thread), (exec + think) * 1000);
  };
  const serve = (): void => {
    band.nowMs = clock.now();
    for (;;) {
      blocked ??= band.serve();
      if (blocked === undefined) return;
      const seats = (clients[names.indexOf(blocked.flow.fairnessId)] as Client)[5];
      if (seats > free && free < capacity) return;
      const next = blocked;
      blocked = undefined;
      run(next);
    }
  };
  const send = (client: number, thread: { left: number }): void => {
    const [, , , exec, , seats] = clients[client] as Client;
    if (policy === undefined && seats > free) return;
    band.nowMs = clock.now();
    threads.set(band.add(names[client] as string, { tokens: seats * exec * 1000 }).sequence, thread);
    serve();
  };
  for (const [client, [, count, calls]] of clients.entries()) {
    for (let j = 0; j < count; j++) {
      // The threads of a split client that do not run at first begin with the last phase, and make half the calls.
      const isLate = j >= (threadsOfPhases[0]?.[client] as number);
      const atMs = (isLate ? phaseMs : 0) + j * 0.00009 + client * 0.00002;
      clock.setTimeout(() => send(client, { left: isLate ? Math.floor(calls / 2) : calls }), atMs);
    }
  }
  clock.advance(seconds * 1000 + 1);
  clock.advance(Math.max(...clients.map(([, , , exec]) => exec)) * 1000);
  return taken.map((sums) => sums.map((seatMs) => seatMs / phaseMs));
}

/** Names whose hands have as many queues in common as those of the clients' hashes. */
function namesOf({ queues, hand, clients }: Setup): string[] {
  const shared = (a: readonly number[], b: readonly number[]): number => a.filter((card) => b.includes(card)).length;
  const theirs = clients.map(([hash]) => deal(BigInt(hash), queues, hand));
  const ours: number[][] = [];
  const names: string[] = [];
  for (let i = 0; names.length < clients.length; i++) {
    if (i > 100_000) throw new Error(`nobody knows names for hands such as ${JSON.stringify(theirs)}`);
    const cards = deal(flowHash('', String(i)), queues, hand);
    const wanted = theirs[names.length] as number[];
    if (ours.some((other, j) => shared(other, cards) !== shared(theirs[j] as number[], wanted))) continue;
    names.push(String(i));
    ours.push(cards);
  }
  return names;
}

const byWork = { workOf: ({ tokens }: { tokens: number }) => ({ promptTokens: tokens, completionTokens: 0 }) };

/** What sums of so many spans may be off by, where upstream's clock has whole nanoseconds. */
const rounding = 1e-6;

/** The furthest that a client's seats are from its fair ones, in parts of the margin. */
function unfairness({ phases }: Case, seats: readonly (readonly number[])[]): number {
  const parts = phases.flatMap(({ expected, upstreamMargin }, phase) =>
    expected.map((fair, i) => Math.abs((seats[phase]?.[i] as number) / fair - 1) / Math.max(upstreamMargin, rounding)),
  );
  return Math.max(...parts);
}

export function apf({ cases }: Apf): void {
  for (const row of cases) {
    const { name, setup } = row;
    const { queues, hand: handSize, clients } = setup;
    const unfairnessOf = (policy: FlowFairnessPolicy | undefined, names?: readonly string[]): number =>
      unfairness(row, seatsOf(policy, setup, threadsOf(row), names));

    const byCounters = [virtualTokenCounter(byWork), startTimeFairQueueing(byWork)];
    it.each(byCounters)(`${name}: $type gives every client its fair number of seats`, (policy) => {
      expect(unfairnessOf(policy)).toBeLessThanOrEqual(1);
    });

    if (queues > 0) {
      it(`${name}: shuffle sharding gives every client its fair number of seats`, () => {
        expect(unfairnessOf(shuffleSharded({ ...byWork, queues, handSize }), namesOf(setup))).toBeLessThanOrEqual(1);
      });
    }

    if (new Set(clients.map(([, , , , , seats]) => seats)).size > 1) {
      it(`${name}: the control, round robin by request, does not`, () => {
        expect(unfairnessOf(roundRobin())).toBeGreaterThan(1);
      });
    }

    if (queues === 0) {
      it(`${name}: the control, without waiting, does not`, () => {
        expect(unfairnessOf(undefined)).toBeGreaterThan(1);
      });
    }
  }

  it('the control, round robin by request, gives twice the seats to a client of wide requests', () => {
    const clients: Client[] = [
      [1, 6, 100, 1, 0, 1],
      [2, 6, 100, 1, 0, 2],
    ];
    const setup = { queues: 9, hand: 1, limit: 6, eval: 40, clients };
    const ratioOf = (policy: FlowFairnessPolicy): number => {
      const [[narrow, wide]] = seatsOf(policy, setup, [[6, 6]]) as [[number, number]];
      return wide / narrow;
    };
    expect(ratioOf(roundRobin())).toBeGreaterThan(1.7);
    expect(ratioOf(virtualTokenCounter(byWork))).toBeLessThan(1.1);
  });
}
