/** `headgate gateway`: a gateway until a signal ends it. */
import { setFlagsFromString } from 'node:v8';
import { createGateway, type GatewayConfig, importPlugins, loadGatewayConfig } from '../index.js';
import { changesBetween } from '../settings/config-changes.js';
import { runService, type ServiceCommand } from './run-service.js';

/** Changes that one line tells. */
const mostChanges = 20;

/**
 * V8 puts what has lived long into the old part of the heap at once. Here it guesses so from a few slow requests, and
 * each request then keeps what it refers to until the whole heap is collected: a fifth of the time (bench: gateway).
 */
setFlagsFromString('--no-allocation-site-pretenuring');

/** Resolves to the exit status. */
export function runGateway(command: ServiceCommand): Promise<number> {
  return runService(command, async (source, log, file, plugins) => {
    const load = async (text: string): Promise<GatewayConfig> =>
      loadGatewayConfig(text, { registry: await importPlugins(text, plugins) });
    const warn = ({ warnings }: GatewayConfig): void => {
      for (const message of warnings) log('warn', 'config', { file, message });
    };
    let config = await load(source);
    warn(config);
    const gateway = await createGateway(config, { log });
    const { url, adminUrl, pool, flow } = gateway;
    return {
      listening: { url, adminUrl, upstreams: pool.endpoints.length },
      stats: () => flow.stats(),
      async reload(text) {
        const next = await load(text);
        const needsRestart = gateway.reconfigure(next).join(', ') || undefined;
        const changed = told(changesBetween(config, next));
        config = next;
        warn(next);
        return { upstreams: pool.endpoints.length, changed, needsRestart };
      },
      // Ctrl-C comes from a person, and no load balancer needs time then. A reload may have changed the delay.
      close: (signal) => gateway.close({ delayMs: signal === 'SIGTERM' ? config.drain.delay : 0 }),
    };
  });
}

function told(changes: readonly string[]): string {
  if (changes.length === 0) return 'nothing';
  const left = changes.length - mostChanges;
  return changes.slice(0, mostChanges).join('; ') + (left > 0 ? `; and ${left} more` : '');
}
