/**
 * Keeps work from endpoints that are not well. Invariant: one question under way each; `ready` and `ill` change after
 * so many equal answers in a row, never while `draining`. Silence counts only while another answers well: when all are
 * silent, the fault is likely here, and the pool is not emptied.
 */
import { letProcessEnd } from '../../base/clock.js';
import { GuardedEvents, type ListenerErrors } from '../../base/faults/guarded-events.js';
import { put } from '../../base/put.js';
import * as s from '../../base/schema/schema.js';
import { type Clock, type EndpointPool, type EndpointView, realClock } from '../../index.js';
import { asScrapeError, attempt, inTime, platformFetch, type ScrapeError, targetUrl } from '../asking.js';

/** What is used of `fetch`. */
export type HealthFetch = (
  url: string,
  init: { readonly signal: AbortSignal; readonly redirect: 'manual' },
) => Promise<{ readonly ok: boolean; readonly status: number; readonly body?: { cancel(): Promise<void> } | null }>;

export interface HealthOptions {
  /** From round to round. A server that has not answered yet is left out. @default 2000 */
  intervalMs?: number | undefined;
  /** How long an answer may take, ms; at least twice the median. @default 1000 */
  timeoutMs?: number | undefined;
  /** Checks that fail in a row before a server is ill. @default 3, as kubelet's failureThreshold */
  failures?: number | undefined;
  /** Checks that succeed in a row before it is ready again. @default 1, as kubelet's successThreshold */
  successes?: number | undefined;
  /**
   * When none answers well: `keep` those that are silent, or take them for `ill`. Checks may be at fault, and the pool
   * is empty then. Source: Envoy's panic threshold. @default 'keep'
   */
  whenAllSilent?: 'keep' | 'ill' | undefined;
  /** Where endpoints are asked, at the label `address` or else at the `id`. @default '/health' */
  path?: string | undefined;
  /** In place of `path`; undefined = this endpoint is not checked. */
  urlOf?: ((endpoint: EndpointView) => string | undefined) | undefined;
  /** @default the platform's `fetch` */
  fetch?: HealthFetch | undefined;
  /** @default realClock */
  clock?: Clock | undefined;
}

const healthOptions = s.object({
  intervalMs: s.optional(s.aboveZero(), 2000),
  timeoutMs: s.optional(s.aboveZero(), 1000),
  failures: s.optional(s.positiveInteger(), 3),
  successes: s.optional(s.positiveInteger(), 1),
  whenAllSilent: s.optional(s.oneOf('keep', 'ill'), 'keep'),
  path: s.optional(s.text('a path such as "/health"'), '/health'),
  urlOf: s.optional(s.callable<NonNullable<HealthOptions['urlOf']>>()),
  fetch: s.optional(s.callable<HealthFetch>()),
  clock: s.optional(s.clock(), realClock),
});

/** Every option with its value; what has no default is undefined. */
type HealthSettings = s.Filled<HealthOptions, 'urlOf'>;

/** `well`: 2xx. `ill`: another status, or a refusal. `silent`: no answer. `disregarded`: silent, as all others are. */
export type HealthResult = 'well' | 'ill' | 'silent' | 'disregarded';

/** The events of a watch. */
export interface HealthEvents extends ListenerErrors {
  /** Each check, when it has ended. */
  checked: { readonly endpoint: EndpointView; readonly result: HealthResult };
  /** The endpoint gets no work any more. `reason` says what the last check brought. */
  ill: { readonly endpoint: EndpointView; readonly failures: number; readonly reason: string };
  /** The endpoint gets work again. */
  well: { readonly endpoint: EndpointView };
  /** The checks are suspected: no server answers; once until `trusted`. */
  suspect: { readonly silent: number; readonly reason: string };
  /** Some server answers well again. */
  trusted: Record<never, never>;
}

/** What is known of one endpoint under one URL. */
interface Checked {
  /** The fault, when there is none to ask. Undefined: it is not to be asked. */
  readonly url: string | ScrapeError | undefined;
  /** In a row; one of them is 0. */
  failures: number;
  successes: number;
  latencyMs: number | undefined;
  isUnderWay: boolean;
}

type Answer = { readonly result: 'well' | 'ill' | 'silent'; readonly reason: string };

/** Health checks that run. */
export class HealthWatch {
  private readonly events = new GuardedEvents<HealthEvents>('checked', 'ill', 'well', 'suspect', 'trusted');
  private readonly checks = new WeakMap<EndpointView, Checked>();
  private readonly pool: EndpointPool;
  private readonly settings: HealthSettings;
  private timer: unknown = undefined;
  private isStopped = false;
  private isSuspect = false;

  /** `watchHealth` makes it. */
  constructor(pool: EndpointPool, settings: HealthSettings) {
    this.pool = pool;
    this.settings = settings;
    // The listeners of the host are there by then.
    this.timer = letProcessEnd(settings.clock.setTimeout(() => this.round(), 0));
  }

  /** Calls `listener` from now on; returns what stops that. If it fails, only `listenerError` tells. */
  on<E extends keyof HealthEvents>(event: E, listener: (payload: HealthEvents[E]) => unknown): () => void {
    return this.events.on(event, listener);
  }

  /** Ends it for good. Endpoints stay as they are. */
  stop(): void {
    this.isStopped = true;
    this.settings.clock.clearTimeout(this.timer);
  }

