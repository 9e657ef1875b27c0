/** The URL of a call at an endpoint of the pool. */
import type { EndpointView } from '../index.js';

/**
 * The call's path and query at the endpoint's `url` label, else at its `address` label, else at its id, each with or
 * without scheme and path of its own. A path of its own stands before the call's, unless the call's begins with it:
 * `https://host/v1` takes `/v1/models` once.
 * @throws TypeError when that makes no URL
 */
export function endpointUrl({ id, labels }: EndpointView, url: string): URL {
  const text = labels.url ?? labels.address ?? id;
  const base = new URL(/^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  const target = new URL(url, base);
  const prefix = base.pathname.replace(/\/+$/, '');
  const path = prefix === '' || target.pathname === prefix || target.pathname.startsWith(`${prefix}/`) ? '' : prefix;
  return new URL(`${base.origin}${path}${target.pathname}${target.search}`);
}
