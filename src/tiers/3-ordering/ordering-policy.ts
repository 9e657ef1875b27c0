/** Tier 3, the contract: which request of a flow goes next. */

import type { PluginShape } from '../../base/plugin-shape.js';
import type { PolicyDefinition } from '../../base/policy-definition.js';
import type { ItemView } from '../views.js';

/**
 * Orders the requests of one flow (or of the whole band under `globalStrict()`).
 *
 * Contract: `compare` is negative when `a` goes first, positive when `b` does, 0 when arrival decides. It must be a consistent
 * order, and the order of two requests must not change while they wait. A NaN or an exception is reported as a plugin error and
 * read as 0.
 * Cost: called O(log requests) times for each request that waits; never for policies with `arrivalOrder`.
 * State: none; one policy object may serve many bands.
 */
export interface OrderingPolicy<R = unknown> {
  readonly type: string;
  compare(a: ItemView<R>, b: ItemView<R>): number;
  /** True when `compare` is nothing but arrival order: the controller then uses a FIFO instead of a heap. */
  readonly arrivalOrder?: true;
}

export const orderingPolicyShape: PluginShape<OrderingPolicy> = {
  noun: 'an ordering policy',
  example: 'fcfs()',
  required: ['compare'],
  optional: [],
};

/** How files get one. */
export type OrderingDefinition<P = object> = PolicyDefinition<'ordering', P, OrderingPolicy>;
