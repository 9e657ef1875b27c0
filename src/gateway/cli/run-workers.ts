/**
 * `headgate gateway --workers`: the primary, which holds what the workers share and keeps them alive, and a worker. All
 * of them are this command, started with the same arguments.
 */
import cluster from 'node:cluster';
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { localStore } from '../../redis/index.js';
import { serveStore, workerStore } from '../../redis/workers/index.js';
import { createGateway, type Gateway, type GatewayConfig, GatewayWorkers } from '../index.js';
import { Calls } from '../workers/calls.js';
import { type Listening, WorkerPool, type WorkerProcess, type WorkerTask } from '../workers/worker-pool.js';
import { CommandLog } from './command-log.js';
import { type GatewayCommand, loadFile, serveUntilSignal } from './serve-until-signal.js';

/** Resolves to the exit status. */
export function runWorkers(command: GatewayCommand, count: number): Promise<number> {
  return cluster.isPrimary ? runPrimary(command, count) : runWorker(command);
}

function runPrimary(command: GatewayCommand, count: number): Promise<number> {
  const output = new CommandLog(command.logFormat);
  const store = localStore();
  // Lines of several processes would mix on one pipe, so they all go through this one; the fourth is for last words.
  cluster.setupPrimary({ stdio: ['ignore', 'pipe', 'pipe', 'ipc', 2] });
  const fork = (): WorkerProcess => {
    const worker = cluster.fork();
    serveStore(store, worker);
    passLines(worker.process.stdout, process.stdout);
    passLines(worker.process.stderr, process.stderr);
    return worker;
  };
  const pool = new WorkerPool({ count, fork, log: output.log });
  return serveUntilSignal(command, output, {
    start: async (_config, source) => ({ ...(await pool.start(source)), workers: count }),
    reload: (_config, source) => pool.reload(source),
    load: () => ({ workers: count }),
    stop: (delayMs) => pool.stop(delayMs).then(() => ({})),
    kill: () => pool.kill(),
  });
}

/** Whole lines, so that those of two workers do not mix. */
function passLines(input: NodeJS.ReadableStream | null, to: NodeJS.WriteStream): void {
  if (input !== null) createInterface({ input }).on('line', (line) => to.write(`${line}\n`));
}

/** Where a worker can still write when the primary reads no more. */
const lastWords = 4;

async function runWorker(command: GatewayCommand): Promise<number> {
  const output = new CommandLog(command.logFormat);
  output.takeOver();
  const worker = cluster.worker?.id;
  const log: typeof output.log = (level, event, fields) => output.log(level, event, { worker, ...fields });
  // A terminal sends its signals to all processes; the primary says what is to be done.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  // At once: another primary must not find these requests running. This comes before what `node:cluster` does then.
  process.prependListener('disconnect', () => {
    writeSync(lastWords, `headgate: worker ${process.pid} ends, because its primary is gone\n`);
    process.exit(1);
  });
  let workers: GatewayWorkers | undefined;
  let gateway: Gateway | undefined;
  const load = async ({ source, count }: WorkerTask): Promise<GatewayConfig> => {
    workers ??= new GatewayWorkers(workerStore(process), count);
    output.follow(source);
    return loadFile(command, source, workers);
  };
  return new Promise((resolve) => {
    const primary = new Calls(process, async (what, text) => {
      if (what === 'alive') return '';
      if (what === 'start') {
        gateway = await createGateway(await load(JSON.parse(text)), {
          log,
          together: (...said) => primary.ask(...said),
        });
        const { url, adminUrl, pool } = gateway;
        return JSON.stringify({ url, adminUrl, upstreams: pool.endpoints.length } satisfies Listening);
      }
      if (gateway === undefined) throw new Error('this worker has not started');
      if (what === 'reload') return JSON.stringify(gateway.reconfigure(await load(JSON.parse(text))));
      if (what !== 'stop') return gateway.tellOperators(what, text);
      await gateway.close({ delayMs: Number(text) });
      output.flush();
      setImmediate(() => resolve(0)); // after the answer
      return '';
    });
    void primary.ask('alive');
  });
}
