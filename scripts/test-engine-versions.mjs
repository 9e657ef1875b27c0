// Runs the tests of shared state against servers of other Debian releases, older and newer than those of this machine:
//   npm run check -- engine-versions [bullseye trixie sid]
// The packages go into a temporary folder, each with the libraries that it was built with; nothing is installed. It is
// no part of CI, because archives drop old releases. What could not be had is said, and is a failure.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';

const base = ['libjemalloc2', 'libatomic1', 'liblzf1'];
const newer = [...base, 'libc6', 'libssl3t64', 'libstdc++6', 'libgcc-s1', 'libsystemd0', 'libcap2', 'libzstd1'];
const calls = ['clients', 'problems', 'lost-host'].map((name) => `test/redis/store/${name}.test.ts`);
const parts = ['marks', 'buckets', 'budgets', 'fairness'].map((part) => `test/redis/${part}`);
const everything = ['test/redis/store', ...parts, 'test/redis/topologies'];

/** By suite: servers, the packages that they need, and the tests that they can run. */
const releases = {
  // Redis 6.0, older than what is promised. It has neither `COMMAND DOCS` nor a choice of the cluster's port.
  bullseye: {
    servers: ['redis'],
    libraries: [...base, 'libssl1.1', 'liblua5.1-0', 'lua-bitop', 'lua-cjson'],
    tests: [...calls, ...parts],
  },
  trixie: { servers: ['redis', 'valkey'], libraries: newer, tests: everything },
  sid: { servers: ['redis', 'valkey'], libraries: newer, tests: everything },
};

const folder = mkdtempSync(join(tmpdir(), 'headgate-versions-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

function run(program, args, options = {}) {
  const { status, error, stderr } = spawnSync(program, args, { encoding: 'utf8', ...options });
  if (status !== 0)
    throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? stderr?.trim().split('\n').at(-1) ?? status}`);
}

/** Programs `redis-server` and `valkey-server` of a release. Returns the folder to put before the path. */
function unpack(suite, { servers, libraries }) {
  const place = (name) => join(folder, suite, name);
  for (const name of ['lists/partial', 'cache/archives/partial', 'packages', 'root', 'bin'])
    mkdirSync(place(name), { recursive: true });
  writeFileSync(place('sources.list'), `deb [signed-by=${keyring}] http://deb.debian.org/debian ${suite} main\n`);
  const settings = {
    'Dir::Etc::sourcelist': place('sources.list'),
    'Dir::Etc::sourceparts': '-',
    'Dir::State::lists': place('lists'),
    'Dir::Cache': place('cache'),
    'APT::Sandbox::User': 'root',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  run('apt-get', [...options, 'update']);
  const packages = [...servers.flatMap((name) => [`${name}-server`, `${name}-tools`]), ...libraries];
  run('apt-get', [...options, 'download', ...packages.map((name) => `${name}/${suite}`)], { cwd: place('packages') });
  for (const file of readdirSync(place('packages')))
    run('dpkg-deb', ['-x', join(place('packages'), file), place('root')]);
  const shared = join(place('root'), 'usr/lib/x86_64-linux-gnu');
  const loader = join(shared, 'ld-linux-x86-64.so.2');
  const path = [shared, join(shared, 'systemd'), join(place('root'), 'lib/x86_64-linux-gnu')].join(delimiter);
  for (const name of servers) {
    const program = join(place('root'), `usr/bin/${name}-server`);
    const start = existsSync(loader)
      ? `exec ${loader} --argv0 ${name}-server --library-path ${path} ${program}`
      : `exec env LD_LIBRARY_PATH=${path} ${program}`;
    const script = join(place('bin'), `${name}-server`);
    writeFileSync(script, `#!/bin/sh\n${start} "$@"\n`);
    chmodSync(script, 0o755);
    run(script, ['--version'], { stdio: 'inherit' });
  }
  return place('bin');
}

const chosen = process.argv.slice(2);
const vitest = join(root, 'node_modules/vitest/vitest.mjs');
for (const suite of chosen.length > 0 ? chosen : Object.keys(releases)) {
  const release = releases[suite];
  if (release === undefined) throw new Error(`${suite}: expected one of ${Object.keys(releases).join(', ')}`);
  console.log(`\n== servers of ${suite}`);
  try {
    const bin = unpack(suite, release);
    const options = ['run', ...release.tests, '--typecheck.enabled=false', '--reporter=default'];
    const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
    run(process.execPath, [vitest, ...options], { cwd: root, stdio: 'inherit', env });
  } catch (error) {
    process.exitCode = 1;
    console.error(`FAILED: servers of ${suite}: ${error.message}`);
  }
}
