// Installs what the tests of pages, metrics, the chart and proxies need beyond npm: a browser, a Prometheus server, helm,
// nginx and haproxy.
// Imported by other scripts; as a program it installs all of them.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installDebian, installGo } from './install-debian.mjs';

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

const helmVersion = 'v3.22.0';
/** Neither Debian nor npm has it: Go builds it, from its module. */
const helm = {
  name: 'helm',
  variable: 'HEADGATE_HELM',
  path: join(homedir(), '.cache/headgate', helmVersion, 'helm'),
  build: {
    args: ['install', `helm.sh/helm/v3/cmd/helm@${helmVersion}`],
    env: { GOBIN: join(homedir(), '.cache/headgate', helmVersion), GOFLAGS: '-mod=mod' },
  },
};

const nginx = { name: 'nginx', packages: ['nginx-light'], variable: 'HEADGATE_NGINX', path: '/usr/sbin/nginx' };
const haproxy = { name: 'haproxy', packages: ['haproxy'], variable: 'HEADGATE_HAPROXY', path: '/usr/sbin/haproxy' };

/** What tests of the site need. */
export const sitePrograms = [browser];
export const allPrograms = [browser, prometheus, helm, nginx, haproxy];

/** Why it could not be built; undefined when it could. */
function built({ args, env }) {
  const missing = installGo();
  if (missing !== undefined) return missing;
  const { status, stderr } = spawnSync('go', args, { env: { ...process.env, ...env }, encoding: 'utf8' });
  return status === 0 ? undefined : stderr;
}

/** Installs those that are missing, and sets their variables. Returns why some are missing afterwards. */
export function installPrograms(programs) {
  const problems = [];
  for (const { name, packages, variable, path, build } of programs) {
    if (process.env[variable] !== undefined) continue;
    const install = () => (build === undefined ? installDebian(...packages) : built(build));
    const problem = existsSync(path) ? undefined : install();
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
