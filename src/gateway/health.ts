/** Asks servers that have a health path whether they are well, and gives no work to servers that are not. */
import type { EndpointView } from '../index.js';
import type { GatewayConfig } from './gateway-config.js';
import type { GatewayLog } from './gateway-log.js';
import type { Upstreams } from './upstreams.js';

type HealthConfig = GatewayConfig['health'];

/** Starts at once; returns a function that stops this. */
export function watchHealth(
  upstreams: Upstreams,
  { intervalMs, timeoutMs }: HealthConfig,
  log: GatewayLog,
): () => void {
  const { pool } = upstreams;
  let isStopped = false;

  async function ask(endpoint: EndpointView, url: string): Promise<void> {
    const { id } = endpoint;
    const answer = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: 'error' }).catch(
      () => undefined,
    );
    await answer?.body?.cancel().catch(() => {});
    const isWell = answer?.ok === true;
    if (isStopped || isWell === (endpoint.state !== 'ill')) return;
    if (!pool.update(endpoint, { state: isWell ? 'ready' : 'ill' })) return;
    if (isWell) log('info', 'upstream-well', { endpoint: id });
    else log('warn', 'upstream-ill', { endpoint: id, status: answer?.status });
  }

  function askAll(): void {
    for (const endpoint of pool.endpoints) {
      const { url, healthPath } = upstreams.configOf(endpoint);
      if (healthPath !== undefined) void ask(endpoint, url + healthPath);
    }
  }

  // Servers without a check in the new configuration may have been ill under the last one.
  for (const endpoint of pool.endpoints) {
    if (endpoint.state === 'ill' && upstreams.configOf(endpoint).healthPath === undefined)
      pool.update(endpoint, { state: 'ready' });
  }
  askAll();
  const timer = setInterval(askAll, intervalMs).unref();
  return () => {
    isStopped = true;
    clearInterval(timer);
  };
}
