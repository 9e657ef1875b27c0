/** Asks servers that have a health path whether they are well, and keeps work from those that are not. */
import type { GatewayConfig } from './gateway-config.js';
import type { GatewayLog } from './gateway-log.js';
import type { Upstreams } from './upstreams.js';

type HealthConfig = GatewayConfig['health'];

/** Starts at once; returns the way to stop. */
export function watchHealth(upstreams: Upstreams, { intervalMs, timeoutMs }: HealthConfig, log: GatewayLog): () => void {
  const ill = new Set<string>();
  const { pool } = upstreams;

  async function ask(id: string, url: string): Promise<void> {
    const answer = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: 'error' }).catch(() => undefined);
    await answer?.body?.cancel().catch(() => {});
    if (answer?.ok === true) {
      if (!ill.delete(id)) return;
      pool.clearOverloaded(id);
      log('info', 'upstream-well', { endpoint: id });
      return;
    }
    // Until after the next answer is due.
    pool.markOverloaded(id, 2 * intervalMs + timeoutMs);
    if (ill.has(id)) return;
    ill.add(id);
    log('warn', 'upstream-ill', { endpoint: id, status: answer?.status });
  }

  function askAll(): void {
    for (const endpoint of pool.endpoints) {
      const { url, healthPath } = upstreams.configOf(endpoint);
      if (healthPath !== undefined) void ask(endpoint.id, url + healthPath);
    }
  }

  askAll();
  const timer = setInterval(askAll, intervalMs).unref();
  return () => clearInterval(timer);
}
