/** Closed loops of clients at a number of seats, as Kubernetes tests its fair queueing: how many seats does each have over time? */
import { expect, it } from 'vitest';
import { type FlowFairnessPolicy, roundRobin, startTimeFairQueueing, virtualTokenCounter } from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { FakeBand, type Running, usage } from '../../tiers/2-fairness/by-cost/fake-band.js';

type Client = readonly [hash: number, threads: number, calls: number, exec: number, think: number, seats: number];

interface Case {
  readonly name: string;
  readonly phases: readonly { readonly expected: readonly number[]; readonly upstreamMargin: number }[];
  readonly setup: { readonly limit: number; readonly eval: number; readonly clients: readonly Client[] };
}

interface Apf {
  readonly cases: readonly Case[];
}

/** Seats that are taken, by client, on average over the time. A head that does not fit waits, and nobody passes it. */
function seatsOf(policy: FlowFairnessPolicy, { limit, eval: seconds, clients }: Case['setup']): number[] {
  const clock = new ManualClock();
  const band = new FakeBand(policy);
  const taken = clients.map(() => 0);
  let free = limit;
  let blocked: Running | undefined;
  const endMs = seconds * 1000;

  const run = ({ flow, item }: Running): void => {
    const client = Number(flow.fairnessId);
    const [, , , exec, think, seats] = clients[client] as Client;
    free -= seats;
    const fromMs = clock.now();
    clock.setTimeout(() => {
      free += seats;
      taken[client] = (taken[client] as number) + seats * Math.max(Math.min(clock.now(), endMs) - fromMs, 0);
      band.nowMs = clock.now();
      band.settle({ flow, item }, usage(seats * exec * 1000));
      const thread = threads.get(item.sequence) as { left: number };
      threads.delete(item.sequence);
      if (--thread.left > 0) clock.setTimeout(() => send(client, thread), think * 1000);
      serve();
    }, exec * 1000);
  };
  const serve = (): void => {
    band.nowMs = clock.now();
    for (;;) {
      blocked ??= band.serve();
      if (blocked === undefined) return;
      const seats = (clients[Number(blocked.flow.fairnessId)] as Client)[5];
      if (seats > free && free < limit) return;
      const next = blocked;
      blocked = undefined;
      run(next);
    }
  };
  const threads = new Map<number, { left: number }>();
  const send = (client: number, thread: { left: number }): void => {
    const [, , , exec, , seats] = clients[client] as Client;
    band.nowMs = clock.now();
    threads.set(band.add(String(client), { tokens: seats * exec * 1000 }).sequence, thread);
    serve();
  };
  for (const [client, [, count, calls]] of clients.entries()) {
    for (let j = 0; j < count; j++) clock.setTimeout(() => send(client, { left: calls }), 1 + j * 0.00009 + client * 0.00002);
  }
  clock.advance(endMs + 1);
  clock.advance(3_600_000);
  return taken.map((seatMs) => seatMs / endMs);
}

const byWork = { workOf: ({ tokens }: { tokens: number }) => ({ promptTokens: tokens, completionTokens: 0 }) };

export function apf({ cases }: Apf): void {
  const policies: readonly [string, () => FlowFairnessPolicy][] = [
    ['virtualTokenCounter', () => virtualTokenCounter(byWork)],
    ['startTimeFairQueueing', () => startTimeFairQueueing(byWork)],
  ];
  for (const { name, phases, setup } of cases) {
    it.each(policies)(`${name}: %s gives every client its fair number of seats`, (_, make) => {
      // Clients whose threads are split or grow wider over time have a phase for each; the last one is what lasts.
      const expected = phases[phases.length - 1]?.expected ?? [];
      const margin = Math.max(...phases.map(({ upstreamMargin }) => upstreamMargin), 0.05);
      const seats = seatsOf(make(), setup);
      for (const [i, fair] of expected.entries()) expect(Math.abs((seats[i] as number) / fair - 1)).toBeLessThanOrEqual(margin);
    });
  }

  it('the control, round robin by request, gives twice the seats to a client of wide requests', () => {
    const clients: Client[] = [
      [1, 6, 100, 1, 0, 1],
      [2, 6, 100, 1, 0, 2],
    ];
    const [narrow, wide] = seatsOf(roundRobin(), { limit: 6, eval: 40, clients }) as [number, number];
    expect(wide / narrow).toBeGreaterThan(1.7);
    const [fairNarrow, fairWide] = seatsOf(virtualTokenCounter(byWork), { limit: 6, eval: 40, clients }) as [number, number];
    expect(fairWide / fairNarrow).toBeLessThan(1.1);
  });
}
