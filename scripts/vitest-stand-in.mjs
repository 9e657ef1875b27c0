// What the tests of the layers use of Vitest, for a process that runs them many times over: `it` and `describe`
// collect, the rest is Vitest's. Anything else is missing on purpose: a test file that needs it cannot be loaded, and
// says so.
export { expect, vi } from 'vitest';

/** The tests that were collected, in order, with the names of their groups. */
export const collected = [];
const groups = [];

export function it(name, run) {
  collected.push({ name: [...groups, name].join(' > '), run });
}
it.each = (rows) => (name, run) => {
  for (const [index, row] of rows.entries()) it(`${name} #${index}`, () => run(...[row].flat(1)));
};

export function describe(name, make) {
  groups.push(name);
  make();
  groups.pop();
}
describe.each = (rows) => (name, make) => {
  for (const [index, row] of rows.entries()) describe(`${name} #${index}`, () => make(...[row].flat(1)));
};
