/** The life of `headgate gateway`: reads its file, serves, reads it again at SIGHUP, drains at a signal. */
import { dirname, resolve } from 'node:path';
import { type GatewayConfig, type GatewayWorkers, importPlugins, type LogFields, loadGatewayConfig } from '../index.js';
import { changesBetween } from '../settings/config-changes.js';
import type { CommandLog, LogFormat } from './command-log.js';
import { readSource } from './read-source.js';

export interface GatewayCommand {
  readonly config: string;
  readonly logFormat?: LogFormat | undefined;
  readonly modules?: readonly string[] | undefined;
  /** @default 1 */
  readonly workers?: number | 'auto' | undefined;
}

/** What serves: a gateway in this process, or the workers of one. Fields are what lines of the log say of it. */
export interface Server {
  /** Resolves when it listens. */
  start(config: GatewayConfig, source: string): Promise<LogFields>;
  /** Resolves to what takes effect only after a restart. */
  reload(config: GatewayConfig, source: string): Promise<readonly string[]>;
  /** What is there when it begins to drain. */
  load(): LogFields;
  /** Resolves when all is over. */
  stop(delayMs: number): Promise<LogFields>;
  /** Ends at once what this process does not end by itself. */
  kill(): void;
}

/** Changes that one line tells. */
const mostChanges = 20;

/** @throws (rejects) FlowConfigError */
export async function loadFile(
  { config, modules }: GatewayCommand,
  source: string,
  workers?: GatewayWorkers,
): Promise<GatewayConfig> {
  const from = config === '-' ? undefined : dirname(resolve(config));
  return loadGatewayConfig(source, { registry: await importPlugins(source, { from, modules }), workers });
}

/** Resolves to the exit status. */
export async function serveUntilSignal(command: GatewayCommand, output: CommandLog, server: Server): Promise<number> {
  const file = command.config === '-' ? '-' : resolve(command.config);
  const { log } = output;
  const release = output.takeOver();
  const warn = ({ warnings }: GatewayConfig): void => {
    for (const message of warnings) log('warn', 'config', { file, message });
  };
  let config: GatewayConfig;
  let listening: LogFields;
  try {
    const source = readSource(command.config);
    output.follow(source);
    config = await loadFile(command, source);
    warn(config);
    listening = await server.start(config, source);
  } catch (error) {
    server.kill();
    output.faults(file, 'not-started', error);
    release();
    return 1;
  }
  const reload = async (): Promise<void> => {
    try {
      const source = readSource(command.config);
      const next = await loadFile(command, source);
      const later = await server.reload(next, source);
      const changes = changesBetween(config, next);
      config = next;
      output.follow(source); // not before: a file that is refused changes nothing
      warn(next);
      const needsRestart = later.join(', ') || undefined;
      log('info', 'reloaded', { file, upstreams: next.upstreams.length, changed: told(changes), needsRestart });
    } catch (error) {
      output.faults(file, 'reload-refused', error);
    }
  };
  let reloaded = Promise.resolve();
  process.on('SIGHUP', () => {
    reloaded = reloaded.then(reload); // one after the other
  });
  // The delay is asked for when the signal comes: a reload may have changed it.
  const end = stopped(server, log, () => config.drain.delay).finally(() => output.flush());
  // This comes last, because a reader of the line may send signals at once.
  log('info', 'listening', { file, ...listening, pid: process.pid });
  return end;
}

function told(changes: readonly string[]): string {
  if (changes.length === 0) return 'nothing';
  const left = changes.length - mostChanges;
  return changes.slice(0, mostChanges).join('; ') + (left > 0 ? `; and ${left} more` : '');
}

function stopped(server: Server, log: CommandLog['log'], delayMs: () => number): Promise<number> {
  return new Promise((resolve) => {
    let isStopping = false;
    const stop = (signal: NodeJS.Signals): void => {
      if (isStopping) {
        server.kill();
        process.exit(1);
      }
      isStopping = true;
      log('info', 'draining', { signal, ...server.load() });
      // Ctrl-C comes from a person, and no load balancer needs time then.
      server.stop(signal === 'SIGTERM' ? delayMs() : 0).then(
        (fields) => {
          log('info', 'stopped', fields);
          resolve(0);
        },
        resolve.bind(undefined, 1),
      );
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
  });
}
