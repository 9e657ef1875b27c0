/**
 * The workers of a gateway, from the side of their primary: as many as there should be, all with the newest file, and
 * one answer of all of them.
 *
 *     forked ── start, with the file ──► listens ── dies ──► replaced: at once, and later and later if it dies young
 *
 * Invariant: counters never fall, because those of dead workers are kept; a worker that says nothing is killed.
 */
import { type Clock, realClock } from '../../index.js';
import type { GatewayLog } from '../shared/gateway-log.js';
import { type CallName, Calls, type Channel } from './calls.js';
import { MetricsSum, sumOfDemand } from './sums.js';

/** A worker of `node:cluster`. */
export interface WorkerProcess extends Channel {
  readonly id: number;
  readonly process: { readonly pid?: number | undefined; kill(signal: NodeJS.Signals): unknown };
  on(event: 'message', listener: (message: unknown) => void): unknown;
  on(event: 'exit', listener: (code: number | null, signal: string | null) => void): unknown;
}

/** What a worker needs to know. */
export interface WorkerTask {
  readonly source: string;
  readonly count: number;
}

export interface Listening {
  readonly url: string;
  readonly adminUrl: string;
  readonly upstreams: number;
}

export interface WorkerPoolOptions {
  readonly count: number;
  readonly fork: () => WorkerProcess;
  readonly log: GatewayLog;
  readonly clock?: Clock | undefined;
}

/** A worker that lived for less has died young; after five in a row the log says that it is a loop. */
const youngMs = 10_000;
const loopFrom = 5;
const firstDelayMs = 100;
const longestDelayMs = 10_000;
/** An event loop that stands still for so long serves nobody, and never will. */
const silentMs = 30_000;
const askEveryMs = 5_000;
/** Of a worker that does not answer within this time, its last metrics count. */
const answerMs = 2_000;

interface Worker {
  readonly id: number;
  readonly process: WorkerProcess['process'];
  readonly calls: Calls;
  /** It has said its first word, or has died; what a worker is told before is lost. */
  readonly booted: Promise<void>;
  readonly startedAtMs: number;
  heardAtMs: number;
  isListening: boolean;
  /** What it told last. */
  metrics: string;
}

export class WorkerPool {
  private readonly options: WorkerPoolOptions;
  private readonly clock: Clock;
  private readonly workers = new Set<Worker>();
  private readonly sum = new MetricsSum();
  /** Bodies that moved thresholds, for workers that come later. */
  private readonly thresholds: string[] = [];
  private task: WorkerTask;
  private ended: (() => void) | undefined = undefined;
  private isStopping = false;
  private young = 0;
  private patrol: unknown = undefined;

  constructor(options: WorkerPoolOptions) {
    this.options = options;
    this.clock = options.clock ?? realClock;
    this.task = { source: '', count: options.count };
  }

  /** Resolves when all listen; rejects when one says why it cannot. */
  async start(source: string): Promise<Listening> {
    this.task = { ...this.task, source };
    this.look();
    const others = Array.from({ length: this.options.count - 1 }, () => this.begin(this.fork()));
    const [first] = await Promise.all([this.begin(this.fork()), ...others]);
    return first;
  }

  /** Gives all workers another file; resolves to what takes effect only after a restart. Rejects with what one says. */
  async reload(source: string): Promise<readonly string[]> {
    this.task = { ...this.task, source };
    const told = [...this.workers].filter(({ isListening }) => isListening);
    const answers = await Promise.all(
      told.map((worker) =>
        worker.calls.ask('reload', JSON.stringify(this.task)).catch((error) => {
          if (this.workers.has(worker)) throw error;
          return '[]'; // its successor begins with the new file
        }),
      ),
    );
    return [...new Set(answers.flatMap((answer): string[] => JSON.parse(answer)))];
  }

  /** Resolves when all have drained and ended. */
  stop(delayMs: number): Promise<void> {
    this.isStopping = true;
    this.clock.clearTimeout(this.patrol);
    return new Promise((resolve) => {
      this.ended = resolve;
      for (const { calls, process, isListening } of this.workers) {
        // One that does not listen has nothing to drain, and may hear nothing yet.
        if (isListening) calls.ask('stop', String(delayMs)).catch(() => {});
        else process.kill('SIGKILL');
      }
      if (this.workers.size === 0) resolve();
    });
  }

  kill(): void {
    this.isStopping = true;
    this.clock.clearTimeout(this.patrol);
    for (const { process } of this.workers) process.kill('SIGKILL');
  }

