/** The gateway that `headgate gateway` runs. */
import { setFlagsFromString } from 'node:v8';
import { createGateway, type GatewayConfig, importPlugins, loadGatewayConfig } from '../index.js';
import { changesBetween } from '../settings/config-changes.js';
import type { GatewayWorkers } from '../shared/gateway-workers.js';
import type { Service, ServiceStart } from './run-service.js';

/** Changes that one line tells. */
const mostChanges = 20;

/** V8 guesses from slow requests that all live long; keeping them cost a fifth of the time (bench: gateway). */
setFlagsFromString('--no-allocation-site-pretenuring');

/** With the parts of one of several workers. @throws (rejects) FlowConfigError */
export async function loadFile(
  source: string,
  { plugins }: Pick<ServiceStart, 'plugins'>,
  workers?: GatewayWorkers,
): Promise<GatewayConfig> {
  const registry = await importPlugins(source, plugins);
  const config = loadGatewayConfig(source, { registry: workers?.registry(registry) ?? registry });
  return workers?.settings(config) ?? config;
}

export function warn({ warnings }: GatewayConfig, { log, file }: ServiceStart): void {
  for (const message of warnings) log('warn', 'config', { file, message });
}

/** A gateway in this process, alone or as one of several workers. */
export async function serveGateway(start: ServiceStart, workers?: GatewayWorkers): Promise<Service> {
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

export function changesTold(before: GatewayConfig, after: GatewayConfig): string {
  const changes = changesBetween(before, after);
  if (changes.length === 0) return 'nothing';
  const left = changes.length - mostChanges;
  return changes.slice(0, mostChanges).join('; ') + (left > 0 ? `; and ${left} more` : '');
}
