/** Tier 3, the contract: which request of a flow goes next. */
import type { PluginShape } from '../../base/plugin-shape.js';
import type { ItemView } from '../views.js';

/**
 * Orders the requests of one flow (or of the whole band under `globalStrict()`).
 * Contract: `compare` is negative when `a` goes first, positive when `b` does, 0 when arrival decides. It must be a
 * consistent order, and the order of two requests must not change while they wait. A NaN or an exception is reported as
 * a plugin error and read as 0. Cost: called O(log requests) times for each request that waits; never for policies with
 * `arrivalOrder`. State: of the policy's own; one policy object may serve many bands.
 */
export interface OrderingPolicy<R = unknown> {
  readonly type: string;
  compare(a: ItemView<R>, b: ItemView<R>): number;
  /** True when `compare` is nothing but arrival order: the controller then uses a FIFO instead of a heap. */
  readonly arrivalOrder?: true;
  /** Lets requests pass within arrival order, by what is known at the choice; `compare` is arrival order then. */
  readonly scores?: RequestScores<R>;
  /**
   * True for a request that cannot be served in time: when its turn comes it is dropped (`infeasible`). Never for one
   * that probably will; one that finds room at once is not asked about.
   */
  isInfeasible?(item: ItemView<R>, nowMs: number): boolean;
  /** The first token was reported, `afterMs` after dispatch; or a release without, neither aborted nor unsent. */
  firstToken?(item: ItemView<R>, afterMs: number): void;
}

export interface RequestScores<R = unknown> {
  /** How many requests are compared at each choice, those that came first; from 1 up. */
  readonly lookahead: number;
  /** How many may pass the one that came first; from 0 up. */
  readonly overtakings: number;
  /** The highest goes; ties by arrival. Asked anew for each choice; a NaN or an exception is reported, read as 0. */
  score(item: ItemView<R>): number;
  /** The request goes. */
  dispatched?(item: ItemView<R>): void;
}

export const orderingPolicyShape: PluginShape<OrderingPolicy> = {
  noun: 'an ordering policy',
  example: 'fcfs()',
  required: ['compare'],
  optional: ['isInfeasible', 'firstToken'],
};
