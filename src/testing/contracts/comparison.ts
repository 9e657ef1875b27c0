/** The promises of every comparison. */
import { expectThat, type Promises } from './contract-case.js';

/** `answers` names the first case. Violations tell of requests by their place in `requests`. */
export function comparison<R>(says: string, compare: (a: R, b: R) => number, items: readonly R[]): Promises<unknown> {
  const sign = (a: R, b: R): number => Math.sign(compare(a, b));
  return {
    [says]() {
      for (const a of items) {
        for (const b of items) {
          const answer: unknown = compare(a, b);
          expectThat(typeof answer === 'number' && !Number.isNaN(answer), `compare says ${String(answer)}`);
        }
      }
    },
    'is an order: equal to itself, opposite when turned round, and transitive'() {
      for (const [i, a] of items.entries()) {
        expectThat(compare(a, a) === 0, `request ${i} is not equal to itself`);
        for (const [j, b] of items.entries()) {
          const isOpposite = sign(a, b) + sign(b, a) === 0;
          expectThat(isOpposite, `requests ${i} and ${j} are not opposite when turned round`);
          for (const [k, c] of items.entries()) {
            const isTransitive = sign(a, b) > 0 || sign(b, c) > 0 || sign(a, c) <= 0;
            expectThat(isTransitive, `requests ${i}, ${j}, ${k}: not transitive`);
          }
        }
      }
    },
  };
}
