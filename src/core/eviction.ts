/** The option `eviction` brings the code that evicts, so that bundles without it have none. See its options there. */
import * as s from '../base/schema/schema.js';
import type { EvictionOptions } from '../eviction/eviction-policy.js';
import { priorityThenTime, sheddableOnly } from '../eviction/victims.js';
import { pluginOf } from '../plugins/kinds.js';
import { type EvictionParts, InFlightEviction } from './engine/in-flight-eviction.js';
import type { Eviction, ResolvedEviction } from './options.js';

/** The option with its code, which a controller without it has not in its bundle. */
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
