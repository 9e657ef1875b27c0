// Installs what the tests of pages and metrics need beyond npm, then runs them; with `site` first, those of the site. Other arguments go
// to vitest.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installDebian } from './install-debian.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Each part: the packages it needs, and the variable that tells its tests where the program is. */
const parts = [
  { name: 'the browser', packages: ['chromium', 'fonts-dejavu-core'], variable: 'HEADGATE_CHROMIUM', program: '/usr/bin/chromium' },
  { name: 'the Prometheus server', packages: ['prometheus'], variable: 'HEADGATE_PROMETHEUS', program: '/usr/bin/prometheus' },
];

const isSite = process.argv[2] === 'site';
const config = isSite ? 'vitest.site.config.ts' : 'vitest.programs.config.ts';

const notRun = [];
for (const { name, packages, variable, program } of isSite ? parts.slice(0, 1) : parts) {
  if (process.env[variable] === undefined && !existsSync(program)) {
    const problem = installDebian(...packages);
    if (problem !== undefined) notRun.push(`${name}: ${problem}`);
  }
  if (process.env[variable] === undefined && existsSync(program)) process.env[variable] = program;
}

const vitest = join(root, 'node_modules/vitest/vitest.mjs');
const options = ['run', '--config', config, ...process.argv.slice(isSite ? 3 : 2)];
const { status } = spawnSync(process.execPath, [vitest, ...options], { cwd: root, stdio: 'inherit' });
for (const reason of notRun) process.stderr.write(`NOT RUN: the tests that need ${reason}\n`);
// On a build machine a test that did not run is a failure.
process.exitCode = notRun.length > 0 && process.env.CI ? 1 : (status ?? 1);
