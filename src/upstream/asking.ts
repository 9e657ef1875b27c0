/** Questions to servers, for load and health: where, by which fetch, for how long, and why one brought nothing. */
import { letProcessEnd } from '../base/clock.js';
import { type Clock, type EndpointView, FlowConfigError } from '../index.js';

/**
 * `url`: none to ask. `profile`: choosing one failed. `network`: no answer. `timeout`: no whole one in time.
 * `http-status`: no success. `too-large`: above `maxResponseBytes`, or too many series. `no-metrics`: they are absent.
 */
export type ScrapeFailure = 'url' | 'profile' | 'network' | 'timeout' | 'http-status' | 'too-large' | 'no-metrics';

export class ScrapeError extends Error {
  override readonly name = 'ScrapeError';
  readonly code: ScrapeFailure;

  constructor(code: ScrapeFailure, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** The answer of the host's function. @throws ScrapeError when it throws */
export function attempt<T>(code: ScrapeFailure, ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    throw new ScrapeError(code, messageOf(error), error);
  }
}

export function asScrapeError(error: unknown): ScrapeError {
  return error instanceof ScrapeError ? error : new ScrapeError('network', messageOf(error), error);
}

/** `fetch` says in the cause what happened. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  const code = 'code' in cause ? String(cause.code) : '';
  return `${error.message}: ${cause.message || code}`;
}

/** Label `metricsUrl`; else `path` at label `address`, else `id`. @throws ScrapeError when that makes no URL of HTTP */
export function targetUrl({ id, labels }: EndpointView, path: string): string {
  const { metricsUrl, address = id } = labels;
  return metricsUrl === undefined ? httpUrl(withScheme(address), path) : httpUrl(metricsUrl);
}

/** @throws ScrapeError */
export function httpUrl(text: string, path?: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new ScrapeError('url', `no URL of http or https: ${text}`);
  return path === undefined ? url.href : new URL(path, url).href;
}

/** An address with several colons and no brackets is IPv6 without a port. */
function withScheme(address: string): string {
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(address)) return address;
  return /^[^[\]/]*:[^[\]/]*:[^[\]/]*$/.test(address) ? `http://[${address}]` : `http://${address}`;
}

/** For figures and logs: a query may hold a secret. */
export function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

/** @throws FlowConfigError that names `subject`, on a platform that has none */
export function platformFetch(subject: string): typeof globalThis.fetch {
  if (typeof globalThis.fetch === 'function') return globalThis.fetch;
  const expected = 'a function, since the platform has no fetch';
  throw new FlowConfigError(subject, [{ path: 'fetch', expected, got: 'nothing' }]);
}

/** The answer, unless `controller` aborts. @throws ScrapeError after `timeoutMs`; an abort's reason; as `ask` does */
export async function inTime<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  timeoutMs: number,
  clock: Clock,
  controller: AbortController,
): Promise<T> {
  const { signal } = controller;
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  const late = (): void => controller.abort(new ScrapeError('timeout', `no answer within ${Math.round(timeoutMs)} ms`));
  const timer = letProcessEnd(clock.setTimeout(late, timeoutMs));
  try {
    return await Promise.race([ask(signal), aborted]);
  } finally {
    clock.clearTimeout(timer);
  }
}
