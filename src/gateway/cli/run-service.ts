/** Runs what serves until a signal ends it: start, reload at SIGHUP, drain at SIGTERM and SIGINT. */
import { dirname, resolve } from 'node:path';
import type { FlowStats } from '../../index.js';
import type { GatewayLog, ImportPluginsOptions, LogFields } from '../index.js';
import type { GatewayArguments } from './arguments.js';
import { CommandLog } from './command-log.js';
import { readSource } from './read-source.js';

type Demand = Pick<FlowStats, 'waiting' | 'inFlight'>;

/** What runs. */
export interface Service {
  /** Told at the start, after all else: a reader of the line may send signals at once. */
  readonly listening: LogFields;
  stats(): Demand | Promise<Demand>;
  /** Takes the file that has been read again. @throws (rejects) where it has faults, and then nothing has changed */
  reload(source: string): Promise<LogFields>;
  /** A second call ends a delay at once. */
  close(signal: NodeJS.Signals): Promise<FlowStats>;
}

/** Where a service begins: with its file, in words and by name, its log, and plugins of your own. */
export type ServiceStart = Readonly<{ source: string; log: GatewayLog; file: string; plugins: ImportPluginsOptions }>;

type StartService = (given: ServiceStart) => Promise<Service>;

export function namesIn({ config, modules }: GatewayArguments): Pick<ServiceStart, 'file' | 'plugins'> {
  const file = config === '-' ? '-' : resolve(config);
  return { file, plugins: { from: file === '-' ? undefined : dirname(file), modules } };
}

/** Resolves to the exit status. */
export async function runService(command: GatewayArguments, start: StartService): Promise<number> {
  const { config: path, logFormat } = command;
  const { file, plugins } = namesIn(command);
  const output = new CommandLog(logFormat);
  const { log } = output;
  const release = output.takeOver();
  let service: Service;
  try {
    const source = readSource(path);
    output.follow(source);
    service = await start({ source, log, file, plugins });
  } catch (error) {
    output.faults(file, 'not-started', error);
    release();
    return 1;
  }
  const reload = async (): Promise<void> => {
    try {
      const source = readSource(path);
      const fields = await service.reload(source);
      output.follow(source); // not before: a file that is refused changes nothing
      log('info', 'reloaded', { file, ...fields });
    } catch (error) {
      output.faults(file, 'reload-refused', error);
    }
  };
  let reloaded = Promise.resolve();
  process.on('SIGHUP', () => {
    reloaded = reloaded.then(reload); // one after the other
  });
  const end = stopped(service, log).finally(() => output.flush());
  log('info', 'listening', { file, ...service.listening, pid: process.pid });
  return end;
}

function stopped(service: Service, log: GatewayLog): Promise<number> {
  return new Promise((resolve) => {
    let isStopping = false;
    const stop = async (signal: NodeJS.Signals): Promise<void> => {
      if (isStopping) process.exit(1);
      isStopping = true;
      const { waiting, inFlight } = await service.stats();
      log('info', 'draining', { signal, waiting, inFlight });
      const { dispatched, rejected, evicted } = await service.close(signal);
      log('info', 'stopped', { dispatched, rejected, evicted });
      resolve(0);
    };
    for (const each of ['SIGTERM', 'SIGINT'] as const)
      process.on(each, (signal) => void stop(signal).catch(() => resolve(1)));
  });
}
