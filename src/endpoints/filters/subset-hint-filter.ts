/** Requests go to the endpoints that a load balancer in front allows. */
import { requestField } from '../../base/request-field.js';
import * as s from '../../base/schema/schema.js';
import type { EndpointView } from '../endpoint.js';
import type { EndpointFilter } from './endpoint-filter.js';

/** Addresses, as a list or a text with commas. Undefined and null are no hint; an empty list allows nothing. */
export type SubsetHint = readonly string[] | string | null | undefined;

export interface SubsetHintOptions<R = unknown> {
  /** The hint of a request. @default its field `endpointSubset` */
  of?: ((request: R) => SubsetHint) | undefined;
  /** Whether an entry with a port means that port alone. @default false, as llm-d-router */
  heedsPorts?: boolean | undefined;
}

/**
 * Keeps the endpoints that the hint names by address; without addresses, none. Order makes no class. O(hint) per
 * request, O(endpoints + hint) per hint and pool. Source: llm-d-router, subset hints of Envoy. @throws FlowConfigError
 */
export function subsetHint<R = unknown>(options: SubsetHintOptions<R> = {}): EndpointFilter<R> {
  const hintOf = s.callable<(request: R) => unknown>('a function of the request');
  const schema = s.object({
    of: s.optional(hintOf, (request) => requestField(request, 'endpointSubset')),
    heedsPorts: s.optional(s.flag(), false),
  });
  const { of, heedsPorts } = s.parse(schema, options, 'subsetHint');
  return {
    type: 'subset-hint-filter',
    classOf({ request }) {
      const hint = of(request);
      const addresses: unknown = typeof hint === 'string' ? subsetHintFromText(hint) : hint;
      if (!Array.isArray(addresses)) return undefined;
      return addresses
        .filter((entry) => typeof entry === 'string')
        .sort()
        .join(',');
    },
    keep: (endpoints, requestClass) => endpointsInSubset(endpoints, subsetHintFromText(requestClass), heedsPorts),
  };
}

/**
 * The endpoints that a hint allows, in the order of `endpoints`: all without one (undefined or null), none for one
 * without addresses. Entries `ip:port` are compared by the IP, or with `heedsPorts` by the port too where they have
 * one; entries that are no text are ignored. An endpoint's address is its label `address`, else its `id`; scheme, port
 * and path may be there. O(endpoints + entries). Source: llm-d-router, the metadata `envoy.lb.subset_hint`, key
 * `x-gateway-destination-endpoint-subset`.
 */
export function endpointsInSubset<E extends Pick<EndpointView, 'id' | 'labels'>>(
  endpoints: readonly E[],
  hint: readonly unknown[] | undefined | null,
  heedsPorts = false,
): readonly E[] {
  if (hint === undefined || hint === null) return endpoints;
  const partOf = heedsPorts ? authorityOf : hostOf;
  const allowed = new Set(hint.filter((entry) => typeof entry === 'string').map(partOf));
  allowed.delete('');
  return endpoints.filter(
    ({ id, labels: { address = id } }) => allowed.has(hostOf(address)) || allowed.has(partOf(address)),
  );
}

/** Addresses of a text, `10.0.0.1:8000, 10.0.0.2:8000`. An empty text has none, and is a hint all the same. */
export function subsetHintFromText(text: string | undefined | null): readonly string[] | undefined {
  if (text === undefined || text === null) return undefined;
  const entries = text.split(',').map((entry) => entry.trim());
  return entries.filter((entry) => entry !== '');
}

/** `10.0.0.1` of `http://10.0.0.1:8000/v1`, `::1` of `[::1]:8000`. Colons without brackets: IPv6 without a port. */
function hostOf(address: string): string {
  const authority = authorityOf(address);
  const bracketed = /^\[([^\]]*)\]/.exec(authority)?.[1];
  if (bracketed !== undefined) return bracketed.toLowerCase();
  const colon = authority.indexOf(':');
  const hasPort = colon >= 0 && colon === authority.lastIndexOf(':');
  return (hasPort ? authority.slice(0, colon) : authority).toLowerCase();
}

/** `10.0.0.1:8000` of `http://10.0.0.1:8000/v1`. */
function authorityOf(address: string): string {
  const withoutScheme = address.trim().replace(/^[a-z][a-z\d+.-]*:\/\//i, '');
  return withoutScheme.replace(/\/.*$/, '').toLowerCase();
}
