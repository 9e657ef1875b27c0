/** Where an endpoint shows its metrics. */
import type { EndpointView } from '../../index.js';
import { ScrapeError } from './scrape-error.js';

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
