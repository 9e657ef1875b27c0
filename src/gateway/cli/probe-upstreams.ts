/** `headgate check --probe`: asks the servers of a gateway file once whether they are there, and report their load. */
import type { EndpointView, PluginRegistry } from '../../index.js';
import { Upstreams } from '../forwarding/upstreams.js';
import { answersWithoutMetrics, scraperOf } from '../forwarding/watch-upstreams.js';
import { type GatewayConfig, loadGatewayConfig } from '../index.js';

/** One sentence for each server with which something is wrong. The file must have no faults. */
export async function probe(text: string, registry?: PluginRegistry): Promise<string[]> {
  const config = loadGatewayConfig(text, { registry });
  const absent = await Promise.all(config.upstreams.map((upstream) => whyAbsent(upstream, config.health.timeout)));
  return [...absent.flat(), ...(await withoutLoad(config))];
}

async function whyAbsent({ id, url, healthPath }: GatewayConfig['upstreams'][number], timeoutMs: number) {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const answer = await fetch(url + (healthPath ?? '/v1/models'), { signal, redirect: 'manual' });
    await answer.body?.cancel();
    if (healthPath === undefined || answer.ok) return [];
    return [`upstream ${id} is ill: ${healthPath} answers ${answer.status}`];
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    return [`upstream ${id} does not answer: ${cause instanceof Error ? cause.message : String(cause)}`];
  }
}

/** Of servers that are there: those that tell no load, where the detector reads it. */
async function withoutLoad({ upstreams: configs, scrape, flow, hasDefaultDetector }: GatewayConfig): Promise<string[]> {
  const { saturationDetector: detector } = flow;
  if (typeof detector !== 'object' || detector.needsPool !== true || configs.length === 0) return [];
  const consequence = hasDefaultDetector
    ? 'a guess of 16 requests in flight on each is used instead; declare a concurrency-detector'
    : `${detector.type} needs it, and no request will be dispatched`;
  const none = `no server reports its load: ${consequence}`;
  if (scrape === undefined) return [none];
  const upstreams = new Upstreams();
  upstreams.apply(configs.filter(({ metrics }) => metrics !== 'none'));
  const { pool } = upstreams;
  const findings: string[] = [];
  const scraper = scraperOf(upstreams, scrape, () => {});
  const asked = new Set<EndpointView>(pool.endpoints);
  await new Promise<void>((resolve) => {
    const heard = (endpoint: EndpointView): void => {
      asked.delete(endpoint);
      if (asked.size === 0) resolve();
    };
    if (asked.size === 0) resolve();
    scraper.on('failed', ({ endpoint, error }) => {
      if (answersWithoutMetrics(error)) findings.push(`upstream ${endpoint.id} reports no load: ${error.message}`);
      heard(endpoint);
    });
    pool.on('reported', heard);
  });
  scraper.stop();
  const isNone = pool.endpoints.every(({ metrics }) => metrics === undefined);
  return isNone ? [...findings, none] : findings;
}
