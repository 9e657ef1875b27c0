/** The load that a model server attaches to its responses. */
import { type HeaderSource, headerText } from '../../base/headers/header-source.js';
import { fieldsOf, parseJson } from '../../base/stream/content-pieces.js';
import type { EndpointPool, EndpointView } from '../../index.js';

/** `Headers`, or what Node calls headers. */
export type LoadHeaders = HeaderSource;

/** The response header. A server sends it when the request asks by `endpoint-load-metrics-format: JSON` (or `TEXT`). */
export const loadMetricsHeader = 'endpoint-load-metrics';

/** Longer is no load report. */
const longestHeader = 16_384;

/** Names that servers give to the figures, vLLM's first. */
const names = {
  waitingQueueSize: ['num_requests_waiting'],
  runningRequests: ['num_requests_running'],
  kvCacheUsage: ['kv_cache_usage_perc', 'kv_cache_utilization'],
} as const;

/**
 * Reports the load in a response's headers, as they arrive. False without both queue and KV cache: half a sample would
 * make the other half look fresh. Source: ORCA, `TEXT` and `JSON`, as sent by vLLM.
 */
export function reportFromHeaders(pool: EndpointPool, server: string | EndpointView, headers: LoadHeaders): boolean {
  const text = headerText(headers, loadMetricsHeader);
  if (text === undefined || text.length > longestHeader) return false;
  const load = parseLoad(text);
  const [waitingQueueSize, kvCacheUsage] = [figureOf(load, names.waitingQueueSize), figureOf(load, names.kvCacheUsage)];
  if (waitingQueueSize === undefined || kvCacheUsage === undefined) return false;
  const known = pool.get(typeof server === 'string' ? server : server.id)?.metrics?.runningRequests ?? 0;
  return pool.report(server, {
    waitingQueueSize,
    kvCacheUsage,
    runningRequests: figureOf(load, names.runningRequests) ?? known,
  });
}

/** The format stands in front, `TEXT` or `JSON`; a server that leaves it out shows it by the first letter. */
function parseLoad(text: string): ReadonlyMap<string, unknown> {
  const [, format = '', rest = ''] = /^(?:(TEXT|JSON)\s+)?(.*)$/is.exec(text.trim()) ?? [];
  return format.toUpperCase() === 'JSON' || rest.startsWith('{')
    ? new Map(Object.entries(fieldsOf(fieldsOf(parseJson(rest))?.named_metrics) ?? {}))
    : parseTextLoad(rest);
}

function parseTextLoad(text: string): ReadonlyMap<string, number> {
  const pairs = text.split(',').flatMap((entry) => {
    const [, name, value] = /^\s*(?:named_metrics\.)?([\w-]+)\s*=\s*(\S+)\s*$/.exec(entry) ?? [];
    return name === undefined ? [] : [[name, Number(value)] as const];
  });
  return new Map(pairs);
}

function figureOf(load: ReadonlyMap<string, unknown>, aliases: readonly string[]): number | undefined {
  for (const alias of aliases) {
    const figure = load.get(alias);
    if (typeof figure === 'number' && Number.isFinite(figure) && figure >= 0) return figure;
  }
  return undefined;
}
