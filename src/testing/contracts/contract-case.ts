/** The parts of a contract suite, and what its cases expect. No test framework: a case that fails throws. */
import type { EndpointView } from '../../index.js';

/** One promise of a contract. */
export interface ContractCase {
  /** A statement of behaviour. */
  readonly name: string;
  /** @throws ContractViolation when the plugin breaks the promise; whatever the plugin throws */
  run(): void | Promise<void>;
}

/** What is promised, by statements of behaviour; each promise is asked of a plugin of its own. */
export type Promises<P> = Readonly<Record<string, (plugin: P) => void | Promise<void>>>;

export function cases<P>(make: () => P, promises: Promises<P>): ContractCase[] {
  return Object.entries(promises).map(([name, check]) => ({ name, run: () => check(make()) }));
}

/** Every plugin has a type besides: small letters, digits and hyphens, as configuration files write it. */
export function contract<P extends { readonly type: string }>(make: () => P, promises: Promises<P>): ContractCase[] {
  return cases(make, {
    'has a type'({ type }) {
      const isRight = typeof type === 'string' && /^[a-z][a-z0-9-]*$/.test(type);
      expectThat(isRight, `expected a type such as "my-policy", got ${String(type)}`);
    },
    ...promises,
  });
}

/** A plugin broke its contract; the message says how. */
export class ContractViolation extends Error {
  override readonly name = 'ContractViolation';
}

export function expectThat(holds: boolean, violation: string): asserts holds {
  if (!holds) throw new ContractViolation(violation);
}

/** Compares numbers, texts, and lists of them. */
export function expectSame(got: unknown, expected: unknown, what: string): void {
  const [a, b] = [JSON.stringify(got), JSON.stringify(expected)];
  expectThat(a === b, `${what}: expected ${b}, got ${a}`);
}

export function ids(endpoints: readonly EndpointView[]): string[] {
  return endpoints.map(({ id }) => id);
}

/** What a filter answers is some of what it was given, in the same order. */
export function expectPart(kept: readonly EndpointView[], given: readonly EndpointView[]): void {
  const areGiven = kept.every((endpoint) => given.includes(endpoint));
  expectThat(areGiven, 'it answers an endpoint that it was not given');
  expectSame(ids(kept), ids(given.filter((endpoint) => kept.includes(endpoint))), 'what it keeps');
}

/** Of plugins that may announce changes. */
export const subscription: Promises<{ subscribe?(listener: () => void): () => void }> = {
  'takes back a subscription, once or twice, where it offers one'(plugin) {
    if (plugin.subscribe === undefined) return;
    const stop: unknown = plugin.subscribe(() => {});
    expectThat(typeof stop === 'function', 'subscribe answers no way to stop');
    (stop as () => void)();
    (stop as () => void)();
  },
};

/** The promises of every comparison; `says` names the first. Violations tell of requests by their place. */
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
