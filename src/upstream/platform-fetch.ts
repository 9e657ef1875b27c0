/** Questions to servers: by which fetch, and for how long. */
import { letProcessEnd } from '../base/clock.js';
import { type Clock, FlowConfigError } from '../index.js';
import { ScrapeError } from './scraping/scrape-error.js';

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
