/** `headgate/endpoints`: a real view of the model servers. */
export { EndpointPool, type EndpointView, leastLoaded } from '../index.js';
export type {
  EndpointMetrics,
  EndpointOptions,
  LoraAdapters,
  MetricsReport,
  PoolEvents,
  RankLoad,
} from '../types/index.js';
export { ScrapeError, type ScrapeFailure } from './asking.js';
export * from './health/health-watch.js';
export * from './scraping/metric-sources.js';
export type { MetricsFetch, MetricsResponse } from './scraping/read-exposition.js';
export { engineTypeLabel, type ProfileChoice, type ProfileOption } from './scraping/resolve-sources.js';
export type { ScrapeOptions, ScrapeWarning } from './scraping/scrape-options.js';
export { type Scraper, scrape } from './scraping/scraper.js';
export type { ScraperEvents, ScraperStats, TargetStats } from './scraping/scraper-stats.js';
export { type MetricsDispatcher, type MetricsStream, undiciFetch } from './scraping/undici-fetch.js';
export { type RankDialect, serverRank } from './server-rank.js';
export { type LoadHeaders, loadMetricsHeader, reportFromHeaders } from './usage/report-from-headers.js';
export { type UsageReader, type UsageReaderOptions, usageReader } from './usage/usage-reader.js';
