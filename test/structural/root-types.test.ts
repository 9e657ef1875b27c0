/**
 * The root entry may gain a policy, but no type unseen. The report in `etc/` says what it exports, and
 * `npm run check -- api` compares the report with the build.
 */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const report = readFileSync(new URL('../../etc/headgate.api.md', import.meta.url), 'utf8');
/** Lower it when types leave the root. A type that only users of one subpath name belongs to that subpath. */
const mostTypes = 38;

const typesOf = (text: string): readonly string[] =>
  [...text.matchAll(/^export (?:type|interface) (\w+)/gm)].map(([, name = '']) => name);

it('exports as many types from the root as the limit says, and the limit is no higher than it must be', () => {
  expect(new Set(typesOf(report)).size).toBe(mostTypes);
});

it('counts one type more when the report has one more', () => {
  const grown = `${report}\nexport interface OneMore {\n}\n`;
  expect(typesOf(grown)).toHaveLength(typesOf(report).length + 1);
});
