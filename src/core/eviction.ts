/** The option `eviction` brings the code that evicts, so that bundles without it have none. See its options there. */
import * as s from '../base/schema/schema.js';
import type { EvictionFilter, EvictionOrdering } from '../eviction/eviction-policy.js';
import { priorityThenTime, sheddableOnly } from '../eviction/victims.js';
import { pluginOf } from '../plugins/kinds.js';
import { type EvictionParts, InFlightEviction } from './engine/in-flight-eviction.js';
import type { Eviction, ResolvedEviction } from './options.js';

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

/** The same with its code, which a controller without it has not in its bundle. */
export interface EvictionMaker extends Eviction {
  /** Evicts for the controller from now on. */
  begin(engine: EvictionParts, settings: ResolvedEviction): InFlightEviction;
}

const evictionOptions = /* @__PURE__ */ s.object({
  filter: s.optional(pluginOf('evictionFilter'), /* @__PURE__ */ sheddableOnly()),
  ordering: s.optional(pluginOf('evictionOrdering'), /* @__PURE__ */ priorityThenTime()),
  maxPerDecision: s.optional(s.positiveInteger(), 2),
  graceMs: s.optional(s.atLeastZero()),
  timeoutMs: s.optional(s.aboveZero(), 10_000),
  reserveMs: s.optional(s.atLeastZero(), 1000),
});

/** Running requests give up seats for waiting ones of higher priority: the option `eviction` of a controller. */
export function inFlightEviction(options: EvictionOptions = {}): Eviction {
  const maker: EvictionMaker = {
    type: 'in-flight-eviction',
    settings: s.parse(evictionOptions, options, 'inFlightEviction'),
    begin: (engine, resolved) => new InFlightEviction(engine, resolved),
  };
  return maker;
}
