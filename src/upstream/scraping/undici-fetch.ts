/** Asks for metrics by undici's `request`, which costs less than the platform's `fetch` (bench: scraping). */
import type { MetricsFetch } from './read-exposition.js';

/** The part of an undici `Dispatcher` (an `Agent`, a `Pool`, a `ProxyAgent`) that is used. */
export interface MetricsDispatcher {
  request(options: {
    origin: string;
    path: string;
    method: 'GET';
    headers: Record<string, string>;
    signal: AbortSignal;
  }): Promise<{ readonly statusCode: number; readonly body: MetricsStream }>;
}

/** A body as undici gives it. */
export interface MetricsStream extends AsyncIterable<Uint8Array> {
  on(event: 'error', listener: () => void): this;
  destroy(error?: Error): unknown;
}

/** For `scrape(pool, { fetch: undiciFetch(new Agent()) })`. The host closes the dispatcher. Redirects are answers. */
export function undiciFetch(dispatcher: MetricsDispatcher): MetricsFetch {
  return async (url, { headers, signal }) => {
    const { origin, pathname, search } = new URL(url);
    const asked = { origin, path: pathname + search, method: 'GET', headers, signal } as const;
    const { statusCode, body } = await dispatcher.request(asked);
    // Whoever reads hears of an error; where nobody does it would end the process.
    const parts = body.on('error', () => {})[Symbol.asyncIterator]();
    const reader = {
      async read() {
        const { done = false, value } = await parts.next();
        return { done, value };
      },
      cancel: async (reason: unknown) => void body.destroy(reason instanceof Error ? reason : undefined),
    };
    return { ok: statusCode >= 200 && statusCode < 300, status: statusCode, body: { getReader: () => reader } };
  };
}
