// Installs what the tests of pages and metrics need beyond npm: a browser, and a Prometheus server. Imported by other
// scripts; as a program it installs all of them.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { installDebian } from './install-debian.mjs';

/** Each: the packages it needs, and the variable that tells its tests where the program is. */
const browser = {
  name: 'the browser',
  packages: ['chromium', 'fonts-dejavu-core'],
  variable: 'HEADGATE_CHROMIUM',
  path: '/usr/bin/chromium',
};
const prometheus = {
  name: 'the Prometheus server',
  packages: ['prometheus'],
  variable: 'HEADGATE_PROMETHEUS',
  path: '/usr/bin/prometheus',
};

/** What tests of the site need. */
export const sitePrograms = [browser];
export const allPrograms = [browser, prometheus];

/** Installs those that are missing, and sets their variables. Returns why some are missing afterwards. */
export function installPrograms(programs) {
  const problems = [];
  for (const { name, packages, variable, path } of programs) {
    if (process.env[variable] !== undefined) continue;
    const problem = existsSync(path) ? undefined : installDebian(...packages);
    if (problem !== undefined) problems.push(`${name}: ${problem}`);
    if (existsSync(path)) process.env[variable] = path;
  }
  return problems;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = installPrograms(allPrograms);
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.exitCode = problems.length;
}
