/**
 * Rounds of bands by weight.
 *
 *     weights 20: 6, 10: 3, 0: 1      a round: 20 20 20 20 20 20 10 10 10 0
 *
 * Invariant: while some bands all keep requests waiting, each gets exactly its weight in every round that begins
 * meanwhile.
 */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import type { BandOrderPolicy } from './band-order-policy.js';

const type = 'weighted-band-selection-policy';

/** The most priorities that one round counts apart; more, which needs very many without a weight, end the round. */
const mostCounted = 1024;

export interface WeightedBandsOptions {
  /**
   * Dispatches in a round, by priority: integers from 1 up; priorities that are not named have 1. @default in
   * proportion to the priority: its distance from the lowest band that competes in the round, and 1
   */
  weights?: Readonly<Record<string, number>> | undefined;
}

const parameters = s.object({
  weights: s.optional(
    s.element<Readonly<Record<string, number>>>((given, report) => {
      const read = s.readBy(s.record(s.positiveInteger()), given, report);
      const wrong = Object.keys(read ?? {}).filter((name) => !Number.isSafeInteger(+name) || String(+name) !== name);
      for (const name of wrong) report('a priority, which is an integer', [name], JSON.stringify(name));
      return read;
    }),
  ),
});

/**
 * Bands take turns by weight, the highest first in a round: none starves; those without work forgo turns, and arrivals
 * that need not wait use them up. O(bands that compete). Source: llm-d-router #1995. @throws FlowConfigError
 */
export function weightedBands(options: WeightedBandsOptions = {}): BandOrderPolicy {
  const { weights } = s.parse(parameters, options, 'weightedBands');
  const given = weights && new Map(Object.entries(weights).map(([priority, weight]) => [Number(priority), weight]));
  /** Turns used in this round. */
  const used = new Map<number, number>();
  /** The lowest priority that competed in this round. */
  let lowest = Infinity;

  function weightOf(priority: number): number {
    return given === undefined ? Math.max(priority - lowest, 0) + 1 : (given.get(priority) ?? 1);
  }

  function hasTurns(priority: number): boolean {
    return (used.get(priority) ?? 0) < weightOf(priority);
  }

  function begin(priorities: readonly number[]): void {
    used.clear();
    lowest = priorities.at(-1) ?? Infinity;
  }

  return {
    type,
    rank(_saturation, priorities, _ceilings, order) {
      lowest = Math.min(lowest, priorities.at(-1) ?? lowest);
      if (!priorities.some(hasTurns)) begin(priorities);
      const isServed = priorities.map((priority) => Number(!hasTurns(priority)));
      order.sort((a, b) => (isServed[a] as number) - (isServed[b] as number));
    },
    recordDispatch(priority) {
      if (used.size >= mostCounted) used.clear();
      used.set(priority, (used.get(priority) ?? 0) + 1);
    },
  };
}

export const weightedBandsPlugin: Definition<BandOrderPolicy> = define(type, parameters, weightedBands);
