/** One answer of all workers, with workers that a test plays on a manual clock. */
import { EventEmitter } from 'node:events';
import promClient from 'prom-client';
import { expect, it } from 'vitest';
import { type CallPort, type Calls, calls } from '../../../src/base/calls.js';
import { WorkerBoard, type WorkerQuestion } from '../../../src/gateway/workers/worker-board.js';
import { ManualClock } from '../../../src/testing/index.js';

interface Played {
  readonly calls: Calls<WorkerQuestion>;
  readonly heard: WorkerQuestion[];
  /** What it answers; a promise that never settles plays one that hangs. */
  answers: Partial<Record<WorkerQuestion['what'], unknown>>;
  exit(): void;
}

function played(board: WorkerBoard, joins = true): Played & { join(): void } {
  const near = Object.assign(new EventEmitter(), { send: (message: object) => void far.emit('message', message) });
  const far = Object.assign(new EventEmitter(), { send: (message: object) => void near.emit('message', message) });
  const heard: WorkerQuestion[] = [];
  const worker: Played = {
    calls: calls<WorkerQuestion>(far as CallPort, 'gateway', (question) => {
      heard.push(question);
      return worker.answers[question.what];
    }),
    heard,
    answers: {},
    exit: () => void near.emit('exit', null),
  };
  const { join } = board.meet(near as CallPort);
  if (joins) join();
  return Object.assign(worker, { join });
}

function start(count: number): { clock: ManualClock; board: WorkerBoard; workers: Played[] } {
  const clock = new ManualClock();
  const board = new WorkerBoard(promClient, clock);
  return { clock, board, workers: Array.from({ length: count }, () => played(board)) };
}

/** Lets promises settle. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await undefined;
}

async function metrics(answers: number, waiting: number, worst = 0): Promise<object[]> {
  const registers = [new promClient.Registry()];
  new promClient.Counter({ name: 'a_total', help: 'A.', labelNames: ['s'], registers }).inc({ s: '200' }, answers);
  new promClient.Gauge({ name: 'w', help: 'W.', registers }).set(waiting);
  new promClient.Gauge({ name: 'full', help: 'F.', registers, aggregator: 'max' }).set(worst);
  new promClient.Histogram({ name: 'h', help: 'H.', buckets: [1, 2], registers }).observe(answers);
  return registers[0]!.getMetricsAsJSON();
}

it('adds up what all workers count, and what the dead have counted last', async () => {
  const { workers, clock, board } = start(2);
  const [first, second] = workers as [Played, Played];
  const ask = async (given: Promise<object[]>): Promise<string> =>
    String(await first.calls.ask({ what: 'metrics', given: await given }));
  second.answers.metrics = await metrics(5, 2, 0.5);
  const all = await ask(metrics(10, 1, 0.9));
  for (const line of ['a_total{s="200"} 15', 'w 3', 'full 0.9', 'h_bucket{le="+Inf"} 2', 'h_sum 15'])
    expect(all).toContain(`\n${line}\n`);
  second.exit();
  const left = await ask(metrics(11, 1));
  for (const line of ['a_total{s="200"} 16', 'w 1', 'h_count 2']) expect(left).toContain(`\n${line}\n`);
  const third = played(board);
  third.answers.metrics = await metrics(3, 0);
  expect(await ask(metrics(11, 1))).toContain('\na_total{s="200"} 19\n');
  // One that does not answer in time counts with what it told last.
  third.answers.metrics = new Promise(() => {});
  const late = ask(metrics(12, 1));
  await turns();
  clock.advance(2_000);
  expect(await late).toContain('\na_total{s="200"} 20\n');
});

it('adds up the demand, and tells the fullest and the slowest', async () => {
  const [first, second] = start(2).workers as [Played, Played];
  const band = (waiting: number): object => ({ '0': { priority: 0, waiting } });
  second.answers.demand = { waiting: 2, saturation: 0.5, timeToDrainMs: 50, endpoints: 3, bands: band(2) };
  const own = { waiting: 6, saturation: 0.9, timeToDrainMs: 20, endpoints: 3, bands: band(6) };
  const sum = { waiting: 8, saturation: 0.9, timeToDrainMs: 50, endpoints: 3, bands: band(8) };
  expect(await first.calls.ask({ what: 'demand', given: own })).toEqual(sum);
  second.answers.demand = { waiting: 2, timeToDrainMs: null, bands: { '5': { priority: 5, waiting: 2 } } };
  expect(await first.calls.ask({ what: 'demand', given: own })).toEqual({
    ...own,
    waiting: 8,
    timeToDrainMs: null,
    bands: { ...band(6), '5': { priority: 5, waiting: 2 } },
  });
});

it('moves thresholds in all workers, and in those that join later until they are forgotten', async () => {
  const { board, workers } = start(2);
  const [first, second] = workers as [Played, Played];
  const moved = { what: 'thresholds', given: '{"model":"m"}' } as const;
  await first.calls.ask(moved);
  expect([first.heard, second.heard]).toEqual([[], [moved]]);
  const third = played(board, false);
  await turns();
  expect(third.heard).toEqual([]);
  third.join();
  await turns();
  expect(third.heard).toEqual([moved]);
  board.thresholds.length = 0;
  const fourth = played(board);
  await turns();
  expect(fourth.heard).toEqual([]);
});

it('looks for a request in all workers, the one that was asked among them', async () => {
  const { workers } = start(2);
  const [first, second] = workers as [Played, Played];
  first.answers.find = { isWaiting: false };
  second.answers.find = { isWaiting: true, priority: 1, waitedMs: 40, why: 'the pool is full' };
  const found = await first.calls.ask({ what: 'find', given: 'id-1' });
  expect(found).toEqual({ isWaiting: true, priority: 1, waitedMs: 40, why: 'the pool is full' });
  expect(first.heard).toEqual([{ what: 'find', given: 'id-1' }]);
});

it('waits for work as long as it takes, not for workers that have ended, and tells of faults', async () => {
  const { board, workers, clock } = start(2);
  const [first, second] = workers as [Played, Played];
  first.answers.reload = { upstreams: 1 };
  second.answers.reload = new Promise(() => {});
  const told = board.all({ what: 'reload', given: 'file' });
  await turns();
  clock.advance(60_000);
  second.exit();
  expect(await told).toEqual([{ upstreams: 1 }]);
  first.answers.reload = Promise.reject(new Error('no such plugin'));
  await expect(board.all({ what: 'reload', given: 'file' })).rejects.toThrow('no such plugin');
});
