/** What is said of `examples/portkey` by the pages that name it. What it does is shown by `npm run demo -- portkey`. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');

it('flow control comes into Portkey’s gateway by fifteen lines of code at most, as many as the pages say', () => {
  const lines = read('examples/portkey/flow-control.mjs')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('//'));
  const code = lines.filter((line) => !line.startsWith('import '));
  expect(code.length).toBeLessThanOrEqual(15);
  const words = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven'];
  expect(read('examples/portkey/README.md')).toContain(
    `${code.length} lines of code and ${words[lines.length - code.length]} imports`,
  );
  expect(read('docs/fetch.md')).toContain(`in ${code.length} lines of code`);
  // Nothing but this file comes before the gateway.
  expect(read('examples/portkey/demo.mjs')).toContain("['--import', './flow-control.mjs']");
});
