/** How the scraper asks: with undici's `request`, which costs a fraction of the platform's `fetch` (bench: scraping). */
import type { Agent } from 'undici';
import type { MetricsFetch } from '../upstream/index.js';

/** Redirects are not followed: their status is the answer. */
export function metricsFetch(agent: Agent): MetricsFetch {
  return async (url, { headers, signal }) => {
    const { origin, pathname, search } = new URL(url);
    const { statusCode, body } = await agent.request({ origin, path: pathname + search, method: 'GET', headers, signal });
    // An abort is told by whoever reads; later nobody listens.
    body.on('error', () => {});
    const parts: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]();
    const read = async (): Promise<{ readonly done: boolean; readonly value?: Uint8Array }> => {
      const { done = false, value } = await parts.next();
      return { done, value };
    };
    const cancel = async (): Promise<void> => void body.destroy();
    return {
      ok: statusCode >= 200 && statusCode < 300,
      status: statusCode,
      body: { getReader: () => ({ read, cancel }) },
    };
  };
}
