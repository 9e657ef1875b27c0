/** Requests go to the endpoints that a load balancer in front allows. */
import { withoutParameters } from '../../base/policy-definition.js';
import { object } from '../../base/schema/containers.js';
import { callable, optional } from '../../base/schema/element.js';
import { parse } from '../../base/schema/parse.js';
import { requestField } from '../request-field.js';
import type { EndpointFilter, EndpointFilterDefinition } from './endpoint-filter.js';
import { endpointsInSubset, subsetHintFromText } from './subset-hint.js';

/**
 * Addresses, as a list or as one text with commas. Undefined and null are no hint; no addresses at all allow nothing.
 */
export type SubsetHint = readonly string[] | string | null | undefined;

export interface SubsetHintOptions<R = unknown> {
  /** The hint of a request. @default its field `endpointSubset` */
  of?: ((request: R) => SubsetHint) | undefined;
}

function addressesOf(hint: unknown): readonly string[] | undefined {
  if (typeof hint === 'string') return subsetHintFromText(hint);
  return Array.isArray(hint) ? hint.filter((entry) => typeof entry === 'string') : undefined;
}

/**
 * Keeps the endpoints that the hint names by address, as `endpointsInSubset` does; a hint without addresses keeps none.
 * Hints that list the same in another order are one class. O(hint) for each request, O(endpoints + hint) for each hint
 * and change of the pool. Source: llm-d-router, subset hints of Envoy.
 * @throws FlowConfigError
 */
export function subsetHint<R = unknown>(options: SubsetHintOptions<R> = {}): EndpointFilter<R> {
  const hintOf = callable<(request: R) => unknown>('a function of the request');
  const schema = object({ of: optional(hintOf, (request) => requestField(request, 'endpointSubset')) });
  const { of } = parse(schema, options, 'subsetHint');
  return {
    type: 'subset-hint-filter',
    classOf({ request }) {
      const addresses = addressesOf(of(request));
      return addresses && [...addresses].sort().join(',');
    },
    keep: (endpoints, requestClass) => endpointsInSubset(endpoints, subsetHintFromText(requestClass)),
  };
}

export const subsetHintPlugin: EndpointFilterDefinition = withoutParameters(
  'endpointFilter',
  'subset-hint-filter',
  () => subsetHint(),
);
