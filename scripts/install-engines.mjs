// Installs redis-server and valkey-server for the tests of shared state. Debian 12 has Valkey among its backports only.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installDebian, installDebianFrom } from './install-debian.mjs';

/** The codename of this Debian, such as `bookworm`. */
function release() {
  return /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
}

function isThere(program) {
  return spawnSync(program, ['--version']).status === 0;
}

/** Why the server is missing afterwards; undefined when it is there. */
function install(program) {
  if (isThere(program)) return undefined;
  const problem = installDebian(program);
  if (problem === undefined || isThere(program)) return undefined;
  const directory = mkdtempSync(join(tmpdir(), 'headgate-apt-'));
  const list = join(directory, 'backports.list');
  writeFileSync(list, `deb http://deb.debian.org/debian ${release()}-backports main\n`);
  try {
    return installDebianFrom(list, `${release()}-backports`, program) ?? (isThere(program) ? undefined : problem);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

for (const program of ['redis-server', 'valkey-server']) {
  const problem = install(program);
  if (problem === undefined) continue;
  process.stderr.write(`${program}: ${problem}\n`);
  process.exitCode = 1;
}
