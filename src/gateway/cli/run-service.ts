/** Runs what serves until a signal ends it: start, reload at SIGHUP, drain at SIGTERM and SIGINT. */
import { dirname, resolve } from 'node:path';
import type { FlowStats } from '../../index.js';
import type { GatewayLog, ImportPluginsOptions, LogFields } from '../index.js';
import { CommandLog, type LogFormat } from './command-log.js';
import { readSource } from './read-source.js';

/** What runs. */
export interface Service {
  /** Told at the start, after all else: a reader of the line may send signals at once. */
  readonly listening: LogFields;
  stats(): FlowStats;
  /** Takes the file that has been read again. @throws (rejects) where it has faults, and then nothing has changed */
  reload(source: string): Promise<LogFields>;
  /** A second call ends a delay at once. */
  close(signal: NodeJS.Signals): Promise<FlowStats>;
}

export interface ServiceCommand {
  /** Of the configuration; `-` is standard input. */
  readonly config: string;
  readonly logFormat?: LogFormat | undefined;
  /** With plugins of your own. */
  readonly modules?: readonly string[] | undefined;
}

/** Resolves to the exit status. */
export async function runService(
  { config: path, logFormat, modules }: ServiceCommand,
  start: (source: string, log: GatewayLog, file: string, plugins: ImportPluginsOptions) => Promise<Service>,
): Promise<number> {
  const file = path === '-' ? '-' : resolve(path);
  const output = new CommandLog(logFormat);
  const { log } = output;
  const release = output.takeOver();
  let service: Service;
  try {
    const source = readSource(path);
    output.follow(source);
    service = await start(source, log, file, { from: file === '-' ? undefined : dirname(file), modules });
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
    const stop = (signal: NodeJS.Signals): void => {
      if (isStopping) process.exit(1);
      isStopping = true;
      const { waiting, inFlight } = service.stats();
      log('info', 'draining', { signal, waiting, inFlight });
      service.close(signal).then(
        ({ dispatched, rejected, evicted }) => {
          log('info', 'stopped', { dispatched, rejected, evicted });
          resolve(0);
        },
        resolve.bind(undefined, 1),
      );
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
  });
}
