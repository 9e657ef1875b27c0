/** The suites find what they are there to find: each gets plugins that break one promise. */
import { describe, expect, it } from 'vitest';
import {
  type BandOrderPolicy,
  type Constraint,
  edf,
  type FairnessPolicy,
  fcfs,
  labelFilter,
  leastLoaded,
  type OrderingPolicy,
  priorityThenTime,
  roundRobin,
  sheddableOnly,
  staticUsageLimit,
} from '../../src/index.js';
import {
  admissionPolicyContract,
  bandOrderPolicyContract,
  type ContractCase,
  ContractViolation,
  constraintContract,
  endpointFilterContract,
  endpointPickerContract,
  evictionFilterContract,
  evictionOrderingContract,
  fairnessPolicyContract,
  orderingPolicyContract,
  saturationDetectorContract,
  usageLimitPolicyContract,
} from '../../src/testing/index.js';

/** Names of the promises that are not kept, in order. */
async function broken(cases: readonly ContractCase[]): Promise<string[]> {
  const names: string[] = [];
  for (const { name, run } of cases) {
    try {
      await run();
    } catch (error) {
      expect(error).toBeInstanceOf(ContractViolation);
      names.push(name);
    }
  }
  return names;
}

const type = 'mine';
const alwaysOpen = () => 0.5;

