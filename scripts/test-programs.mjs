// Installs what the tests of pages and metrics need beyond npm, then runs them; with `site` first, those of the site.
// Other arguments go to vitest.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { allPrograms, installPrograms, sitePrograms } from './install-programs.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const isSite = process.argv[2] === 'site';
const project = isSite ? 'site' : 'programs';

const notRun = installPrograms(isSite ? sitePrograms : allPrograms);
const vitest = join(root, 'node_modules/vitest/vitest.mjs');
const report = `--outputFile.json=test-results/${project}.json`;
const options = ['run', '--project', project, report, ...process.argv.slice(isSite ? 3 : 2)];
const { status } = spawnSync(process.execPath, [vitest, ...options], { cwd: root, stdio: 'inherit' });
for (const reason of notRun) process.stderr.write(`NOT RUN: the tests that need ${reason}\n`);
// On a build machine a test that did not run is a failure.
process.exitCode = notRun.length > 0 && process.env.CI ? 1 : (status ?? 1);
