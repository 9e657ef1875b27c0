/** The contract of every usage-limit policy. */
import type { UsageLimitPolicy } from '../../index.js';
import { type ContractCase, contract, expectSame, expectThat } from './contract-case.js';
import { ofController } from './controller-fixture.js';
import { repeatedly } from './random.js';
import { randomPriorities } from './views.js';

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