describe('a contract suite', () => {
  it('passes what keeps every promise', async () => {
    expect(await broken(fairnessPolicyContract(() => roundRobin()))).toEqual([]);
    expect(await broken(orderingPolicyContract(() => edf()))).toEqual([]);
    expect(await broken(endpointPickerContract(() => leastLoaded()))).toEqual([]);
  });

  it('finds a constraint that judges requests badly: its order, its waits, its reservations, its sessions', async () => {
    const reserved = {
      group: 'g',
      unit: 'requests',
      limit: 1,
      perMs: 1,
      used: 0,
      resetsInMs: 0,
      waitMs: 0,
      restsForMs: 0,
      isLearnt: false,
    } as const;
    const counts = { unreported: 0, ignoredReports: 0, ignoredFigures: 0, refusals: 0 };
    const bad = (): Constraint => ({
      type,
      withRoomFor: (endpoints, { sequence }) => (sequence % 2 === 0 ? [] : [...endpoints].reverse()),
      waitOf: (_endpoints, _item, nowMs) => ({ atMs: nowMs, notBeforeMs: nowMs, missing: 'room' }),
      quotas: () => ({ quotas: [{ ...reserved, reserved: 1 }], ...counts }),
      sessions: () => ({ resident: 1, idle: 0, maxSessions: 1, waiting: 0, tokens: 0, expired: 0 }),
    });
    expect(await broken(constraintContract(bad))).toEqual([
      expect.stringContaining('has room for a request at endpoints that it was given'),
      expect.stringContaining('tells a request without room an instant that lies ahead'),
      expect.stringContaining('tells quotas in numbers'),
      expect.stringContaining('tells sessions in numbers'),
      expect.stringContaining('lets every request of a queue go in the end'),
    ]);
  });

  it('finds a plugin without a proper type', async () => {
    expect(await broken(orderingPolicyContract(() => ({ ...edf(), type: 'Not Mine' })))).toEqual(['has a type']);
  });

  const stubborn: FairnessPolicy = {
    type,
    createSelector: () => ({ pick: () => undefined }),
  };
  let turn = 0;
  const forgetful: FairnessPolicy = {
    type,
    createSelector: (band) => ({ pick: () => [...band.activeFlows()].at(turn++ % 2) ?? band.firstActive }),
  };

  it.each<readonly [what: string, cases: () => ContractCase[], promise: RegExp]>([
    [
      'a fairness policy that picks nothing',
      () => fairnessPolicyContract(() => stubborn),
      /picks nothing but active flows/,
    ],
    [
      'a fairness policy that decides by what is not the history',
      () => fairnessPolicyContract(() => forgetful),
      /decides alike/,
    ],
    [
      'a comparison that is always less',
      () => orderingPolicyContract(() => ({ type, compare: () => -1 })),
      /is an order/,
    ],
    [
      'a comparison by a field that may be missing',
      () => orderingPolicyContract(byMissingField),
      /always answers with a number/,
    ],
    [
      'an arrivalOrder that is none',
      () => orderingPolicyContract(() => ({ ...edf(), arrivalOrder: true })),
      /nothing but the order of arrival/,
    ],
    [
      'a reading that is no number',
      () => saturationDetectorContract(() => ({ type, saturation: () => Number.NaN })),
      /reads a finite number/,
    ],
    [
      'a detector that thinks an empty pool idle',
      () => saturationDetectorContract(() => ({ type, saturation: alwaysOpen })),
      /an empty pool as full/,
    ],
    [
      'a detector that is never open',
      () => saturationDetectorContract(() => ({ type, saturation: () => 2 })),
      /in the end, and is never at fault/,
    ],
    ['a ceiling that rises', () => usageLimitPolicyContract(rising), /none rising/],
    [
      'a band order that names a band twice',
      () => bandOrderPolicyContract(() => ({ type, rank: namesTwice })),
      /every band in the order once/,
    ],
    ['a band order that moves on at every look', () => bandOrderPolicyContract(restless), /ranks alike until/],
    [
      'a band order that is not as strict as it says',
      () => bandOrderPolicyContract(() => ({ type, strict: true, rank: lowestFirst })),
      /where it says strict/,
    ],
    [
      'a policy that is not as constant as it says',
      () => usageLimitPolicyContract(inconstant),
      /where it says constant/,
    ],
    [
      'a picker that makes endpoints up',
      () => endpointPickerContract(() => ({ type, pick: ([first]) => first && { ...first } })),
      /picks one of what it was given/,
    ],
    [
      'a filter that turns the order round',
      () => endpointFilterContract(() => ({ ...labelFilter({ label: 'model' }), keep: (all) => [...all].reverse() })),
      /in its order/,
    ],
    [
      'a filter that goes by load',
      () =>
        endpointFilterContract(() => ({
          ...labelFilter({ label: 'model' }),
          keep: (all) => all.filter(({ inFlightRequests }) => inFlightRequests < 4),
        })),
      /by name and labels/,
    ],
    [
      'an admission without an answer',
      () => admissionPolicyContract(() => ({ type, admit: () => undefined as never })),
      /admits, or rejects/,
    ],
    [
      'a filter of victims that answers no truth',
      () => evictionFilterContract(() => ({ ...sheddableOnly(), accepts: () => 1 as never })),
      /true or false/,
    ],
    [
      'an order of victims that is none',
      () => evictionOrderingContract(() => ({ ...priorityThenTime(), compare: () => 1 })),
      /is an order/,
    ],
  ])('finds %s', async (_, cases, promise) => {
    expect(await broken(cases())).toContainEqual(expect.stringMatching(promise));
  });

  it('has a case for every promise that an arrival order keeps as well', async () => {
    expect(await broken(orderingPolicyContract(() => fcfs()))).toEqual([]);
    expect(await broken(usageLimitPolicyContract(() => staticUsageLimit()))).toEqual([]);
  });
});

function namesTwice(
  _saturation: number,
  _priorities: readonly number[],
  _ceilings: readonly number[],
  order: number[],
): void {
  order[1] = 0;
}

function lowestFirst(
  _saturation: number,
  _priorities: readonly number[],
  _ceilings: readonly number[],
  order: number[],
): void {
  order.reverse();
}

function restless(): BandOrderPolicy {
  let looks = 0;
  return {
    type,
    rank(_saturation, _priorities, _ceilings, order) {
      looks++;
      if (looks % 2 === 0) order.reverse();
    },
  };
}

function byMissingField(): OrderingPolicy {
  const deadlineOf = (item: { request: unknown }): number => Number(Reflect.get(item.request as object, 'deadline'));
  return { type, compare: (a, b) => deadlineOf(a) - deadlineOf(b) };
}

function rising() {
  return {
    type,
    computeLimits(_: unknown, priorities: readonly number[], ceilings: number[]): void {
      for (const rank of priorities.keys()) ceilings[rank] = rank;
    },
  };
}

function inconstant() {
  return {
    type,
    constant: true as const,
    computeLimits: (saturation: number, _: unknown, ceilings: number[]) => void ceilings.fill(1 + saturation),
  };
}
