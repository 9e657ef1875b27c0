/** Asks a server for its metrics and hands the answer on as it arrives, up to a limit. */
import type { PieceSource } from '../../base/stream/read-ahead.js';
import { ScrapeError } from '../asking.js';
import type { ExpositionReader } from './exposition-reader.js';

/** The part of a `Response` that is used. */
export interface MetricsResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly body: { getReader(): PieceSource<Uint8Array> } | null;
}

/** The platform's `fetch`, or one with an agent, certificates or a proxy of the host's. */
export type MetricsFetch = (
  url: string,
  init: { readonly headers: Record<string, string>; readonly signal: AbortSignal; readonly redirect: 'error' },
) => Promise<MetricsResponse>;

/** Compression would cost the model server more than the network. */
const ownHeaders = { accept: 'text/plain;version=0.0.4', 'accept-encoding': 'identity' };

/** @throws ScrapeError, or whatever `fetchMetrics` throws */
export async function readExposition(
  fetchMetrics: MetricsFetch,
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  maxBytes: number,
  exposition: ExpositionReader,
): Promise<void> {
  const response = await fetchMetrics(url, { headers: { ...ownHeaders, ...headers }, signal, redirect: 'error' });
  const body = response.body?.getReader();
  try {
    if (!response.ok) throw new ScrapeError('http-status', `answered ${response.status}`);
    let bytes = 0;
    for (let part = await body?.read(); part !== undefined && !part.done; part = await body?.read()) {
      if (signal.aborted) throw signal.reason;
      bytes += part.value?.byteLength ?? 0;
      if (bytes > maxBytes) throw new ScrapeError('too-large', `more than ${maxBytes} bytes`);
      if (part.value !== undefined) exposition.push(part.value);
    }
    exposition.end();
  } catch (error) {
    // The connection goes with it; nobody waits for that.
    body?.cancel(error).catch(() => {});
    throw error;
  }
}
