// Installs what the tests of shared state need: redis-server and valkey-server, of which Debian 12 has Valkey among its
// backports only; openssl, for their certificates; and Go, with what test/redis/linearizability/checker is built from.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installDebian, installDebianFrom, installGo } from './install-debian.mjs';

/** The codename of this Debian, such as `bookworm`. */
function release() {
  return /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
}

function isThere(program) {
  return ['--version', 'version'].some((asked) => spawnSync(program, [asked]).status === 0);
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

/** Why the checker cannot be built; undefined when it can, and Go's cache is warm. */
function installChecker() {
  const problem = installGo();
  if (problem !== undefined) return problem;
  const cwd = fileURLToPath(new URL('../test/redis/linearizability/checker', import.meta.url));
  const { status, stderr } = spawnSync('go', ['build', '-buildvcs=false', '-o', '/dev/null', '.'], {
    cwd,
    encoding: 'utf8',
  });
  return status === 0 ? undefined : stderr;
}

const problems = [
  ['redis-server', install('redis-server')],
  ['valkey-server', install('valkey-server')],
  ['openssl', install('openssl')],
  ['go', installChecker()],
];
for (const [name, problem] of problems) {
  if (problem === undefined) continue;
  process.stderr.write(`${name}: ${problem}\n`);
  process.exitCode = 1;
}
