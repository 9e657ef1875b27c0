/** The primary's side, with workers that a test plays, on a manual clock. */
import { EventEmitter } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { WorkerPool, type WorkerProcess } from '../../../src/gateway/workers/worker-pool.js';
import { ManualClock } from '../../../src/testing/index.js';

interface Question {
  readonly gateway: string;
  readonly id: number;
  readonly what: string;
  readonly text: string;
}

/** Answers as a worker does that is well; `answers` overrides it. */
class FakeWorker extends EventEmitter {
  readonly id: number;
  readonly heard: string[] = [];
  readonly kills: string[] = [];
  answers: Record<string, string | undefined> = {};
  isSilent = false;
  readonly process = { pid: 1_000, kill: (signal: string) => this.kills.push(signal) };
  private asked = 0;

  constructor(id: number) {
    super();
    this.id = id;
  }

  send(message: object): void {
    const { gateway, id, what, text } = message as Question;
    if (gateway !== 'question') {
      this.emit(`answer ${id}`, text);
      return;
    }
    this.heard.push(`${what} ${text}`);
    const standard: Record<string, string> = {
      start: JSON.stringify({ url: 'http://localhost:1', adminUrl: 'http://localhost:1', upstreams: 1 }),
      reload: '["listen"]',
    };
    if (!this.isSilent)
      this.emit('message', { gateway: 'answer', id, what, text: this.answers[what] ?? standard[what] ?? '' });
  }

  /** What the pool answers. */
  ask(what: string, text = ''): Promise<string> {
    const id = ++this.asked;
    const answer = new Promise<string>((resolve) => this.once(`answer ${id}`, resolve));
    this.emit('message', { gateway: 'question', id, what, text });
    return answer;
  }

  boot(): void {
    void this.ask('alive');
  }
}

async function pool(count: number) {
  const clock = new ManualClock();
  const workers: FakeWorker[] = [];
  const events: { event: string; fields: object | undefined }[] = [];
  const started = new WorkerPool({
    count,
    clock,
    log: (_level, event, fields) => events.push({ event, fields }),
    fork() {
      const worker = new FakeWorker(workers.length + 1);
      workers.push(worker);
      queueMicrotask(() => worker.boot());
      return worker as unknown as WorkerProcess;
    },
  });
  onTestFinished(() => started.kill());
  const listening = await started.start('file 1');
  const told = (name: string): (object | undefined)[] =>
    events.filter(({ event }) => event === name).map(({ fields }) => fields);
  return { clock, workers, told, pool: started, listening };
}

