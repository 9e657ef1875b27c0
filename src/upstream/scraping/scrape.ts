/** The entry point: reads the load of every endpoint of a pool from the metrics that it exposes. */
import type { EndpointPool } from '../../index.js';
import { resolveScrapeOptions, type ScrapeOptions, type ScrapeSettings } from './scrape-options.js';
import { Scraper } from './scraper.js';

/**
 * Starts to read the Prometheus metrics of every endpoint of the pool, those that join later included, and reports
 * their load to it, until `stop`. It does not keep the process alive. Source: llm-d-router, its metrics data source,
 * refreshed every 50 ms.
 * @throws FlowConfigError
 * @example
 * pool.add('server-1', { labels: { address: '10.0.0.1:8000' } });
 * const scraper = scrape(pool);
 * scraper.on('failed', ({ endpoint, error }) => log.warn(`no metrics of ${endpoint.id}: ${error.message}`));
 */
export function scrape(pool: EndpointPool, options: ScrapeOptions = {}): Scraper {
  const settings = resolveScrapeOptions(options);
  warn(settings);
  return new Scraper(pool, settings);
}

function warn({ intervalMs, jitter, stalenessThresholdMs, onWarning }: ScrapeSettings): void {
  const longestMs = intervalMs * (1 + jitter);
  if (onWarning === undefined || longestMs <= stalenessThresholdMs) return;
  const message =
    `up to ${longestMs} ms pass between two scrapes, but metrics are stale after ${stalenessThresholdMs} ms: ` +
    'a detector that takes stale endpoints for full would stop all dispatch in between';
  try {
    onWarning({ code: 'interval-exceeds-staleness', message });
  } catch {
    // A warning about the scraper must not keep it from starting.
  }
}
