/** `headgate gateway`: a gateway until a signal ends it, in this process or in workers of it. */
import { availableParallelism } from 'node:os';
import { createGateway, type Gateway } from '../index.js';
import { CommandLog } from './command-log.js';
import { runWorkers } from './run-workers.js';
import { type GatewayCommand, serveUntilSignal } from './serve-until-signal.js';

/** Resolves to the exit status. */
export async function runGateway(command: GatewayCommand): Promise<number> {
  const { workers = 1 } = command;
  const count = workers === 'auto' ? availableParallelism() : workers;
  if (count > 1) return runWorkers(command, count);
  const output = new CommandLog(command.logFormat);
  let gateway: Gateway;
  return serveUntilSignal(command, output, {
    async start(config) {
      gateway = await createGateway(config, { log: output.log });
      const { url, adminUrl, pool } = gateway;
      return { url, adminUrl, upstreams: pool.endpoints.length };
    },
    reload: async (config) => gateway.reconfigure(config),
    load() {
      const { waiting, inFlight } = gateway.flow.stats();
      return { waiting, inFlight };
    },
    async stop(delayMs) {
      const { dispatched, rejected, evicted } = await gateway.close({ delayMs });
      return { dispatched, rejected, evicted };
    },
    kill: () => {},
  });
}