/** Lets promises settle. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await undefined;
}

const metrics = (answers: number, waiting: number): string =>
  `# HELP a_total Answers.\n# TYPE a_total counter\na_total{s="200"} ${answers}\n\n# HELP w Waiting.\n# TYPE w gauge\nw ${waiting}\n`;

it('starts every worker with the file, and replaces one that has died at once', async () => {
  const { workers, listening, clock, told } = await pool(2);
  expect(listening.url).toBe('http://localhost:1');
  expect(workers.map(({ heard }) => heard)).toEqual(Array(2).fill(['start {"source":"file 1","count":2}']));
  clock.advance(20_000);
  workers[0]!.emit('exit', null, 'SIGKILL');
  clock.advance(0);
  await turns();
  expect(workers).toHaveLength(3);
  expect(told('worker-died')).toEqual([
    { worker: 1, pid: 1_000, code: undefined, signal: 'SIGKILL', livedMs: 20_000, replacedInMs: 0 },
  ]);
  expect(told('worker-listening')).toHaveLength(3);
});

it('waits longer and longer where workers die young, and says that it is a loop', async () => {
  const { workers, clock, told } = await pool(1);
  for (const waitMs of [100, 200, 400, 800, 1_600]) {
    const before = workers.length;
    workers.at(-1)!.emit('exit', 1, null);
    clock.advance(waitMs - 1);
    expect(workers).toHaveLength(before);
    clock.advance(1);
    await turns();
    expect(workers).toHaveLength(before + 1);
  }
  expect(told('workers-die-young')).toHaveLength(1);
});

it('kills a worker that has said nothing for half a minute', async () => {
  const { workers, clock, told } = await pool(2);
  workers[1]!.isSilent = true;
  for (let look = 0; look < 6; look++) {
    clock.advance(5_000);
    await turns();
  }
  expect(workers.map(({ kills }) => kills)).toEqual([[], ['SIGKILL']]);
  expect(told('worker-silent')).toEqual([{ worker: 2, silentForMs: 30_000 }]);
});

it('gives a new file to all, and to one that was starting meanwhile', async () => {
  const { workers, pool: running, clock } = await pool(2);
  clock.advance(20_000);
  workers[0]!.emit('exit', null, 'SIGKILL');
  clock.advance(0);
  expect(await running.reload('file 2')).toEqual(['listen']);
  await turns();
  expect(workers[1]!.heard.at(-1)).toBe('reload {"source":"file 2","count":2}');
  expect(workers[2]!.heard.at(-1)).toContain('file 2');
});

it('adds up what all workers say, and what the dead have said last', async () => {
  const { workers, clock } = await pool(2);
  workers[1]!.answers = {
    metrics: metrics(5, 2),
    demand: '{"waiting":2,"saturation":0.5,"dispatchedPerSecond":4,"timeToDrainMs":1}',
  };
  const first = await workers[0]!.ask('metrics', metrics(10, 1));
  expect(first).toContain('a_total{s="200"} 15\n');
  expect(first).toContain('\nw 3\n');
  const demand = await workers[0]!.ask(
    'demand',
    '{"waiting":6,"saturation":0.9,"dispatchedPerSecond":4,"timeToDrainMs":1}',
  );
  expect(JSON.parse(demand)).toEqual({ waiting: 8, saturation: 0.9, dispatchedPerSecond: 8, timeToDrainMs: 1_000 });
  workers[1]!.emit('exit', null, 'SIGKILL');
  const second = await workers[0]!.ask('metrics', metrics(11, 1));
  expect(second).toContain('a_total{s="200"} 16\n');
  expect(second).toContain('\nw 1\n');
  clock.advance(100);
  await turns();
  // One that does not answer in time counts with what it said last.
  workers[2]!.answers = { metrics: metrics(3, 0) };
  await workers[0]!.ask('metrics', metrics(11, 1));
  workers[2]!.isSilent = true;
  const late = workers[0]!.ask('metrics', metrics(12, 1));
  await turns();
  clock.advance(2_000);
  expect(await late).toContain('a_total{s="200"} 20\n');
});

it('moves thresholds in all workers, and in those that come later', async () => {
  const { workers, clock } = await pool(2);
  expect(await workers[0]!.ask('thresholds', '{"model":"m"}')).toBe('{"model":"m"}');
  expect(workers[1]!.heard.at(-1)).toBe('thresholds {"model":"m"}');
  clock.advance(20_000);
  workers[1]!.emit('exit', null, 'SIGKILL');
  clock.advance(0);
  await turns();
  expect(workers[2]!.heard).toContain('thresholds {"model":"m"}');
});

it('ends when all have drained, and does not wait for one that has only begun', async () => {
  const { workers, pool: running, clock } = await pool(2);
  clock.advance(20_000);
  workers[0]!.emit('exit', null, 'SIGKILL');
  clock.advance(0);
  const stopped = running.stop(500);
  expect([workers[1]!.heard.at(-1), workers[2]!.kills]).toEqual(['stop 500', ['SIGKILL']]);
  workers[1]!.emit('exit', 0, null);
  workers[2]!.emit('exit', null, 'SIGKILL');
  await stopped;
  clock.advance(20_000);
  expect(workers).toHaveLength(3);
});
