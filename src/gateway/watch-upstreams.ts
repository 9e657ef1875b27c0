/** Keeps an eye on the servers: their load, where the configuration asks for it, and whether they are well. */
import { type Scraper, scrape } from '../upstream/index.js';
import type { GatewayConfig } from './gateway-config.js';
import type { GatewayLog } from './gateway-log.js';
import { watchHealth } from './health.js';
import type { Upstreams } from './upstreams.js';

/** Returns the way to stop. */
export function watchUpstreams(upstreams: Upstreams, config: Pick<GatewayConfig, 'health' | 'scrape'>, log: GatewayLog): () => void {
  const stopHealth = watchHealth(upstreams, config.health, log);
  if (config.scrape === undefined) return stopHealth;
  const { path, ...settings } = config.scrape;
  const scraper: Scraper = scrape(upstreams.pool, {
    ...settings,
    urlOf: (endpoint) => {
      const { profile, url, labels } = upstreams.configOf(endpoint);
      return profile === 'none' ? undefined : (labels.metricsUrl ?? url + path);
    },
    profile: (endpoint) => {
      const { profile } = upstreams.configOf(endpoint);
      return profile === 'none' ? undefined : profile;
    },
    onWarning: ({ message }) => log('warn', 'scrape-setting', { message }),
  });
  scraper.on('failed', ({ endpoint, error }) =>
    log('warn', 'scrape-failed', { endpoint: endpoint.id, code: error.code, error: error.message }),
  );
  scraper.on('recovered', ({ endpoint, failedForMs }) => {
    log('info', 'scrape-recovered', { endpoint: endpoint.id, failedForMs: Math.round(failedForMs) });
  });
  return () => {
    stopHealth();
    scraper.stop();
  };
}
