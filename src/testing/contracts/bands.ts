/** The contracts of what ranks bands and limits them: band selection policies, and usage-limit policies. */
import type { BandOrderPolicy, UsageLimitPolicy } from '../../index.js';
import { type ContractCase, contract, expectSame, expectThat } from './contract-case.js';
import { ofController } from './controller-fixture.js';
import { type Random, randomPriorities, repeatedly } from './views.js';

interface Ranking {
  readonly saturation: number;
  readonly priorities: readonly number[];
  readonly ceilings: readonly number[];
}

function orderOf(policy: BandOrderPolicy, { saturation, priorities, ceilings }: Ranking): number[] {
  const order = [...priorities.keys()];
  policy.rank(saturation, priorities, ceilings, order);
  return order;
}

function randomRanking(random: Random): Ranking {
  const priorities = randomPriorities(random, 2);
  const ceilings = Object.freeze(priorities.map((_, rank) => 1 - rank * random.next() * 0.1));
  return { saturation: random.next() * 0.3, priorities, ceilings };
}

/** The contract of band selection policies, as cases for any test framework. */
export function bandOrderPolicyContract(make: () => BandOrderPolicy): ContractCase[] {
  return contract(make, {
    'leaves every band in the order once, and changes nothing else'(policy) {
      repeatedly(500, 1, (random) => {
        const ranking = randomRanking(random);
        const order = orderOf(policy, ranking);
        const members = [...order].sort((a, b) => a - b);
        expectSame(members, [...ranking.priorities.keys()], 'the members of the order');
        policy.recordDispatch?.(ranking.priorities[order[0] as number] as number);
      });
    },
    'ranks alike until a dispatch is recorded'(policy) {
      repeatedly(200, 2, (random) => {
        const ranking = randomRanking(random);
        const order = orderOf(policy, ranking);
        expectSame(orderOf(policy, ranking), order, 'the order of the second look');
        if (random.chance(0.7)) policy.recordDispatch?.(random.pick(ranking.priorities));
      });
    },
    'never leaves the order of priorities where it says strict'(policy) {
      if (policy.strict !== true) return;
      repeatedly(100, 3, (random) => {
        const ranking = randomRanking(random);
        const isInOrder = orderOf(policy, ranking).every((place, rank) => place === rank);
        expectThat(isInOrder, 'a strict policy that reorders bands is not asked to');
        policy.recordDispatch?.(random.pick(ranking.priorities));
      });
    },
    ...ofController(make, (each) => ({ bandOrder: each() }), {
      served: 'lets the requests of every band go in the end, and is never at fault',
      method: 'rank',
      lost: 'lets every request go in the end when its order is lost: a fault leaves the highest band first',
    }),
  });
}

function ceilingsOf(policy: UsageLimitPolicy, saturation: number, priorities: readonly number[]): number[] {
  const ceilings = priorities.map(() => 1);
  policy.computeLimits(saturation, priorities, ceilings);
  return ceilings;
}

/** The contract of usage-limit policies, as cases for any test framework. */
export function usageLimitPolicyContract(make: () => UsageLimitPolicy): ContractCase[] {
  return contract(make, {
    'sets a ceiling for every band, none rising as priority falls, and changes nothing else'(policy) {
      repeatedly(500, 1, (random, i) => {
        const priorities = randomPriorities(random, 1);
        const saturation = i === 0 ? Number.MAX_VALUE : random.next() * random.pick([0, 0.5, 1, 3]);
        const ceilings = ceilingsOf(policy, saturation, priorities);
        expectSame(ceilings.length, priorities.length, 'the number of ceilings');
        for (const [rank, ceiling] of ceilings.entries()) {
          const above = ceilings[rank - 1] ?? Infinity;
          expectThat(!Number.isNaN(ceiling) && ceiling <= above, `a ceiling of ${ceiling} below one of ${above}`);
        }
        if (random.chance(0.3)) policy.dispatched?.(random.pick(priorities));
      });
    },
    'leaves the highest band open on an idle pool, and the only one'() {
      repeatedly(100, 2, (random) => expectOpen(ceilingsOf(make(), 0, randomPriorities(random, 1))));
      expectOpen(ceilingsOf(make(), 0, [0]));
    },
    'is not moved by the saturation where it says constant'(policy) {
      if (policy.constant !== true) return;
      repeatedly(100, 3, (random) => {
        const priorities = randomPriorities(random, 1);
        const moved = ceilingsOf(policy, random.next() * 2, priorities);
        expectSame(moved, ceilingsOf(policy, 0, priorities), 'ceilings of a constant policy');
      });
    },
    ...ofController(make, (each) => ({ usageLimitPolicy: each() }), {
      served: 'lets the requests of every band go in the end, and is never at fault',
      method: 'computeLimits',
      lost: 'lets every request go in the end when its ceilings are lost: a fault leaves them at 1',
    }),
  });
}

function expectOpen([highest]: readonly number[]): void {
  expectThat((highest ?? 0) > 0, `the highest band has a ceiling of ${highest} on an idle pool`);
}
