// Installs Debian packages that are missing. Imported by other scripts; as a program: node scripts/install-debian.mjs
// <package>…
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };

function isInstalled(name) {
  const { status, stdout } = spawnSync('dpkg', ['-s', name], { encoding: 'utf8' });
  return status === 0 && stdout.includes('install ok installed');
}

function apt(...options) {
  const { status, error, stderr } = spawnSync('apt-get', options, {
    env: environment,
    encoding: 'utf8',
    timeout: 600_000,
  });
  if (status === 0) return undefined;
  return `apt-get ${options.join(' ')}: ${error?.message ?? stderr.trim().split('\n').at(-1)}`;
}

/** Why a package is missing afterwards; undefined when all are there. */
export function installDebian(...names) {
  const missing = names.filter((name) => !isInstalled(name));
  if (missing.length === 0) return undefined;
  return apt('update') ?? withoutServices(() => apt('install', '-y', '--no-install-recommends', ...missing));
}

/** The same from one more list of sources, by the name of its suite. */
export function installDebianFrom(list, suite, ...names) {
  const source = ['-o', `Dir::Etc::sourcelist=${list}`];
  return (
    apt(...source, 'update') ??
    withoutServices(() => apt(...source, 'install', '-y', '--no-install-recommends', '-t', suite, ...names))
  );
}

/** Debian starts what it installs unless this program forbids it. */
function withoutServices(install) {
  const policy = '/usr/sbin/policy-rc.d';
  if (existsSync(policy) || process.getuid?.() !== 0) return install();
  writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    return install();
  } finally {
    rmSync(policy);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problem = installDebian(...process.argv.slice(2));
  if (problem !== undefined) {
    process.stderr.write(`${problem}\n`);
    process.exitCode = 1;
  }
}

/** Why Go is missing afterwards; undefined when it is there. */
export function installGo() {
  return spawnSync('go', ['version']).status === 0 ? undefined : installDebian('golang-go');
}
