/**
 * Asks for metrics by undici's `dispatch`, which costs a fraction of the platform's `fetch` (bench: scraping): no
 * streams, one handler.
 *
 * Invariant: at most the bytes of one turn of the parser are kept; the connection is paused until they are read.
 */
import type { MetricsFetch, MetricsResponse } from './read-exposition.js';

/** The part of an undici `Dispatcher` (an `Agent`, a `Pool`, a `ProxyAgent`) that is used; undici 7 and later. */
export interface MetricsDispatcher {
  dispatch(
    options: { origin: string; path: string; method: 'GET'; headers: Record<string, string> },
    handler: {
      onRequestStart(controller: MetricsExchange): void;
      onResponseStart(controller: MetricsExchange, status: number): void;
      onResponseData(controller: MetricsExchange, chunk: Uint8Array): void;
      onResponseEnd(): void;
      onResponseError(controller: MetricsExchange, error: Error): void;
    },
  ): unknown;
}

/** How the dispatcher lets go, or waits. */
export interface MetricsExchange {
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

/**
 * The option `fetch` of `scrape` for hosts that have undici: `scrape(pool, { fetch: undiciFetch(new Agent()) })`.
 * Connections are kept alive by the dispatcher, which the host closes. Redirects are not followed: their status is the
 * answer.
 */
export function undiciFetch(dispatcher: MetricsDispatcher): MetricsFetch {
  return (url, { headers, signal }) =>
    new Promise((begun, failed) => {
      const { origin, pathname, search } = new URL(url);
      const answer = new MetricsAnswer(signal, begun, failed);
      dispatcher.dispatch({ origin, path: pathname + search, method: 'GET', headers }, answer);
    });
}

type Part = { readonly done: boolean; readonly value?: Uint8Array };

class MetricsAnswer {
  private readonly signal: AbortSignal;
  private readonly begun: (response: MetricsResponse) => void;
  private failed: (error: unknown) => void;
  private exchange: MetricsExchange | undefined = undefined;
  private readonly parts: Uint8Array[] = [];
  /** The read that waits for the next part. */
  private reader: ((part: Part) => void) | undefined = undefined;
  private isWhole = false;
  private error: Error | undefined = undefined;
  private readonly onAbort = (): void => this.exchange?.abort(this.signal.reason);

  constructor(signal: AbortSignal, begun: (response: MetricsResponse) => void, failed: (error: unknown) => void) {
    this.signal = signal;
    this.begun = begun;
    this.failed = failed;
    signal.addEventListener('abort', this.onAbort);
  }

  /** Not before there is a connection: the question may have been given up meanwhile. */
  onRequestStart(exchange: MetricsExchange): void {
    this.exchange = exchange;
    if (this.signal.aborted) this.onAbort();
  }

  onResponseStart(_: MetricsExchange, status: number): void {
    if (status < 200) return;
    this.begun({ ok: status < 300, status, body: { getReader: () => this } });
  }

  onResponseData(exchange: MetricsExchange, chunk: Uint8Array): void {
    const { reader } = this;
    if (reader === undefined) {
      this.parts.push(chunk);
      exchange.pause();
      return;
    }
    this.reader = undefined;
    reader({ done: false, value: chunk });
  }

  onResponseEnd(): void {
    this.isWhole = true;
    this.signal.removeEventListener('abort', this.onAbort);
    this.reader?.({ done: true });
  }

  /** Rejects the question, or the read that waits for a part; a later read hears of it too. */
  onResponseError(_: MetricsExchange, error: Error): void {
    this.error = error;
    this.signal.removeEventListener('abort', this.onAbort);
    this.failed(error);
  }

  read(): Promise<Part> {
    const value = this.parts.shift();
    if (value !== undefined) {
      if (this.parts.length === 0) this.exchange?.resume();
      return Promise.resolve({ done: false, value });
    }
    if (this.error !== undefined) return Promise.reject(this.error);
    if (this.isWhole) return Promise.resolve({ done: true });
    return new Promise((reader, failed) => {
      this.reader = reader;
      this.failed = failed;
    });
  }

  async cancel(reason: unknown): Promise<void> {
    this.exchange?.abort(reason instanceof Error ? reason : new Error('cancelled'));
  }
}
