/** The contracts of eviction: which running requests may be evicted, and in which order; and its options. */
import type { PluginShape } from '../base/plugin-shape.js';
import type { Filled } from '../base/schema/element.js';
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

/** Who may be evicted, in which order, how many at a time, and how long it may take. */
export interface EvictionOptions {
  /** Which requests may be evicted at all. @default sheddableOnly() */
  filter?: EvictionFilter | undefined;
  /** Which of them is evicted first. @default priorityThenTime() */
  ordering?: EvictionOrdering | undefined;
  /** Requests evicted by one decision, at most. @default 2 */
  maxPerDecision?: number | undefined;
  /** How long a freed seat needs to show in the saturation, ms. @default 0, or 500 for a detector that reads reports */
  graceMs?: number | undefined;
  /** A victim that has not given up its seat after this time no longer counts as leaving, ms. @default 10,000 */
  timeoutMs?: number | undefined;
  /**
   * How long lower bands must leave the room free that was evicted for a higher one, ms. Otherwise dispensable work
   * would take the seat again as soon as the important request ends, and would be evicted again. 0 keeps nothing free.
   * @default 1000
   */
  reserveMs?: number | undefined;
}

/** Options of the evictor, with their defaults. */
export type EvictorSettings = Filled<Omit<EvictionOptions, 'reserveMs'>>;

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
