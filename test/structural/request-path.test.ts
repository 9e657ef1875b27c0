/** How long the way of one request is, in files to open and calls to follow. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from 'vitest';

const script = fileURLToPath(new URL('../../scripts/request-path.mjs', import.meta.url));

interface Path {
  files: number;
  functions: number;
  calls: number;
}
let paths: Record<string, Path>;

beforeAll(() => {
  paths = JSON.parse(execFileSync(process.execPath, [script, '--json'], { encoding: 'utf8' }));
});

it.each([
  ['passes through', { files: 12, functions: 31, calls: 33 }],
  ['waits once', { files: 17, functions: 74, calls: 98 }],
  ['passes through, with roundRobin()', { files: 13, functions: 36, calls: 40 }],
  ['waits once, with roundRobin()', { files: 18, functions: 78, calls: 104 }],
])('a request that %s takes a way that a reader can follow', (name, most) => {
  const path = paths[name] as Path;
  // A request that runs through nothing was not measured.
  expect(path.calls).toBeGreaterThan(10);
  expect(path.files).toBeLessThanOrEqual(most.files);
  expect(path.functions).toBeLessThanOrEqual(most.functions);
  expect(path.calls).toBeLessThanOrEqual(most.calls);
});
