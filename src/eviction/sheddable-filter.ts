/** Only requests of negative priority may be evicted. */
import { withoutParameters } from '../base/policy-definition.js';
import type { EvictionFilter, EvictionFilterDefinition } from './eviction-policy.js';

/** Accepts priority < 0. Source: llm-d-router, sheddable-eviction-filter. */
export function sheddableOnly(): EvictionFilter {
  return { type: 'sheddable-eviction-filter', accepts: (request) => request.priority < 0 };
}

export const sheddableOnlyPlugin: EvictionFilterDefinition = withoutParameters(sheddableOnly);
