/** Watches the servers: their load, if the configuration asks for it, what takes its place, and their health. */
import type { Agent } from 'undici';
import { concurrencyDetector, type EndpointView, type SaturationDetector } from '../../index.js';
import type { MetricsFetch, ScrapeError, Scraper } from '../../upstream/index.js';
import { scrape, undiciFetch, watchHealth } from '../../upstream/index.js';
import type { GatewayCounters } from '../metrics/gateway-counters.js';
import type { GatewayConfig, HealthConfig, ScrapeConfig } from '../settings/gateway-config.js';
import type { GatewayLog } from '../shared/gateway-log.js';
import type { Upstreams } from './upstreams.js';

/** Returns a function that stops this. */
export function watchUpstreams(
  upstreams: Upstreams,
  config: Pick<GatewayConfig, 'health' | 'scrape'>,
  log: GatewayLog,
  { reports, agent, counters }: { reports: MetricsFallback; agent: Agent; counters: GatewayCounters },
): () => void {
  const stopHealth = watchUpstreamHealth(upstreams, config.health, log, counters);
  const asked = upstreams.pool.endpoints.filter((endpoint) => upstreams.configOf(endpoint).metrics !== 'none');
  if (upstreams.pool.endpoints.length > 0 && (config.scrape === undefined || asked.length === 0))
    reports.noLoadReported();
  if (config.scrape === undefined) return stopHealth;
  const scraper = scraperOf(upstreams, config.scrape, log, undiciFetch(agent));
  const without = new Set<EndpointView>();
  scraper.on('failed', ({ endpoint, error }) => {
    log('warn', 'scrape-failed', { endpoint: endpoint.id, code: error.code, error: error.message });
    if (!answersWithoutMetrics(error)) return;
    without.add(endpoint);
    const { endpoints } = upstreams.pool;
    if (endpoints.every((each) => without.has(each) || upstreams.configOf(each).metrics === 'none'))
      reports.noLoadReported();
  });
  const stopReported = upstreams.pool.on('reported', () => reports.loadReported());
  scraper.on('recovered', ({ endpoint, failedForMs }) => {
    without.delete(endpoint);
    log('info', 'scrape-recovered', { endpoint: endpoint.id, failedForMs: Math.round(failedForMs) });
  });
  return () => {
    stopHealth();
    stopReported();
    scraper.stop();
  };
}

/** True when the server answers, but does not report its load. */
export const answersWithoutMetrics = ({ code }: ScrapeError): boolean =>
  code === 'http-status' || code === 'no-metrics' || code === 'too-large';

export function scraperOf(upstreams: Upstreams, config: ScrapeConfig, log: GatewayLog, fetch?: MetricsFetch): Scraper {
  return scrape(upstreams.pool, {
    intervalMs: config.interval,
    idleIntervalMs: config.idleInterval,
    timeoutMs: config.timeout,
    stalenessThresholdMs: config.stalenessThreshold,
    fetch,
    urlOf: (endpoint) => {
      const { metrics, url, labels } = upstreams.configOf(endpoint);
      return metrics === 'none' ? undefined : (labels.metricsUrl ?? url + config.path);
    },
    profile: (endpoint) => {
      const { metrics } = upstreams.configOf(endpoint);
      return metrics === 'none' ? undefined : metrics;
    },
    onWarning: ({ message }) => log('warn', 'scrape-setting', { message }),
  });
}

/** Asks servers with a health path how they are, logs and counts it. Starts at once; returns what stops it. */
function watchUpstreamHealth(upstreams: Upstreams, config: HealthConfig, log: GatewayLog, counters: GatewayCounters) {
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
  health.on('ill', ({ endpoint, ...told }) => log('warn', 'upstream-ill', { endpoint: endpoint.id, ...told }));
  health.on('well', ({ endpoint }) => log('info', 'upstream-well', { endpoint: endpoint.id }));
  const message =
    'no server answers its health check: the checks are likely to be at fault, and no server loses its work';
  health.on('suspect', (told) => log('warn', 'health-suspect', { ...told, message }));
  health.on('trusted', () => log('info', 'health-trusted'));
  return () => health.stop();
}

/** Requests in flight on an unknown server of weight 1: few enough for a small one, enough to keep a large one busy. */
const fallbackConcurrency = 16;

/** Without the metrics that the detector needs, one that counts requests takes over; of a named one the log tells. */
export class MetricsFallback {
  private readonly log: GatewayLog;
  private readonly use: (detector: SaturationDetector) => void;
  private readonly seats: number;
  private config: GatewayConfig;
  private isReplaced = false;

  /** `use` puts a detector into force. Each of `processes` has its part of the seats. */
  constructor(config: GatewayConfig, log: GatewayLog, use: MetricsFallback['use'], processes = 1) {
    this.config = config;
    this.log = log;
    this.use = use;
    this.seats = Math.ceil(fallbackConcurrency / processes);
  }

  /** Takes another configuration; `isNew` when its detector is in force already. */
  configure(config: GatewayConfig, isNew: boolean): void {
    this.config = config;
    if (isNew) this.isReplaced = false;
  }

  /** Every server answered without such metrics, or no server is asked. */
  noLoadReported(): void {
    const { needsPool, type } = this.detector;
    if (needsPool !== true || this.isReplaced) return;
    if (!this.config.hasDefaultDetector) {
      const message = `no server reports its load, and ${type} needs it: no request is dispatched. See scrape, upstreams[].metrics`;
      return void this.log('error', 'no-load-reports', { message });
    }
    this.isReplaced = true;
    this.use(concurrencyDetector({ maxConcurrency: this.seats }));
    const message =
      `no server reports its load: at most ${this.seats} requests run on each at a time, which is a guess. ` +
      'Declare a concurrency-detector with what the servers can hold, or let them report metrics';
    this.log('warn', 'no-load-reports', { message, maxConcurrency: this.seats });
  }

  loadReported(): void {
    if (!this.isReplaced) return;
    this.isReplaced = false;
    this.use(this.detector);
    this.log('info', 'load-reports', { message: `servers report their load: ${this.detector.type} judges again` });
  }

  private get detector(): SaturationDetector {
    // A file without one has the default.
    const { saturationDetector = () => 1 } = this.config.flow;
    return typeof saturationDetector === 'function'
      ? { type: 'function', saturation: saturationDetector }
      : saturationDetector;
  }
}
