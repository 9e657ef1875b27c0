/** `headgate gateway`: a gateway until a signal ends it. */

import { FlowConfigError } from '../../index.js';
import { createGateway, type Gateway, type GatewayConfig, lineLog, loadGatewayConfig } from '../index.js';
import { readSource } from './read-source.js';

/** Resolves to the exit status. */
export async function runGateway(file: string): Promise<number> {
  const read = (): GatewayConfig => loadGatewayConfig(readSource(file));
  let config: GatewayConfig;
  let gateway: Gateway;
  const log = (...line: Parameters<ReturnType<typeof lineLog>>): void =>
    lineLog(config.log.format, (text) => void process.stderr.write(text))(...line);
  try {
    config = read();
    for (const message of config.warnings) log('warn', 'config', { message });
    gateway = await createGateway(config, { log });
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`);
    return 1;
  }
  process.on('SIGHUP', () => {
    try {
      const next = read();
      const later = gateway.reconfigure(next);
      config = next;
      for (const message of next.warnings) log('warn', 'config', { message });
      log('info', 'reloaded', { upstreams: gateway.pool.endpoints.length, needsRestart: later.join(', ') || undefined });
    } catch (error) {
      // All faults, for people; and one line for machines.
      process.stderr.write(`${messageOf(error)}\n`);
      log('error', 'reload-refused', { problems: error instanceof FlowConfigError ? error.issues.length : 1 });
    }
  });
  const end = stopped(gateway, log);
  // This comes last, because a reader of the line may send signals at once.
  log('info', 'listening', { url: gateway.url, adminUrl: gateway.adminUrl, upstreams: gateway.pool.endpoints.length, pid: process.pid });
  return end;
}

function stopped(gateway: Gateway, log: ReturnType<typeof lineLog>): Promise<number> {
  return new Promise((resolve) => {
    let isStopping = false;
    const stop = (signal: NodeJS.Signals): void => {
      if (isStopping) process.exit(1);
      isStopping = true;
      const { waiting, inFlight } = gateway.flow.stats();
      log('info', 'draining', { signal, waiting, inFlight });
      gateway.close().then(
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

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
