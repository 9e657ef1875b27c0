/** Asks servers that have a health path whether they are well, and logs and counts what comes of it. */
import { watchHealth } from '../../upstream/index.js';
import type { GatewayCounters } from '../metrics/gateway-counters.js';
import type { GatewayConfig } from '../settings/gateway-config.js';
import type { GatewayLog } from '../shared/gateway-log.js';
import type { Upstreams } from './upstreams.js';

/** Starts at once; returns a function that stops this. */
export function watchUpstreamHealth(
  upstreams: Upstreams,
  config: GatewayConfig['health'],
  log: GatewayLog,
  counters: GatewayCounters,
): () => void {
  const { pool } = upstreams;
  // Servers without a check in the new configuration may have been ill under the last one.
  for (const endpoint of pool.endpoints) {
    if (endpoint.state === 'ill' && upstreams.configOf(endpoint).healthPath === undefined)
      pool.update(endpoint, { state: 'ready' });
  }
  const { interval, timeout, ...settings } = config;
  const health = watchHealth(pool, {
    ...settings,
    intervalMs: interval,
    timeoutMs: timeout,
    urlOf: (endpoint) => {
      const { url, healthPath } = upstreams.configOf(endpoint);
      return healthPath === undefined ? undefined : url + healthPath;
    },
  });
  health.on('checked', ({ endpoint, result }) => counters.checked(endpoint.id, result));
  health.on('ill', ({ endpoint, failures, reason }) =>
    log('warn', 'upstream-ill', { endpoint: endpoint.id, failures, reason }),
  );
  health.on('well', ({ endpoint }) => log('info', 'upstream-well', { endpoint: endpoint.id }));
  health.on('suspect', ({ silent, reason }) =>
    log('warn', 'health-suspect', {
      silent,
      reason,
      message: 'no server answers its health check: the checks are likely to be at fault, and no server loses its work',
    }),
  );
  health.on('trusted', () => log('info', 'health-trusted'));
  return () => health.stop();
}
