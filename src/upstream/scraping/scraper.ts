/**
 * Keeps a pool's metrics fresh by asking the servers: often while requests run or wait, seldom while none does.
 * Invariant: an endpoint has at most one scrape under way, or one timer, or one place in the line or in the idle round;
 * after `stop` there is none of these, and nothing is reported any more. A sample's time is that of the request, so
 * that seats taken while it was under way count as unsampled. A reading of the idle round tells the pool when the next
 * one comes; the first request takes that promise back.
 */
import { letProcessEnd } from '../../base/clock.js';
import { GuardedEvents } from '../../base/faults/guarded-events.js';
import type { EndpointPool, EndpointView } from '../../index.js';
import { asScrapeError, attempt, httpUrl, inTime, ScrapeError, targetUrl, withoutQuery } from '../asking.js';
import { isIdle, onceActive } from './pool-activity.js';
import { readExposition } from './read-exposition.js';
import { candidatesFor } from './resolve-sources.js';
import { resolveScrapeOptions, type ScrapeOptions, type ScrapeSettings } from './scrape-options.js';
import type { ScraperEvents, ScraperStats, TargetStats } from './scraper-stats.js';
import { Answer, Target } from './target.js';

/** A scraper that runs. */
export class Scraper {
  private readonly targets = new Map<EndpointView, Target>();
  /** Targets that wait for others to be done, first come first served. */
  private readonly line = new Set<Target>();
  /** Targets that rest, and are asked together: a process that wakes up once for ten servers takes half the CPU. */
  private readonly resting = new Set<Target>();
  /** When they are asked, ms of the clock. */
  private roundAtMs = 0;
  private roundTimer: unknown = undefined;
  private readonly events = new GuardedEvents<ScraperEvents>('failed', 'recovered');
  private readonly detach: readonly (() => void)[];
  private readonly pool: EndpointPool;
  private readonly settings: ScrapeSettings;
  private underWay = 0;
  private scrapes = 0;
  private failures = 0;

  /** `scrape` makes it. */
  constructor(pool: EndpointPool, settings: ScrapeSettings) {
    this.pool = pool;
    this.settings = settings;
    this.detach = [
      onceActive(pool, () => this.wake()),
      pool.on('added', (endpoint) => this.begin(endpoint)),
      pool.on('removed', (endpoint) => this.end(endpoint)),
      pool.on('updated', (endpoint) => this.begin(endpoint)),
    ];
    for (const endpoint of pool.endpoints) this.begin(endpoint);
  }

  /** Calls `listener` from now on; returns what stops that. If it fails, only `listenerError` tells. */
  on<E extends keyof ScraperEvents>(event: E, listener: (payload: ScraperEvents[E]) => unknown): () => void {
    return this.events.on(event, listener);
  }

  /** The state of things now. O(endpoints). */
  get stats(): ScraperStats {
    const endpoints = [...this.targets.values()].map((target) => this.statsOf(target));
    return {
      targets: endpoints.length,
      failing: endpoints.filter(({ isFailing }) => isFailing).length,
      stale: endpoints.filter(({ isStale }) => isStale).length,
      underWay: this.underWay,
      scrapes: this.scrapes,
      failures: this.failures,
      endpoints,
    };
  }

  /** Asks resting servers at once, then every `intervalMs`; a request does so by itself. O(targets) after a rest. */
  wake(): void {
    const nowMs = this.pool.now();
    for (const target of this.endRest()) {
      const { endpoint } = target;
      if ((endpoint.reportDueAtMs ?? nowMs) > nowMs) this.promise(endpoint, nowMs);
      this.askAgain(target, this.settings.intervalMs);
    }
  }

  /** Ends it for good. The figures in the pool stay, and become stale. */
  stop(): void {
    for (const stop of this.detach) stop();
    for (const endpoint of [...this.targets.keys()]) this.end(endpoint);
  }

