/** Tier 1, the contract of plugins: in which order are the bands tried that may dispatch now? */
import type { PluginShape } from '../../base/plugin-shape.js';

/**
 * Ranks the bands that have requests waiting and whose ceiling is open. The first of the order goes. One whose request
 * has nowhere to go is passed over as `holBlocking` says, and the others are ranked again.
 * Contract: `priorities` come highest first, with their `ceilings`; `order` has the same length and arrives as 0, 1, 2,
 * …, the places in `priorities`. `rank` reorders it in place, or leaves it alone, which is strict priority. An answer
 * that is no permutation, or an exception, is reported as a plugin error, and the highest band goes. `rank` is asked
 * only when two or more bands compete, and after the bands that are due by `minShare`. A call is no promise of a
 * dispatch, so `rank` must answer the same until `recordDispatch` is called. Cost: one call for each dispatch of a
 * waiting request. State: its own. One object serves one controller. Source: llm-d-router #2919, band selection policy.
 */
export interface BandOrderPolicy {
  readonly type: string;
  rank(saturation: number, priorities: readonly number[], ceilings: readonly number[], order: number[]): void;
  /** A request of this priority was dispatched, waited or not. Never told of requests passed over or dropped. */
  recordDispatch?(priority: number): void;
  /** True when the order is always that of the priorities: `rank` is then not called, and the policy costs nothing. */
  readonly strict?: true;
}

export const bandOrderPolicyShape: PluginShape<BandOrderPolicy> = {
  noun: 'a band selection policy',
  example: 'weightedBands()',
  required: ['rank'],
  optional: ['recordDispatch'],
};
