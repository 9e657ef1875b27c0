/** The contract of every band selection policy. */
import type { BandOrderPolicy } from '../../index.js';
import { type ContractCase, contract, expectSame, expectThat } from './contract-case.js';
import { ofController } from './controller-fixture.js';
import { type Random, repeatedly } from './random.js';
import { randomPriorities } from './views.js';

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
        expectSame(
          [...order].sort((a, b) => a - b),
          [...ranking.priorities.keys()],
          'the members of the order',
        );
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