  [Symbol.dispose](): void {
    this.stop();
  }

  /** Begins to ask an endpoint, or begins anew when its labels now lead elsewhere. */
  private begin(endpoint: EndpointView): void {
    const target = this.targetOf(endpoint);
    if (target !== undefined && this.targets.get(endpoint)?.equals(target)) return;
    this.end(endpoint);
    if (target === undefined) return;
    this.targets.set(endpoint, target);
    this.due(target);
  }

  private end(endpoint: EndpointView): void {
    const target = this.targets.get(endpoint);
    if (target === undefined) return;
    this.targets.delete(endpoint);
    this.line.delete(target);
    if (this.resting.delete(target) && this.resting.size === 0) this.endRest();
    this.settings.clock.clearTimeout(target.timer);
    target.underWay?.abort(new ScrapeError('network', 'stopped'));
  }

  /** Undefined for an endpoint that is not to be asked. */
  private targetOf(endpoint: EndpointView): Target | undefined {
    const { urlOf, path, profile } = this.settings;
    try {
      const own = attempt('url', () => urlOf?.(endpoint));
      if (urlOf !== undefined && own === undefined) return undefined;
      const url = own === undefined ? targetUrl(endpoint, path) : httpUrl(String(own));
      const candidates = attempt('profile', () => candidatesFor(endpoint, profile));
      return new Target(endpoint, url, candidates);
    } catch (error) {
      return new Target(endpoint, asScrapeError(error), []);
    }
  }

  private due(target: Target): void {
    if (this.underWay < this.settings.concurrency) void this.scrape(target);
    else this.line.add(target);
  }

  /** Never rejects. */
  private async scrape(target: Target): Promise<void> {
    const { clock } = this.settings;
    const startedAtMs = clock.now();
    target.askedAtMs = startedAtMs;
    this.underWay++;
    try {
      await this.ask(target);
      if (this.isCurrent(target)) {
        target.lastDurationMs = clock.now() - startedAtMs;
        this.succeeded(target);
      }
    } catch (error) {
      if (this.isCurrent(target)) this.failed(target, asScrapeError(error));
    } finally {
      this.underWay--;
      if (this.isCurrent(target)) this.again(target);
      this.next();
    }
  }

  /** One question and its answer, in time or not at all. */
  private async ask(target: Target): Promise<void> {
    const { clock, timeoutMs, fetch, headers, maxResponseBytes } = this.settings;
    const { url, endpoint } = target;
    if (url instanceof ScrapeError) throw url;
    const sampledAtMs = this.pool.now();
    const controller = new AbortController();
    target.underWay = controller;
    const answer = new Answer(target);
    const read = (signal: AbortSignal): Promise<void> =>
      readExposition(fetch, url, headers, signal, maxResponseBytes, answer.exposition);
    try {
      await inTime(read, timeoutMs, clock, controller);
    } finally {
      target.underWay = undefined;
    }
    const reading = answer.recognized();
    const report = reading.report();
    target.profile = reading.sources.name;
    // A request sent just before the question may reach the server after it. The shorter of two round trips: a slow
    // answer says nothing of the way.
    const travelMs = Math.min(Math.max(this.pool.now() - sampledAtMs, 0), target.lastDurationMs ?? Infinity);
    if (this.isCurrent(target)) this.pool.report(endpoint, { ...report, sampledAtMs, travelMs });
  }

  private succeeded(target: Target): void {
    this.scrapes++;
    const { endpoint, failures, failingSinceMs } = target;
    target.failures = 0;
    target.lastError = undefined;
    if (failures === 0) return;
    this.events.emit('recovered', { endpoint, failures, failedForMs: this.settings.clock.now() - failingSinceMs });
  }

  private failed(target: Target, error: ScrapeError): void {
    this.failures++;
    target.lastError = error;
    target.failures++;
    if (target.failures > 1) return;
    target.failingSinceMs = this.settings.clock.now();
    this.events.emit('failed', { endpoint: target.endpoint, error });
  }

