/** A part of a pool: the endpoints that a detector can see, or that have room. */
import type { EndpointView, PoolView } from '../endpoints/endpoint.js';

/** True for an array that holds nothing but members of `whole`. O(whole) for one that keeps their order. */
export function isPartOf(part: unknown, whole: readonly EndpointView[]): part is readonly EndpointView[] {
  if (part === whole) return true;
  if (!Array.isArray(part)) return false;
  let next = 0;
  for (let i = 0; i < part.length; i++) {
    while (next < whole.length && whole[next] !== part[i]) next++;
    if (next++ < whole.length) continue;
    const members = new Set<unknown>(whole);
    return Array.from(part).every((each) => members.has(each));
  }
  return true;
}

/** Some endpoints of a pool, with their sums. */
export class VisiblePart implements PoolView {
  readonly endpoints: readonly EndpointView[];
  readonly version: number | undefined;

  constructor(endpoints: readonly EndpointView[], version: number | undefined) {
    this.endpoints = endpoints;
    this.version = version;
  }

  get inFlightRequests(): number {
    let sum = 0;
    for (const endpoint of this.endpoints) sum += endpoint.inFlightRequests;
    return sum;
  }

  get inFlightTokens(): number {
    let sum = 0;
    for (const endpoint of this.endpoints) sum += endpoint.inFlightTokens;
    return sum;
  }
}

export function hasSameMembers(a: readonly EndpointView[], b: readonly EndpointView[]): boolean {
  return a.length === b.length && a.every((endpoint, index) => endpoint === b[index]);
}
