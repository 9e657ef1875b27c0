/**
 * Makes each session that a constraint tells apart a class of requests, so that its requests queue apart. Every
 * endpoint serves every session.
 */
import { memberOf } from '../base/faults/foreign-values.js';
import type { EndpointFilter } from '../endpoints/filters/endpoint-filter.js';
import type { Constraint } from '../gate/constraint.js';

/** One filter for each of `constraints` that tells sessions apart. */
export function sessionFilters(constraints: readonly Constraint[]): EndpointFilter[] {
  return constraints.filter(tellsSessions).map((constraint) => ({
    type: constraint.type,
    classOf: (item) => constraint.sessionOf?.(item),
    keep: (endpoints) => endpoints,
  }));
}

/** True when the constraint tells sessions apart. */
export function tellsSessions(constraint: Constraint): boolean {
  return memberOf(constraint, 'sessionOf') !== undefined;
}
