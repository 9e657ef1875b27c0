/** The contract of every band selection policy. */
import type { BandOrderPolicy } from '../../index.js';
import { type ContractCase, expectSame, expectThat, promises, typeCase } from './contract-case.js';
import { controllerCases } from './controller-fixture.js';
import { Random } from './random.js';

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
  const all = new Set(Array.from({ length: 2 + random.int(6) }, () => random.int(2000) - 1000));
  const priorities = Object.freeze([...all].sort((a, b) => b - a));
  const ceilings = Object.freeze(priorities.map((_, rank) => 1 - rank * random.next() * 0.1));
  return { saturation: random.next() * 0.3, priorities, ceilings };
}

/** The contract of band selection policies, as cases for any test framework. */
export function bandOrderPolicyContract(make: () => BandOrderPolicy): ContractCase[] {
  return [
    typeCase(make),
    promises('leaves every band in the order once, and changes nothing else', () => {
      const random = new Random(1);
      const policy = make();
      for (let i = 0; i < 500; i++) {
        const ranking = randomRanking(random);
        const order = orderOf(policy, ranking);
        expectSame([...order].sort(byNumber), [...ranking.priorities.keys()], 'the members of the order');
        policy.recordDispatch?.(ranking.priorities[order[0] as number] as number);
      }
    }),
    promises('ranks alike until a dispatch is recorded', () => {
      const random = new Random(2);
      const policy = make();
      for (let i = 0; i < 200; i++) {
        const ranking = randomRanking(random);
        const order = orderOf(policy, ranking);
        expectSame(orderOf(policy, ranking), order, 'the order of the second look');
        if (random.chance(0.7)) policy.recordDispatch?.(random.pick(ranking.priorities));
      }
    }),
    promises('never leaves the order of priorities where it says strict', () => {
      const random = new Random(3);
      const policy = make();
      if (policy.strict !== true) return;
      for (let i = 0; i < 100; i++) {
        const ranking = randomRanking(random);
        expectThat(
          orderOf(policy, ranking).every((place, rank) => place === rank),
          'a strict policy that reorders bands is not asked to',
        );
        policy.recordDispatch?.(random.pick(ranking.priorities));
      }
    }),
    ...controllerCases(make, (each) => ({ bandOrder: each() }), {
      served: 'lets the requests of every band go in the end, and is never at fault',
      method: 'rank',
      lost: 'lets every request go in the end when its order is lost: a fault leaves the highest band first',
    }),
  ];
}

function byNumber(a: number, b: number): number {
  return a - b;
}
