/**
 * `headgate gateway --workers`: the primary, which holds what the workers share and keeps as many of them alive. A
 * worker is this command, started with the same arguments: it reads the file, logs and drains as one process does.
 *
 *     forked ──► serves ── dies ──► replaced: at once, and later and later if it dies young
 */
import cluster, { type Worker } from 'node:cluster';
import { EventEmitter, once } from 'node:events';
import { resolve } from 'node:path';
import { env } from 'node:process';
import { createInterface } from 'node:readline';
import { calls } from '../../base/calls.js';
import { localStore } from '../../redis/index.js';
import { serveStore, workerStore } from '../../redis/workers/index.js';
import type { GatewayConfig } from '../index.js';
import { loadPromClient } from '../shared/optional-peers.js';
import type { StoreAddress } from '../shared/store-clients.js';
import { StoreConnection } from '../shared/store-connection.js';
import { GatewayWorkers, type WorkerQuestion } from '../workers/gateway-workers.js';
import { WorkerBoard } from '../workers/worker-board.js';
import { CommandLog } from './command-log.js';
import { readSource } from './read-source.js';
import { type GatewayCommand, loadFile, runGateway } from './run-gateway.js';

/** A worker that lived for less has died young. */
const youngMs = 10_000;
const firstDelayMs = 100;
const longestDelayMs = 10_000;

/** A gateway in this process, or in workers of it. Resolves to the exit status. */
export function runWorkers(command: GatewayCommand & { readonly workers: number }): Promise<number> {
  if (command.workers === 1) return runGateway(command);
  return cluster.isPrimary ? runPrimary(command, command.workers) : runWorker(command, command.workers);
}

async function runPrimary(command: GatewayCommand, count: number): Promise<number> {
  const output = new CommandLog(command.logFormat);
  output.takeOver();
  const board = new WorkerBoard(await loadPromClient());
  const store = localStore();
  const living = new Set<Worker>();
  const served = new Set<Worker>();
  let config: GatewayConfig | undefined;
  let connection: StoreConnection | undefined;
  let isStopping = false;
  let diedYoung = 0;

  /** A file with faults is told once, and changes nothing. */
  async function read(event: 'not-started' | 'reload-refused'): Promise<boolean> {
    try {
      const source = readSource(command.config);
      if (config === undefined) output.follow(source);
      config = await loadFile(command, source);
      const { sharedState } = config;
      const again = (): StoreAddress | undefined => config?.sharedState?.readStore();
      if (connection !== undefined) connection.follow(sharedState?.store);
      else if (sharedState !== undefined)
        connection = await StoreConnection.open(sharedState.store, again, sharedState.leases.leaseDuration);
      return true;
    } catch (error) {
      output.faults(resolve(command.config), event, error);
      return false;
    }
  }
  /** One that does not serve yet has nothing to drain, and may hear nothing. */
  function stop(): void {
    isStopping = true;
    for (const each of living) if (!served.has(each)) each.process.kill('SIGKILL');
  }
  if (!(await read('not-started'))) return 1;
  // Lines of several processes would mix on one pipe, so they all go through this one.
  cluster.setupPrimary({ serialization: 'advanced', stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  return new Promise((end) => {
    function begin(worker: number): void {
      if (isStopping) return;
      const startedAtMs = performance.now();
      // The name of a replica is made of this: one that takes its place takes it over.
      const NODE_APP_INSTANCE = `${env.NODE_APP_INSTANCE ?? 'worker'}.${worker}`;
      const forked = cluster.fork({ NODE_APP_INSTANCE, HEADGATE_WORKER: `${worker}` });
      const { process: child } = forked;
      living.add(forked);
      serveStore(store, forked, 'workers');
      if (connection !== undefined) serveStore(connection.store, forked, 'sharedState');
      passLines(child.stdout, process.stdout);
      passLines(child.stderr, process.stderr);
      board.join(forked, () => served.add(forked));
      forked.on('exit', (code, signal) => {
        living.delete(forked);
        if (served.size === 0) stop(); // it cannot start, and has said why
        if (isStopping && living.size === 0) {
          connection?.end();
          end(served.size > 0 ? 0 : 1);
        }
        if (isStopping) return;
        const livedMs = Math.round(performance.now() - startedAtMs);
        diedYoung = livedMs < youngMs ? diedYoung + 1 : 0;
        const replacedInMs = diedYoung === 0 ? 0 : Math.min(longestDelayMs, firstDelayMs * 2 ** (diedYoung - 1));
        output.log('error', 'worker-died', { worker, pid: child.pid, code, signal, livedMs, replacedInMs });
        setTimeout(begin, replacedInMs, worker);
      });
    }
    for (let worker = 1; worker <= count; worker++) begin(worker);
    process.on('SIGHUP', () => void read('reload-refused').then((isRight) => isRight && board.tell('SIGHUP')));
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (isStopping) process.exit(1); // workers end with their primary
        stop();
        board.tell(signal);
      });
    }
  });
}

function passLines(input: NodeJS.ReadableStream | null, to: NodeJS.WriteStream): void {
  if (input !== null) createInterface({ input }).on('line', (line) => to.write(`${line}\n`));
}

/** Resolves when it has drained. It ends with its primary at once: another one must not find its requests running. */
async function runWorker(command: GatewayCommand, count: number): Promise<number> {
  // A terminal sends its signals to all processes; the primary says what is to be done.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  const signals = new EventEmitter();
  const serving = once(signals, 'serving').then(() => primary.tell({ what: 'ready', given: undefined }));
  const primary = calls<WorkerQuestion>(process, 'gateway', async (question) => {
    if (question.what !== 'signal') return workers.answer(question);
    await serving;
    return signals.emit(String(question.given), question.given);
  });
  const worker = Number(env.HEADGATE_WORKER);
  const store = workerStore(process, 'workers');
  const connection = { store: workerStore(process, 'sharedState'), follow: () => {}, end: () => {} };
  const together = (question: WorkerQuestion): Promise<unknown> => primary.ask(question);
  const workers = new GatewayWorkers({ worker, count, store, connection, signals, together });
  const status = await runGateway(command, workers);
  return status === 0 ? 0 : process.exit(status);
}
