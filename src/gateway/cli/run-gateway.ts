/**
 * `headgate gateway`, in this process or in several: the primary reads the file, holds what workers share, and keeps as
 * many of them alive. A worker is this command with the same arguments, and is told what to serve.
 *
 *     forked ──► serves ── dies ──► replaced: at once, and later and later if it dies young
 *
 * Invariant: one that takes the place of another begins with the first file, as that one did, so that all are alike.
 */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { env } from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { calls } from '../../base/calls.js';
import { localStore, type MachineStore, machineStore } from '../../redis/index.js';
import { serveStore, workerStore } from '../../redis/workers/index.js';
import { createGateway, type GatewayConfig, type GatewayLog, importPlugins, loadGatewayConfig } from '../index.js';
import { changesBetween } from '../settings/config-changes.js';
import { GatewayWorkers } from '../shared/gateway-workers.js';
import { loadPromClient } from '../shared/optional-peers.js';
import { logLeases } from '../shared/shared-state.js';
import { StoreConnection } from '../shared/store-connection.js';
import { oneAnswer } from '../workers/one-answer.js';
import { WorkerBoard, type WorkerQuestion } from '../workers/worker-board.js';
import type { GatewayArguments } from './arguments.js';
import { CommandLog } from './command-log.js';
import { namesIn, runService, type Service, type ServiceStart } from './run-service.js';

/** Changes that one line tells. */
const mostChanges = 20;

/** V8 guesses from slow requests that all live long; keeping them cost a fifth of the time (bench: gateway). */
setFlagsFromString('--no-allocation-site-pretenuring');

/** A worker that lived for less has died young. */
const youngMs = 10_000;
const [firstDelayMs, longestDelayMs] = [100, 10_000];

/** Resolves to the exit status. */
export function runGateway(command: GatewayArguments): Promise<number> {
  const place = cluster.isWorker ? env.HEADGATE_WORKER : undefined;
  if (place !== undefined) return runWorker(command, place.split('/').map(Number));
  const { workers } = command;
  return runService(command, (start) => (workers === 1 ? serveGateway(start) : serveByWorkers(start, workers)));
}

/** With the parts of one of several workers. @throws (rejects) FlowConfigError */
async function loadFile(
  source: string,
  { plugins }: Pick<ServiceStart, 'plugins'>,
  workers?: GatewayWorkers,
): Promise<GatewayConfig> {
  const registry = await importPlugins(source, plugins);
  const config = loadGatewayConfig(source, { registry: workers?.registry(registry) ?? registry });
  return workers?.settings(config) ?? config;
}

function warn({ warnings }: GatewayConfig, { log, file }: ServiceStart): void {
  for (const message of warnings) log('warn', 'config', { file, message });
}

/** A gateway in this process, alone or as one of several workers. */
async function serveGateway(start: ServiceStart, workers?: GatewayWorkers): Promise<Service> {
  let config = await loadFile(start.source, start, workers);
  if (workers === undefined) warn(config, start);
  const options = { log: start.log, workers };
  const gateway = await createGateway(config, options);
  const { url, adminUrl, pool, flow } = gateway;
  return {
    listening: { url, adminUrl, upstreams: pool.endpoints.length },
    stats: () => flow.stats(),
    async reload(text) {
      const next = await loadFile(text, start, workers);
      const needsRestart = gateway.reconfigure(next).join(', ') || undefined;
      const changed = changesTold(config, next);
      config = next;
      if (workers === undefined) warn(next, start);
      return { upstreams: pool.endpoints.length, changed, needsRestart };
    },
    // Ctrl-C comes from a person, and no load balancer needs time then. A reload may have changed the delay.
    close: (signal) => gateway.close({ delayMs: signal === 'SIGTERM' ? config.drain.delay : 0 }),
  };
}

function changesTold(before: GatewayConfig, after: GatewayConfig): string {
  const changes = changesBetween(before, after);
  if (changes.length === 0) return 'nothing';
  const left = changes.length - mostChanges;
  return changes.slice(0, mostChanges).join('; ') + (left > 0 ? `; and ${left} more` : '');
}

async function serveByWorkers(start: ServiceStart, count: number): Promise<Service> {
  let config = await loadFile(start.source, start);
  warn(config, start);
  const { store, leases } = config.sharedState ?? {};
  const again = (): typeof store => config.sharedState?.readStore();
  const connection = store && leases && (await StoreConnection.open(store, again, leases.leaseDuration));
  const machine = connection && leases && machineStore(connection.store, leases);
  if (machine !== undefined) logLeases(machine, start.log);
  const crew = new Crew(start, new WorkerBoard(await loadPromClient()), machine);
  const { board } = crew;
  async function end(): Promise<void> {
    await crew.end();
    await machine?.close();
    connection?.end();
  }
  cluster.setupPrimary({ serialization: 'advanced' });
  const begun = Array.from({ length: count }, (_, index) => crew.begin(index + 1, count));
  const [listening] = await Promise.all(begun).catch(async (error) => {
    await end();
    throw error;
  });
  return {
    listening: { ...Object(listening), workers: count },
    stats: async () => Object(oneAnswer(await board.all({ what: 'demand' }))),
    async reload(text) {
      const next = await loadFile(text, start);
      const [told] = await board.all({ what: 'reload', given: text });
      const changed = changesTold(config, next);
      if (next.flowFingerprint !== config.flowFingerprint) board.thresholds.length = 0;
      config = next;
      crew.source = text;
      connection?.follow(next.sharedState?.store);
      warn(next, start);
      return { ...Object(told), changed };
    },
    async close(signal) {
      crew.isStopping = true;
      const stats = await board.all({ what: 'close', given: signal });
      await end();
      return Object(oneAnswer(stats));
    },
  };
}

