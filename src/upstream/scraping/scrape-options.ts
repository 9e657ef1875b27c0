/** The options of `scrape`, as given and as resolved. */
import * as s from '../../base/schema/schema.js';
import { type Clock, type EndpointView, realClock, type Schema } from '../../index.js';
import { platformFetch } from '../asking.js';
import type { MetricsFetch } from './read-exposition.js';
import { type ProfileOption, resolveChoice } from './resolve-sources.js';

/** Something that is probably not meant; the scraper runs all the same. */
export interface ScrapeWarning {
  /** `interval-exceeds-staleness`: the endpoints are stale between two scrapes, and a detector holds them for full. */
  readonly code: 'interval-exceeds-staleness';
  readonly message: string;
}

export interface ScrapeOptions {
  /** From scrape to scrape. @default 50, as llm-d's router */
  intervalMs?: number | undefined;
  /**
   * True while no request needs the servers: they are asked every `idleIntervalMs` then. Asked at each scrape; an
   * exception is false. When that ends call `scraper.wake()`. @default nothing runs or waits in controllers of the pool
   */
  isIdle?: (() => boolean) | undefined;
  /**
   * Interval while idle, for all together; `intervalMs` or less: off. Metrics stay fresh until the next question is due
   * and the detector's threshold has passed: a server that dies is trusted so long. @default 1000
   */
  idleIntervalMs?: number | undefined;
  /** How long an answer may take, to its last byte. @default 1000 */
  timeoutMs?: number | undefined;
  /** Scrapes at once. @default 64 */
  concurrency?: number | undefined;
  /** Share of the interval by which each scrape is early or late, 0…1. @default 0.1 */
  jitter?: number | undefined;
  /** The longest of the doubling intervals for a failing endpoint. @default 1000 */
  maxBackoffMs?: number | undefined;
  /** Longest answer. @default 4194304 */
  maxResponseBytes?: number | undefined;
  /** Where endpoints without the label `metricsUrl` are asked. @default '/metrics' */
  path?: string | undefined;
  /** In place of labels and `path`; undefined = this endpoint is not scraped. */
  urlOf?: ((endpoint: EndpointView) => string | URL | undefined) | undefined;
  /** Sent with each request, for authorization. @default none */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Which metrics an endpoint has. @default by its label `llm-d.ai/engine-type`, else found out */
  profile?: ProfileOption | undefined;
  /** The detector's: older metrics are stale; longer intervals are warned of. @default 200, as utilizationDetector's */
  stalenessThresholdMs?: number | undefined;
  /** Told at once, before `scrape` returns. */
  onWarning?: ((warning: ScrapeWarning) => unknown) | undefined;
  /** @default the platform's `fetch`, which keeps connections alive */
  fetch?: MetricsFetch | undefined;
  /** Source of the timers. Sample times come from the pool. @default realClock */
  clock?: Clock | undefined;
  /** Source of the jitter, 0…1. @default Math.random */
  random?: (() => number) | undefined;
}

const isRecordOfTexts = (given: unknown): given is Readonly<Record<string, string>> =>
  typeof given === 'object' && given !== null && Object.values(given).every((entry) => typeof entry === 'string');

const scrapeOptions = s.object({
  intervalMs: s.optional(s.aboveZero(), 50),
  isIdle: s.optional(s.callable<NonNullable<ScrapeOptions['isIdle']>>()),
  idleIntervalMs: s.optional(s.aboveZero(), 1000),
  timeoutMs: s.optional(s.aboveZero(), 1000),
  concurrency: s.optional(s.positiveInteger(), 64),
  jitter: s.optional(s.ratio(), 0.1),
  maxBackoffMs: s.optional(s.aboveZero(), 1000),
  maxResponseBytes: s.optional(s.positiveInteger(), 4_194_304),
  path: s.optional(s.text('a path such as "/metrics"'), '/metrics'),
  urlOf: s.optional(s.callable<NonNullable<ScrapeOptions['urlOf']>>()),
  headers: s.optional(s.value('an object of texts', isRecordOfTexts), {}),
  profile: s.optional(s.anything() as Schema<ProfileOption>),
  stalenessThresholdMs: s.optional(s.aboveZero(), 200),
  onWarning: s.optional(s.callable<NonNullable<ScrapeOptions['onWarning']>>()),
  fetch: s.optional(s.callable<MetricsFetch>()),
  clock: s.optional(s.clock(), realClock),
  random: s.optional(s.randomSource(), Math.random),
});

/** Every option with its value; what has no default is undefined. */
export type ScrapeSettings = s.Filled<ScrapeOptions, 'urlOf' | 'profile' | 'onWarning' | 'isIdle'>;

/** Warns of what is probably not meant. @throws FlowConfigError */
export function resolveScrapeOptions(options: ScrapeOptions): ScrapeSettings {
  const settings = s.parse(scrapeOptions, options, 'scrape');
  const { profile } = settings;
  const fetch = settings.fetch ?? platformFetch('scrape');
  if (profile !== undefined && typeof profile !== 'function') resolveChoice(profile, 'scrape: profile');
  warn(settings);
  return { ...settings, fetch };
}

function warn({ intervalMs, jitter, stalenessThresholdMs, onWarning }: Omit<ScrapeSettings, 'fetch'>): void {
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