  private fork(): Worker {
    const nowMs = this.clock.now();
    const forked = this.options.fork();
    const { id, process } = forked;
    const calls = new Calls(forked, (what, text) => this.together(worker, what, text));
    const life = { startedAtMs: nowMs, heardAtMs: nowMs, isListening: false, metrics: '' };
    const booted = new Promise<void>((resolve) => {
      forked.on('message', () => {
        worker.heardAtMs = this.clock.now();
        resolve();
      });
      forked.on('exit', (code, signal) => {
        this.died(worker, code, signal);
        resolve();
      });
    });
    const worker: Worker = { id, process, calls, booted, ...life };
    this.workers.add(worker);
    return worker;
  }

  /** Rejects with what the worker says. */
  private async begin(worker: Worker): Promise<Listening> {
    await worker.booted;
    if (!this.workers.has(worker)) throw new Error(`worker ${worker.id} died before it could start`);
    const { source } = this.task;
    const listening: Listening = JSON.parse(await worker.calls.ask('start', JSON.stringify(this.task)));
    for (const body of this.thresholds) await worker.calls.ask('thresholds', body);
    if (source !== this.task.source) await worker.calls.ask('reload', JSON.stringify(this.task));
    worker.isListening = true;
    this.options.log('info', 'worker-listening', { worker: worker.id, pid: worker.process.pid });
    return listening;
  }

  private replace(): void {
    if (this.isStopping) return;
    const worker = this.fork();
    this.begin(worker).catch(({ message }: Error) => {
      this.options.log('error', 'worker-failed', { worker: worker.id, message });
    });
  }

  private died(worker: Worker, code: number | null, signal: string | null): void {
    this.workers.delete(worker);
    this.sum.keep(worker.metrics);
    worker.calls.end();
    if (this.isStopping) {
      if (this.workers.size === 0) this.ended?.();
      return;
    }
    const livedMs = Math.round(this.clock.now() - worker.startedAtMs);
    this.young = livedMs < youngMs ? this.young + 1 : 0;
    const replacedInMs = this.young === 0 ? 0 : Math.min(longestDelayMs, firstDelayMs * 2 ** (this.young - 1));
    const { id, process } = worker;
    const how = { code: code ?? undefined, signal: signal ?? undefined, livedMs, replacedInMs };
    this.options.log('error', 'worker-died', { worker: id, pid: process.pid, ...how });
    if (this.young === loopFrom) {
      const message = `${loopFrom} workers in a row lived for less than ${youngMs / 1_000} s: see what they said last`;
      this.options.log('error', 'workers-die-young', { message });
    }
    this.clock.setTimeout(() => this.replace(), replacedInMs);
  }

  /** Asks everybody for a sign of life, and kills who gives none. */
  private look(): void {
    this.patrol = this.clock.setTimeout(() => {
      for (const { id, process, calls, heardAtMs } of this.workers) {
        const silentForMs = Math.round(this.clock.now() - heardAtMs);
        if (silentForMs < silentMs) {
          calls.ask('alive').catch(() => {});
          continue;
        }
        this.options.log('error', 'worker-silent', { worker: id, silentForMs });
        process.kill('SIGKILL');
      }
      this.look();
    }, askEveryMs);
  }

  /** What all workers say to a question that one of them was asked. */
  private async together(asker: Worker, what: CallName, text: string): Promise<string> {
    if (what === 'alive') return '';
    if (what === 'thresholds') this.thresholds.push(text);
    const others = [...this.workers].filter((worker) => worker !== asker && worker.isListening);
    const asked = others.map(async (worker) => ({ worker, said: await this.answerOf(worker, what, text) }));
    const answers = [{ worker: asker, said: text }, ...(await Promise.all(asked))];
    if (what === 'metrics') for (const { worker, said } of answers) if (said !== '') worker.metrics = said;
    // One that has died meanwhile is counted among those that are gone.
    const living = answers.filter(({ worker }) => this.workers.has(worker));
    if (what === 'metrics') return this.sum.of(living.map(({ worker }) => worker.metrics));
    return what === 'demand' ? sumOfDemand(living.map(({ said }) => said).filter(Boolean)) : text;
  }

  /** Empty where there is none in time. */
  private answerOf({ calls }: Worker, what: CallName, text: string): Promise<string> {
    const late = new Promise<string>((resolve) => {
      this.clock.setTimeout(() => resolve(''), answerMs);
    });
    return Promise.race([calls.ask(what, text).catch(() => ''), late]);
  }
}
