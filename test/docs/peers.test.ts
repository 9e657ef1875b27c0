/** What the pages say of other libraries' own tests is what `npm run test:peers` found last. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import expected from '../peers/expected.json' with { type: 'json' };

const read = (page: string): string => readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');

it.each(['p-limit', 'p-queue', 'async-sema', 'fastq', 'bottleneck'] as const)(
  'the page says how many tests of %s end the same',
  (name) => {
    const { version, day, same, of } = expected[name];
    expect(read('migrate.md')).toContain(`${name} ${version} ${same} of ${of}`);
    expect(read('migrate.md')).toContain(day);
  },
);

it('the page says how many cluster tests of bottleneck have an answer, and each of them is a case', () => {
  const { version, same, of, otherwise } = expected['bottleneck-cluster'];
  expect(version).toBe(expected.bottleneck.version);
  expect(read('migrate.md')).toMatch(new RegExp(`of its cluster tests, [^;]*, ${same} of ${of}\\.`));
  const cases = readFileSync(new URL('../peers/bottleneck-cluster.test.ts', import.meta.url), 'utf8');
  // Tables of three connections and of two limits.
  expect([...cases.matchAll(/^ +it\(/gm)].length + 3 + 2).toBe(same);
  // A name with a `*` stands for two.
  const names = Object.keys(otherwise);
  expect(names.length + names.filter((name) => name.includes('*')).length).toBe(of - same);
});

it('the page says how many tests of undici end the same', () => {
  const { version, same, of } = expected.undici;
  expect(read('fetch.md')).toContain(`undici ${version}, ${same} of ${of} [end the same]`);
});

it('each test that ends otherwise has its reason', () => {
  for (const { same, of, otherwise } of Object.values(expected)) {
    // A name with a `*` stands for several.
    expect(Object.keys(otherwise).length).toBeLessThanOrEqual(of - same);
    for (const reason of Object.values(otherwise)) expect(reason).not.toBe('');
  }
});
