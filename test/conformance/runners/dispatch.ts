/** The walk: which band goes, and what keeps it. One cycle of the reference is one request let through. */
import { expect } from 'vitest';
import type { FairnessPolicy, UsageLimitPolicy } from '../../../src/index.js';
import { Rig } from '../support/rig.js';
import { type Runners, runner, unknownWord } from '../support/runner.js';

interface VectorBand {
  readonly priority: number;
  readonly queued: number;
  readonly ceiling?: number;
  readonly fault?: string;
  readonly fairnessReturns?: string | null;
}

interface Cycle {
  bands: readonly VectorBand[];
  saturation?: number;
  /** By band, in their order. */
  ceilings?: readonly number[];
  cycles?: number;
  poolEmpty?: boolean;
}

interface CycleResult {
  dispatched?: boolean;
  fromPriority?: number;
  dispatchedPriorities?: readonly number[];
}

/**
 * A policy that fails, or returns a flow in which nobody waits; undefined for a band without such. The other parts of the reference that
 * can fail, those that look a band or a queue up, have no counterpart: such a band is one like any other.
 */
function faultyPolicy({ fault, fairnessReturns }: VectorBand): FairnessPolicy | undefined {
  const fails = fault?.startsWith('fairness') === true;
  if (!fails && fairnessReturns === undefined) return undefined;
  return {
    type: 'faulty-fairness-policy',
    createSelector: (band) => ({
      pick() {
        if (fails) throw new Error('this policy fails');
        if (fairnessReturns === null || fairnessReturns === 'nothing') return undefined;
        return { fairnessId: 'empty', priority: band.priority, weight: 1, waiting: 0, waitingBytes: 0, head: undefined };
      },
    }),
  };
}

/** 1 where no ceiling is given. */
function givenCeilings(ceilingOf: (priority: number) => number | undefined): UsageLimitPolicy {
  return {
    type: 'given-ceilings',
    computeLimits(_saturation, ranked, limits) {
      for (const [rank, priority] of ranked.entries()) limits[rank] = ceilingOf(priority) ?? 1;
    },
  };
}

interface Ranking {
  type: string;
  saturation: number;
  priorities: readonly number[];
  ceilings: readonly number[];
  orderIn: readonly number[];
}

export const dispatchRunners: Runners = {
  /** The bands are ranked by letting them go: one request waits in each, the lowest came first. */
  'bandSelection.rank': runner<Ranking, { order: readonly number[] }>(
    { input: ['type', 'saturation', 'priorities', 'ceilings', 'orderIn'], expect: ['order'] },
    (vector) => {
      const { type, saturation, priorities, ceilings, orderIn } = vector.input;
      if (type !== 'strict-band-selection-policy') throw unknownWord(vector, type);
      expect(orderIn).toEqual([...priorities.keys()]);
      const rig = new Rig({ bandOrder: 'strict', usageLimitPolicy: givenCeilings((priority) => ceilings[priorities.indexOf(priority)]) });
      for (const priority of [...priorities].reverse()) rig.enqueue({ priority });
      rig.gate.saturationWhenOpen = saturation;
      rig.gate.open(priorities.length);
      expect(rig.dispatched.map(({ lease }) => priorities.indexOf(lease?.priority ?? Number.NaN))).toEqual(vector.expect.order);
    },
  ),

  'dispatch.cycle': runner<Cycle, CycleResult>(
    {
      input: ['bands', 'saturation', 'ceilings', 'cycles', 'poolEmpty'],
      expect: ['dispatched', 'fromPriority', 'dispatchedPriorities'],
    },
    (vector) => {
      const { bands, saturation = 0, ceilings = [], cycles = 1, poolEmpty = false } = vector.input;
      const { dispatched, fromPriority, dispatchedPriorities } = vector.expect;
      const ceilingOf = new Map(bands.map(({ priority, ceiling }, rank) => [priority, ceiling ?? ceilings[rank] ?? 1]));
      const options = {
        usageLimitPolicy: givenCeilings((priority) => ceilingOf.get(priority)),
        bands: bands.map((band) => ({ priority: band.priority, fairness: faultyPolicy(band) })),
      };
      const rig = new Rig(options, { endpoints: poolEmpty ? 0 : 1 });
      for (const { priority, queued } of bands) rig.enqueueMany(queued, { priority });
      rig.gate.saturationWhenOpen = saturation;
      for (let cycle = 0; cycle < cycles; cycle++) rig.gate.open(1);
      const priorities = rig.dispatched.map(({ lease }) => lease?.priority);
      if (dispatched !== undefined) expect(priorities.length > 0).toBe(dispatched);
      if (fromPriority !== undefined) expect(priorities[0]).toBe(fromPriority);
      if (dispatchedPriorities !== undefined) expect(priorities).toEqual(dispatchedPriorities);
    },
  ),
};