  private round(): void {
    const { clock, intervalMs } = this.settings;
    this.timer = letProcessEnd(clock.setTimeout(() => this.round(), intervalMs));
    for (const endpoint of this.pool.endpoints) {
      const checked = this.checkedOf(endpoint);
      if (checked.url !== undefined && !checked.isUnderWay) void this.check(endpoint, checked, checked.url);
    }
  }

  /** It begins anew when the endpoint moves to another URL. */
  private checkedOf(endpoint: EndpointView): Checked {
    const url = this.urlOf(endpoint);
    const known = this.checks.get(endpoint);
    if (known !== undefined && String(known.url) === String(url)) return known;
    const checked = { url, failures: 0, successes: 0, latencyMs: undefined, isUnderWay: false };
    return put(this.checks, endpoint, checked);
  }

  private urlOf(endpoint: EndpointView): Checked['url'] {
    const { urlOf, path } = this.settings;
    try {
      return attempt('url', () => (urlOf === undefined ? targetUrl(endpoint, path) : urlOf(endpoint)));
    } catch (error) {
      return asScrapeError(error);
    }
  }

  /** Never rejects. */
  private async check(endpoint: EndpointView, checked: Checked, url: string | ScrapeError): Promise<void> {
    const { clock } = this.settings;
    const askedAtMs = clock.now();
    checked.isUnderWay = true;
    const answer = await this.ask(url, this.patienceFor(endpoint));
    checked.isUnderWay = false;
    if (this.isStopped || this.checks.get(endpoint) !== checked || this.pool.get(endpoint.id) !== endpoint) return;
    if (answer.result !== 'silent') checked.latencyMs = clock.now() - askedAtMs;
    if (answer.result === 'well') this.succeeded(endpoint, checked);
    else this.failed(endpoint, checked, answer);
  }

  private async ask(url: string | ScrapeError, patienceMs: number): Promise<Answer> {
    const { clock, fetch } = this.settings;
    if (typeof url !== 'string') return { result: 'silent', reason: url.message };
    const asked = async (signal: AbortSignal): Promise<Answer> => {
      const { ok, status, body } = await fetch(url, { signal, redirect: 'manual' });
      body?.cancel().catch(() => {});
      return { result: ok ? 'well' : 'ill', reason: `status ${status}` };
    };
    try {
      return await inTime(asked, patienceMs, clock, new AbortController());
    } catch (error) {
      return { result: isRefused(error) ? 'ill' : 'silent', reason: asScrapeError(error).message };
    }
  }

  /** A server that answers as slowly as its peers is not ill. */
  private patienceFor(endpoint: EndpointView): number {
    const others = this.pool.endpoints.filter((other) => other !== endpoint);
    const latencies = others.flatMap((other) => this.checks.get(other)?.latencyMs ?? []).sort((a, b) => a - b);
    const median = latencies[Math.floor(latencies.length / 2)] ?? 0;
    return Math.max(this.settings.timeoutMs, 2 * median);
  }

  private succeeded(endpoint: EndpointView, checked: Checked): void {
    checked.failures = 0;
    checked.successes++;
    this.events.emit('checked', { endpoint, result: 'well' });
    if (this.isSuspect) {
      this.isSuspect = false;
      this.events.emit('trusted', {});
    }
    if (endpoint.state !== 'ill' || checked.successes < this.settings.successes) return;
    this.pool.update(endpoint, { state: 'ready' });
    this.events.emit('well', { endpoint });
  }

  private failed(endpoint: EndpointView, checked: Checked, { result, reason }: Answer): void {
    checked.successes = 0;
    checked.failures++;
    const isDisregarded = result === 'silent' && this.settings.whenAllSilent === 'keep' && !this.othersAnswer(endpoint);
    this.events.emit('checked', { endpoint, result: isDisregarded ? 'disregarded' : result });
    const { failures } = checked;
    if (endpoint.state !== 'ready' || failures < this.settings.failures) return;
    if (isDisregarded) return void this.suspect(reason);
    this.pool.update(endpoint, { state: 'ill' });
    this.events.emit('ill', { endpoint, failures, reason });
  }

  /** True when another server may have work, and its last answer was good; or it is not checked. */
  private othersAnswer(endpoint: EndpointView): boolean {
    return this.pool.endpoints.some((other) => {
      const { url, successes } = this.checkedOf(other);
      return other !== endpoint && other.state === 'ready' && (url === undefined || successes > 0);
    });
  }

  private suspect(reason: string): void {
    if (this.isSuspect) return;
    this.isSuspect = true;
    const silent = this.pool.endpoints.filter((each) => (this.checks.get(each)?.failures ?? 0) > 0).length;
    this.events.emit('suspect', { silent, reason });
  }
}

/**
 * Starts to ask every endpoint of the pool whether it is well, those that join later included, until `stop`: one that
 * is not becomes `ill`, and `ready` again. It does not keep the process alive. @throws FlowConfigError
 * @example watchHealth(pool).on('ill', ({ endpoint, reason }) => log.warn(`${endpoint.id} is ill: ${reason}`));
 */
export function watchHealth(pool: EndpointPool, options: HealthOptions = {}): HealthWatch {
  const settings = s.parse(healthOptions, options, 'watchHealth');
  return new HealthWatch(pool, { ...settings, fetch: settings.fetch ?? platformFetch('watchHealth') });
}

/** The machine is there and answers that nobody listens. */
function isRefused(error: unknown): boolean {
  const { cause } = error instanceof Error ? error : {};
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED';
}
