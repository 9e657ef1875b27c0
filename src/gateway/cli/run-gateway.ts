/** `headgate gateway`: a gateway until a signal ends it. */
import type { EventEmitter } from 'node:events';
import { dirname, resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import type { WorkerOptions } from '../gateway.js';
import {
  createGateway,
  type Gateway,
  type GatewayConfig,
  type GatewayLog,
  importPlugins,
  loadGatewayConfig,
} from '../index.js';
import { changesBetween } from '../settings/config-changes.js';
import type { GatewayWorkers } from '../workers/gateway-workers.js';
import { CommandLog, type LogFormat } from './command-log.js';
import { readSource } from './read-source.js';

export interface GatewayCommand {
  readonly config: string;
  readonly logFormat?: LogFormat | undefined;
  readonly modules?: readonly string[] | undefined;
}

/** Changes that one line tells. */
const mostChanges = 20;

/**
 * V8 puts what has lived long into the old part of the heap at once. In a gateway that is a guess from a few slow
 * requests, and then each request keeps all that it refers to until the whole heap is collected, which takes a fifth
 * of the time (bench: gateway).
 */
setFlagsFromString('--no-allocation-site-pretenuring');

/** @throws (rejects) FlowConfigError */
export async function loadFile(
  { config: path, modules }: GatewayCommand,
  source: string,
  workers?: GatewayWorkers,
): Promise<GatewayConfig> {
  const from = path === '-' ? undefined : dirname(resolve(path));
  const registry = await importPlugins(source, { from, modules });
  const config = loadGatewayConfig(source, { registry: workers?.registry(registry) ?? registry });
  return workers?.settings(config) ?? config;
}

/** Resolves to the exit status. */
export async function runGateway(command: GatewayCommand, workers?: GatewayWorkers): Promise<number> {
  const { config: path, logFormat } = command;
  const signals: EventEmitter = workers?.place.signals ?? process;
  const file = path === '-' ? '-' : resolve(path);
  const output = new CommandLog(logFormat);
  const log: GatewayLog = (level, event, fields) =>
    output.log(level, event, workers === undefined ? fields : { worker: workers.place.worker, ...fields });
  const options: WorkerOptions = { log, workers };
  const release = output.takeOver();
  const warn = ({ warnings }: GatewayConfig): void => {
    if (workers !== undefined && workers.place.worker > 1) return; // all have the same file
    for (const message of warnings) log('warn', 'config', { file, message });
  };
  let config: GatewayConfig;
  let gateway: Gateway;
  try {
    const source = readSource(path);
    output.follow(source);
    config = await loadFile(command, source, workers);
    warn(config);
    gateway = await createGateway(config, options);
  } catch (error) {
    output.faults(file, 'not-started', error);
    release();
    return 1;
  }
  const reload = async (): Promise<void> => {
    try {
      const source = readSource(path);
      const next = await loadFile(command, source, workers);
      const later = gateway.reconfigure(next);
      const changes = changesBetween(config, next);
      config = next;
      output.follow(source); // not before: a file that is refused changes nothing
      warn(next);
      const needsRestart = later.join(', ') || undefined;
      log('info', 'reloaded', { file, upstreams: gateway.pool.endpoints.length, changed: told(changes), needsRestart });
    } catch (error) {
      output.faults(file, 'reload-refused', error);
    }
  };
  let reloaded = Promise.resolve();
  signals.on('SIGHUP', () => {
    reloaded = reloaded.then(reload); // one after the other
  });
  const end = stopped(gateway, log, signals, () => config.drain.delay).finally(() => output.flush());
  // This comes last, because a reader of the line may send signals at once.
  const { url, adminUrl, pool } = gateway;
  log('info', 'listening', { file, url, adminUrl, upstreams: pool.endpoints.length, pid: process.pid });
  signals.emit('serving');
  return end;
}

function told(changes: readonly string[]): string {
  if (changes.length === 0) return 'nothing';
  const left = changes.length - mostChanges;
  return changes.slice(0, mostChanges).join('; ') + (left > 0 ? `; and ${left} more` : '');
}

/** `delayMs` is asked when the signal comes: a reload may have changed it. */
function stopped(gateway: Gateway, log: GatewayLog, signals: EventEmitter, delayMs: () => number): Promise<number> {
  return new Promise((resolve) => {
    let isStopping = false;
    const stop = (signal: NodeJS.Signals): void => {
      if (isStopping) process.exit(1);
      isStopping = true;
      const { waiting, inFlight } = gateway.flow.stats();
      log('info', 'draining', { signal, waiting, inFlight });
      // Ctrl-C comes from a person, and no load balancer needs time then.
      gateway.close({ delayMs: signal === 'SIGTERM' ? delayMs() : 0 }).then(
        ({ dispatched, rejected, evicted }) => {
          log('info', 'stopped', { dispatched, rejected, evicted });
          resolve(0);
        },
        resolve.bind(undefined, 1),
      );
    };
    signals.on('SIGTERM', stop);
    signals.on('SIGINT', stop);
  });
}