/** The workers that live. The primary's service writes the file in force, and that it stops. */
class Crew {
  source: string;
  isStopping = false;
  readonly board: WorkerBoard;
  private readonly start: ServiceStart;
  /** Of the limits that machines share: all workers are one replica. */
  private readonly machine: MachineStore | undefined;
  private readonly store = localStore();
  /** How each is ended: one that does not serve yet has nothing to drain. */
  private readonly ends = new Map<Worker, () => unknown>();

  constructor(start: ServiceStart, board: WorkerBoard, machine: MachineStore | undefined) {
    this.source = start.source;
    this.start = start;
    this.board = board;
    this.machine = machine;
  }

  /** Resolves to what the worker says when it serves. */
  async begin(worker: number, count: number, diedYoung = 0): Promise<unknown> {
    const { source, log } = this.start;
    const startedAtMs = performance.now();
    // The name of a replica is made of this: one that takes its place takes it over.
    const NODE_APP_INSTANCE = `${env.NODE_APP_INSTANCE ?? 'worker'}.${worker}`;
    const forked = cluster.fork({ NODE_APP_INSTANCE, HEADGATE_WORKER: `${worker}/${count}` });
    const { process: child } = forked;
    const { pid } = child;
    let error: string | undefined;
    this.ends.set(forked, () => child.kill('SIGKILL'));
    serveStore(this.store, forked, 'workers');
    if (this.machine !== undefined) serveStore(this.machine, forked, 'sharedState');
    const { calls: asked, join } = this.board.meet(forked);
    forked.on('exit', (code, signal) => {
      this.ends.delete(forked);
      if (this.isStopping) return;
      const livedMs = Math.round(performance.now() - startedAtMs);
      const young = livedMs < youngMs ? diedYoung + 1 : 0;
      const replacedInMs = young === 0 ? 0 : Math.min(longestDelayMs, firstDelayMs * 2 ** (young - 1));
      log('error', 'worker-died', { worker, pid, signal: signal ?? code ?? undefined, error, livedMs, replacedInMs });
      setTimeout(() => this.isStopping || this.begin(worker, count, young).catch(() => {}), replacedInMs);
    });
    try {
      // It hears nothing that is said before.
      await new Promise((resolve, reject) => {
        forked.once('message', resolve).once('exit', () => reject(new Error(`worker ${worker} has ended`)));
      });
      const listening = await asked.ask({ what: 'start', given: source });
      for (let known = source; known !== this.source; ) {
        known = this.source;
        await asked.ask({ what: 'reload', given: known });
      }
      this.ends.set(forked, () => asked.tell({ what: 'end' }));
      join();
      log('info', 'worker-ready', { worker, pid });
      return listening;
    } catch (reason) {
      error = String(reason);
      child.kill('SIGKILL');
      throw reason;
    }
  }

  async end(): Promise<void> {
    this.isStopping = true;
    for (const end of this.ends.values()) end();
    await Promise.all([...this.ends.keys()].map((worker) => once(worker, 'exit')));
  }
}

/** It ends with its primary, at once: another one must not find its requests running. */
function runWorker(command: GatewayArguments, [worker = 1, count = 1]: readonly number[]): Promise<number> {
  // A terminal sends its signals to all processes; the primary says what is to be done.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  const output = new CommandLog(command.logFormat, true);
  output.takeOver();
  const log: GatewayLog = (level, event, fields) => output.log(level, event, { worker, ...fields });
  let service: Service | undefined;
  const primary = calls<WorkerQuestion>(process, 'gateway', answer);
  const workers = new GatewayWorkers({
    worker,
    count,
    store: workerStore(process, 'workers'),
    connection: { store: workerStore(process, 'sharedState'), follow() {}, end() {} },
    together: (what, given) => primary.ask({ what, given }),
  });
  async function answer({ what, given }: WorkerQuestion): Promise<unknown> {
    const source = String(given);
    if (what === 'start' || what === 'reload') output.follow(source);
    if (what === 'reload') return service?.reload(source);
    if (what === 'close') return service?.close(source === 'SIGTERM' ? source : 'SIGINT');
    if (what === 'end') process.exit();
    if (what !== 'start') return workers.answer(what, source);
    service = await serveGateway({ source, log, ...namesIn(command) }, workers);
    return service.listening;
  }
  process.send?.({ isHere: true });
  return new Promise(() => {});
}
