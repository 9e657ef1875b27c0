/** The contracts of eviction: which running requests may be evicted, and in which order. */
import type { PluginShape } from '../base/plugin-shape.js';
import type { EndpointView } from '../endpoints/endpoint.js';
import type { Usage } from '../tiers/views.js';

/** A dispatched request as eviction policies see it. */
export interface InFlightView {
  readonly fairnessId: string;
  readonly priority: number;
  readonly dispatchedAtMs: number;
  /** Tokens booked for it. */
  readonly tokens: number;
  /** Usage so far, as the host reported it. */
  readonly usage: Usage;
  /** Whether its answer has begun, as `lease.answered` and `lease.report` tell. */
  readonly hasAnswer: boolean;
  readonly endpoint: EndpointView | undefined;
}

/**
 * Says which dispatched requests may be evicted at all. Contract: `accepts` is called once for each request, at its
 * dispatch; `stillAccepts` for those that it accepted, when victims are chosen, until it says no, which is final. An
 * exception is reported as a plugin error and counts as no. Cost: on the request path, O(1). State: none.
 */
export interface EvictionFilter {
  readonly type: string;
  accepts(request: InFlightView): boolean;
  stillAccepts?(request: InFlightView): boolean;
}

/**
 * Orders victims: negative when `a` is to be evicted before `b`. Contract: called only when a decision is made, so the
 * order may follow what the requests have done since. NaN and exceptions are reported as plugin errors and read as 0;
 * ties fall to the newest. Cost: O(evictable) comparisons for each decision. State: none.
 */
export interface EvictionOrdering {
  readonly type: string;
  compare(a: InFlightView, b: InFlightView): number;
}

export const evictionFilterShape: PluginShape<EvictionFilter> = {
  noun: 'an eviction filter',
  example: 'sheddableOnly()',
  required: ['accepts'],
  optional: ['stillAccepts'],
};

export const evictionOrderingShape: PluginShape<EvictionOrdering> = {
  noun: 'an eviction ordering',
  example: 'priorityThenTime()',
  required: ['compare'],
  optional: [],
};