  private again(target: Target): void {
    const { intervalMs, idleIntervalMs, maxBackoffMs } = this.settings;
    const backoffMs = Math.min(intervalMs * 2 ** target.failures, Math.max(maxBackoffMs, intervalMs));
    if (target.failures > 0) this.askAgain(target, backoffMs);
    else if (idleIntervalMs > intervalMs && this.isIdle()) this.askSeldom(target);
    else this.askAgain(target, intervalMs);
  }

  private askAgain(target: Target, intervalMs: number): void {
    const { clock } = this.settings;
    const delayMs = Math.max(target.askedAtMs + this.jittered(intervalMs) - clock.now(), 0);
    target.timer = letProcessEnd(clock.setTimeout(() => this.due(target), delayMs));
  }

  /** The first target that rests says when all of them are asked. */
  private askSeldom(target: Target): void {
    const { clock, idleIntervalMs } = this.settings;
    if (this.resting.size === 0) {
      this.roundAtMs = target.askedAtMs + this.jittered(idleIntervalMs);
      const askAll = (): void => {
        for (const each of this.endRest()) this.due(each);
      };
      this.roundTimer = letProcessEnd(clock.setTimeout(askAll, Math.max(this.roundAtMs - clock.now(), 0)));
    }
    this.resting.add(target);
    this.promise(target.endpoint, this.pool.now() + Math.max(this.roundAtMs - clock.now(), 0));
  }

  private endRest(): readonly Target[] {
    this.settings.clock.clearTimeout(this.roundTimer);
    const targets = [...this.resting];
    this.resting.clear();
    return targets;
  }

  /** Until then the metrics of the endpoint do not age. */
  private promise({ id }: EndpointView, nextReportAtMs: number): void {
    const endpoint = this.pool.get(id);
    if (endpoint !== undefined) endpoint.reportDueAtMs = nextReportAtMs;
  }

  private jittered(intervalMs: number): number {
    const { jitter, random } = this.settings;
    return intervalMs * (1 + jitter * (2 * random() - 1));
  }

  /** A function that fails must not make metrics old. */
  private isIdle(): boolean {
    try {
      return this.settings.isIdle === undefined ? isIdle(this.pool) : this.settings.isIdle() === true;
    } catch {
      return false;
    }
  }

  private next(): void {
    const [first] = this.line;
    if (first === undefined) return;
    this.line.delete(first);
    this.due(first);
  }

  private isCurrent(target: Target): boolean {
    return this.targets.get(target.endpoint) === target;
  }

  private statsOf(target: Target): TargetStats {
    const { endpoint, url, profile, failures, lastError, lastDurationMs } = target;
    const freshFromMs = Math.max(endpoint.metrics?.sampledAtMs ?? -Infinity, endpoint.reportDueAtMs ?? -Infinity);
    return {
      id: endpoint.id,
      url: typeof url === 'string' ? withoutQuery(url) : undefined,
      profile,
      isFailing: failures > 0,
      failures,
      lastError,
      isStale: this.pool.now() - freshFromMs > this.settings.stalenessThresholdMs,
      lastDurationMs,
    };
  }
}

/**
 * Starts to read the Prometheus metrics of every endpoint of the pool, those that join later included, until `stop`. It
 * does not keep the process alive. Source: llm-d-router, its metrics data source, refreshed every 50 ms.
 * @throws FlowConfigError
 * @example
 * pool.add('server-1', { labels: { address: '10.0.0.1:8000' } });
 * const scraper = scrape(pool);
 * scraper.on('failed', ({ endpoint, error }) => log.warn(`no metrics of ${endpoint.id}: ${error.message}`));
 */
export function scrape(pool: EndpointPool, options: ScrapeOptions = {}): Scraper {
  return new Scraper(pool, resolveScrapeOptions(options));
}
