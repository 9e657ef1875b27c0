/** The walk: which band goes, and what keeps it. One cycle of the reference is one request let through. */
import { expect } from 'vitest';
import {
  type BandOrderPolicy,
  defaultRegistry,
  type FairnessPolicy,
  type UsageLimitPolicy,
  weightedBands,
} from '../../../src/index.js';
import type { JudgingDetector } from '../../support/constraints.js';
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
 * A policy that fails, or returns a flow in which nobody waits; undefined for a band without such. The other parts of
 * the reference that can fail, those that look a band or a queue up, have no counterpart: such a band is one like any
 * other.
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
        return {
          fairnessId: 'empty',
          priority: band.priority,
          weight: 1,
          waiting: 0,
          waitingBytes: 0,
          head: undefined,
        };
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

interface RankedBands {
  /** One request waits in each. */
  bands: readonly { readonly priority: number; readonly incoming: number }[];
  order: readonly number[];
  endpointLoadTokens: readonly number[];
  limitTokens: number;
  cycles: number;
}

/** The order that the vector gives, of those bands that compete. */
function givenOrder(bands: RankedBands['bands'], given: readonly number[]): BandOrderPolicy {
  return {
    type: 'given-order',
    rank(_saturation, priorities, _ceilings, order) {
      const rankOf = (place: number): number =>
        given.indexOf(bands.findIndex(({ priority }) => priority === priorities[place]));
      order.sort((a, b) => rankOf(a) - rankOf(b));
    },
  };
}

/** Room in tokens: each endpoint has a load of its own to begin with. */
function tokenRoom(loads: readonly number[], limit: number): JudgingDetector {
  return {
    type: 'token-room',
    saturation: () => 0,
    withRoomFor: (endpoints, { tokens }) =>
      endpoints.filter(({ inFlightTokens }, place) => (loads[place] ?? 0) + inFlightTokens + tokens <= limit),
    waitOf: () => ({ atMs: Number.POSITIVE_INFINITY, notBeforeMs: 0, missing: 'tokens' }),
  };
}

/** Dispatches from bands that all stay busy, in their order. */
function served(bandOrder: BandOrderPolicy, priorities: readonly number[], count: number): number[] {
  const rig = new Rig({ bandOrder });
  for (const priority of priorities) rig.enqueueMany(count, { priority });
  rig.gate.open(count);
  return rig.dispatched.map(({ lease }) => lease?.priority ?? Number.NaN);
}

interface Rounds {
  schedule: string;
  weights: Readonly<Record<string, number>>;
  cycles: number;
  allBusy: boolean;
}

export const dispatchRunners: Runners = {
  /** The bands are ranked by letting them go: one request waits in each, the lowest came first. */
  'bandSelection.rank': runner<Ranking, { order: readonly number[] }>(
    { input: ['type', 'saturation', 'priorities', 'ceilings', 'orderIn'], expect: ['order'] },
    (vector) => {
      const { type, saturation, priorities, ceilings, orderIn } = vector.input;
      if (type !== 'strict-band-selection-policy') throw unknownWord(vector, type);
      expect(orderIn).toEqual([...priorities.keys()]);
      const bandOrder = defaultRegistry().create(type) as BandOrderPolicy;
      const order = [...orderIn];
      bandOrder.rank(saturation, priorities, ceilings, order);
      expect(order).toEqual(vector.expect.order);
      const rig = new Rig({
        bandOrder,
        usageLimitPolicy: givenCeilings((priority) => ceilings[priorities.indexOf(priority)]),
      });
      for (const priority of [...priorities].reverse()) rig.enqueue({ priority });
      rig.gate.saturationWhenOpen = saturation;
      rig.gate.open(priorities.length);
      expect(rig.dispatched.map(({ lease }) => priorities.indexOf(lease?.priority ?? Number.NaN))).toEqual(
        vector.expect.order,
      );
    },
  ),

  /** A band whose request has no room is passed over, and the other bands go in their order. */
  'dispatch.rankedBands': runner<
    RankedBands,
    { dispatchedPriorities: readonly number[]; stillQueued: readonly number[] }
  >(
    {
      input: ['bands', 'order', 'endpointLoadTokens', 'limitTokens', 'cycles'],
      expect: ['dispatchedPriorities', 'stillQueued'],
    },
    (vector) => {
      const { bands, order, endpointLoadTokens, limitTokens, cycles } = vector.input;
      const charged: number[] = [];
      const bandOrder: BandOrderPolicy = {
        ...givenOrder(bands, order),
        recordDispatch: (priority) => void charged.push(priority),
      };
      const rig = new Rig({ bandOrder, holBlocking: 'flow' }, { endpoints: endpointLoadTokens.length });
      for (const { priority, incoming } of bands) rig.enqueue({ priority, tokens: incoming });
      rig.flow.reconfigure({ saturationDetector: tokenRoom(endpointLoadTokens, limitTokens) });
      const { dispatchedPriorities, stillQueued } = vector.expect;
      expect(dispatchedPriorities.length).toBeLessThanOrEqual(cycles);
      expect(rig.dispatched.map(({ lease }) => lease?.priority)).toEqual(dispatchedPriorities);
      expect(charged).toEqual(dispatchedPriorities);
      expect(
        bands.map(({ priority }) => priority).filter((priority) => !dispatchedPriorities.includes(priority)),
      ).toEqual(stillQueued);
      expect(rig.flow.stats().waiting).toBe(stillQueued.length);
    },
  ),

  'bandSelection.wfq': runner<Rounds, { dispatched: readonly number[] }>(
    { input: ['schedule', 'weights', 'cycles', 'allBusy'], expect: ['dispatched'] },
    (vector) => {
      const { schedule, weights, cycles, allBusy } = vector.input;
      if (schedule !== 'priority-first' || !allBusy) throw unknownWord(vector, schedule);
      expect(served(weightedBands({ weights }), Object.keys(weights).map(Number), cycles)).toEqual(
        vector.expect.dispatched,
      );
    },
  ),

  /** The weights are told by one round. */
  'bandSelection.wfqWeights': runner<
    { distribution: string; priorities: readonly number[] },
    { weights: Readonly<Record<string, number>>; roundSize: number }
  >({ input: ['distribution', 'priorities'], expect: ['weights', 'roundSize'] }, (vector) => {
    const { distribution, priorities } = vector.input;
    if (distribution !== 'proportional') throw unknownWord(vector, distribution);
    const { weights, roundSize } = vector.expect;
    const round = served(weightedBands(), priorities, roundSize);
    expect(
      Object.fromEntries(priorities.map((priority) => [priority, round.filter((each) => each === priority).length])),
    ).toEqual(weights);
    expect(round).toHaveLength(roundSize);
  }),

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
