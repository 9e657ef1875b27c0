// Two checks of what this repository installs. Every entry of every lock file has the hash of what it stands for, or a
// reason why not. And none of the dependencies that users get has a known vulnerability, as far as the registry
// answers.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Names without a hash, and why. They must be optional, and for another platform than the one that CI runs on. */
const withoutHash = [
  {
    names: /^@(?:biomejs\/cli|oxc-parser\/binding|rollup\/rollup)-[\w-]+$/,
    why: 'binaries of other platforms, which the mirror that wrote the lock file does not have; npm looks their hash up where one is installed',
  },
];

function run(program, ...args) {
  return spawnSync(program, args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 });
}

function isForCi({ os = ['linux'], cpu = ['x64'], libc = ['glibc'] }) {
  return os.includes('linux') && cpu.includes('x64') && libc.includes('glibc');
}

/** What is wrong with one entry; undefined for one that is right. */
function faultOf(path, entry) {
  if (path === '' || entry.link === true || entry.inBundle === true) return undefined;
  const name = entry.name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  if (entry.resolved !== undefined && !/^https:\/\/registry\.npmjs\.org\//.test(entry.resolved))
    return `comes from ${entry.resolved}`;
  if (entry.integrity !== undefined)
    return entry.integrity.startsWith('sha512-') ? undefined : `has the weak hash ${entry.integrity}`;
  if (!withoutHash.some(({ names }) => names.test(name))) return 'has no hash, and no reason why';
  if (entry.optional !== true) return 'has no hash, and is not optional';
  return isForCi(entry) ? 'has no hash, and CI would install it' : undefined;
}

let failed = 0;
const locks = run('git', 'ls-files', '--', '*package-lock.json').stdout.split('\n').filter(Boolean);
if (locks.length === 0) throw new Error('git knows no lock file');
for (const lock of locks) {
  const entries = Object.entries(JSON.parse(readFileSync(`${root}${lock}`, 'utf8')).packages);
  const faults = entries.flatMap(([path, entry]) => faultOf(path, entry)?.replace(/^/, `${lock}: ${path} `) ?? []);
  for (const fault of faults) console.error(fault);
  const bare = entries.filter(
    ([path, { link, integrity }]) => path !== '' && link !== true && integrity === undefined,
  ).length;
  console.log(`${lock}: ${entries.length - 1} entries, ${bare} without a hash, ${faults.length} faults`);
  failed += faults.length;
}
for (const { names, why } of withoutHash) console.log(`without a hash: ${names.source}: ${why}`);

const audit = run('npm', 'audit', '--omit=dev', '--json');
const { metadata, vulnerabilities = {}, message, error } = JSON.parse(audit.stdout || '{}');
if (metadata === undefined) {
  const why = message ?? error?.summary ?? audit.stderr.trim();
  console.warn(`\n!! The registry did not answer the audit, so nothing is known of vulnerabilities: ${why}\n`);
} else {
  for (const { name, severity, range } of Object.values(vulnerabilities))
    console.error(`${name} ${range}: ${severity} vulnerability`);
  console.log(
    `audit: ${metadata.dependencies.prod} dependencies, ${metadata.vulnerabilities.total} with known vulnerabilities`,
  );
  failed += metadata.vulnerabilities.total;
}
process.exitCode = failed === 0 ? 0 : 1;
