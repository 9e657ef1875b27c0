/** Real traffic of 27 clients, and weights: who receives how much? */
import { expect, it } from 'vitest';
import { type FlowFairnessPolicy, leastService, virtualTokenCounter } from '../../../src/index.js';
import { byPrompt, spreadOf } from '../../tiers/2-fairness/by-cost/backlogged.js';
import { FakeBand, type Running } from '../../tiers/2-fairness/by-cost/fake-band.js';

interface Trace {
  readonly rows: readonly (readonly [t: number, client: number, input: number, output: number])[];
}

const slots = 16;
/** Seconds that a token takes: a little faster than the trace asks for, so that heavy clients queue. */
const secondsPerToken = 0.02;

interface Played {
  readonly served: number;
  /** The largest difference between what two clients received while both waited, and its bound. */
  readonly difference: number;
  readonly bound: number;
}

/** Plays the trace at a server of `slots`; cost is input + 2 · output. First come, first served without a policy. */
function play({ rows }: Trace, policy: FlowFairnessPolicy | undefined): Played {
  const band = new FakeBand(policy ?? leastService());
  const received = new Map<string, number>();
  const since = new Map<string, [low: number, high: number]>();
  const outputs = new Map<number, number>();
  const line: Running[] = [];
  const running: { startedAtS: number; endsAtS: number; run: Running; output: number }[] = [];
  let difference = 0;
  let served = 0;
  let largest = 0;
  const names = [...new Set(rows.map(([, client]) => String(client)))];

  const look = (): void => {
    const waiting = names.filter((name) => band.flow(name).waiting > 0);
    for (const pair of since.keys()) if (pair.split(' ').some((name) => band.flow(name).waiting === 0)) since.delete(pair);
    for (const a of waiting) {
      for (const b of waiting) {
        if (a >= b) continue;
        const now = (received.get(a) ?? 0) - (received.get(b) ?? 0);
        const [low, high] = since.get(`${a} ${b}`) ?? [now, now];
        since.set(`${a} ${b}`, [Math.min(low, now), Math.max(high, now)]);
        difference = Math.max(difference, Math.max(high, now) - Math.min(low, now));
      }
    }
  };
  const next = (): Running | undefined => {
    if (policy !== undefined) return band.serve();
    const first = line.shift();
    if (first === undefined) return undefined;
    first.flow.queue.shift();
    return first;
  };
  /** What has streamed by now. */
  const report = (nowS: number): void => {
    for (const { run, output, startedAtS, endsAtS } of running) {
      const part = Math.min((nowS - startedAtS) / (endsAtS - startedAtS), 1);
      band.report(run, { promptTokens: run.item.tokens, completionTokens: Math.floor(output * part) });
    }
  };
  const start = (nowS: number): void => {
    if (policy !== undefined) report(nowS);
    while (running.length < slots) {
      const run = next();
      if (run === undefined) return;
      const output = outputs.get(run.item.sequence) as number;
      const cost = run.item.tokens + 2 * output;
      largest = Math.max(largest, cost);
      received.set(run.flow.fairnessId, (received.get(run.flow.fairnessId) ?? 0) + cost);
      running.push({ run, output, startedAtS: nowS, endsAtS: nowS + (run.item.tokens / 10 + output) * secondsPerToken });
      served++;
      look();
    }
  };
  const finish = (untilS: number): void => {
    for (;;) {
      running.sort((a, b) => a.endsAtS - b.endsAtS);
      const first = running[0];
      if (first === undefined || first.endsAtS > untilS) return;
      running.shift();
      band.nowMs = Math.max(band.nowMs, first.endsAtS * 1000);
      const usage = { promptTokens: first.run.item.tokens, completionTokens: first.output };
      if (policy !== undefined) band.settle(first.run, usage);
      start(first.endsAtS);
    }
  };
  for (const [t, client, input, output] of rows) {
    finish(t);
    band.nowMs = Math.max(band.nowMs, t * 1000);
    const name = String(client);
    if (policy === undefined) {
      const flow = band.flow(name);
      const item = { tokens: input, sequence: served + line.length, fairnessId: name } as Running['item'];
      outputs.set(item.sequence, output);
      flow.queue.push(item);
      line.push({ flow, item });
    } else outputs.set(band.add(name, { tokens: input }).sequence, output);
    look();
    start(t);
  }
  finish(Number.POSITIVE_INFINITY);
  // Two requests, and what is mispredicted of all that a client may have running.
  return { served, difference, bound: 2 * largest + 2 * slots * largest };
}

export function realTrace(trace: Trace): void {
  it('is served whole, and more evenly than first come, first served, within the bound', () => {
    const fcfs = play(trace, undefined);
    const vtc = play(trace, virtualTokenCounter());
    expect([fcfs.served, vtc.served]).toEqual([trace.rows.length, trace.rows.length]);
    expect(vtc.difference).toBeLessThanOrEqual(vtc.bound);
    expect(vtc.difference).toBeLessThan(fcfs.difference);
  });
}

interface Paper {
  readonly weighted: { readonly weights: readonly number[]; readonly serviceRate: readonly number[]; readonly ratio: readonly number[] };
  readonly table_real: readonly { readonly scheduler: string; readonly maxDiff: number }[];
}

export function weighted(paper: Paper, all: Readonly<Record<string, never>>): void {
  it('gives clients that keep requests waiting service in proportion to their weights', () => {
    const { weights, ratio } = paper.weighted;
    for (const slots of [1, 8]) {
      const setup = { weights, slots, seed: 1, estimate: (cost: number) => cost, dispatches: 20_000 };
      const { shares } = spreadOf(virtualTokenCounter(byPrompt), setup);
      for (const [i, expected] of ratio.entries()) {
        expect(Math.abs((shares[i] as number) / (shares[0] as number) / expected - 1)).toBeLessThan(0.03);
      }
    }
  });

  const trace = all.vtc_real_trace as Trace | undefined;
  it.runIf(trace !== undefined)('has the schedulers in the order of the table, by the largest difference', () => {
    const policies: Record<string, FlowFairnessPolicy | undefined> = {
      FCFS: undefined,
      VTC: virtualTokenCounter({ charge: 'stream' }),
      'VTC(predict)': virtualTokenCounter(),
    };
    const found = paper.table_real.map(({ scheduler }) => {
      if (!(scheduler in policies)) throw new Error(`nobody knows the scheduler ${scheduler}`);
      return play(trace as Trace, policies[scheduler]).difference;
    });
    const fcfs = paper.table_real.findIndex(({ scheduler }) => scheduler === 'FCFS');
    for (const [i, { maxDiff }] of paper.table_real.entries()) {
      if (maxDiff < (paper.table_real[fcfs]?.maxDiff ?? 0)) expect(found[i]).toBeLessThan(found[fcfs] as number);
    }
  });
}
