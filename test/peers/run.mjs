// The tests of another library, run twice: as they are, and with headgate in its place. A test that ends otherwise has
// its reason in expected.json, or the command fails; `--write` puts the counts there.
//
//     npm run test:peers -- p-limit ../p-limit
//
// The folder is a checkout of the library, which stays as it is. Nothing of it is kept here.
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runProgram } from '../../scripts/run-program.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));
const limitMs = 300_000;

/** By library: the file that a shim replaces, which tests it has, and how its runner tells of them. */
const peers = {
  undici: {
    replaced: 'index.js',
    shim: 'undici.cjs',
    command: (folder) => nodeTest(['--expose-gc'], callers(join(folder, 'test/fetch'))),
    read: fromNodeTest,
  },
  'p-limit': {
    replaced: 'index.js',
    shim: 'p-limit.mjs',
    command: () => ['npx', 'ava', '--tap', 'test.js'],
    read: fromTap,
  },
  'async-sema': {
    replaced: 'src/index.ts',
    shim: 'async-sema.cjs',
    command: () => ['npx', 'jest', '--json', '--forceExit', '--testTimeout=5000'],
    read: fromJest,
    // Its compiler is older than the types that npm brings, and the shim has none.
    before: (folder) => {
      const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      manifest.jest = { ...manifest.jest, globals: { 'ts-jest': { diagnostics: false } } };
      writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    },
  },
  'p-queue': {
    replaced: 'source/index.ts',
    shim: 'p-queue.mjs',
    command: (folder) => nodeTest(['--import=tsx/esm', '--test-force-exit'], filesOf(join(folder, 'test'), '.ts')),
    read: fromNodeTest,
  },
  bottleneck: {
    replaced: 'lib/index.js',
    shim: 'bottleneck.cjs',
    command: () => ['npx', 'mocha', '--exit', '--reporter', 'json', 'test'],
    read: fromMocha,
    // It builds itself with a package that comes from a repository; its tests need their runner, and clients of Redis to load.
    before: (folder) => {
      const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      const { ioredis, mocha, redis } = manifest.devDependencies;
      writeFileSync(
        join(folder, 'package.json'),
        JSON.stringify({ ...manifest, devDependencies: { ioredis, mocha, redis } }),
      );
      rmSync(join(folder, 'package-lock.json'), { force: true });
    },
  },
  fastq: {
    replaced: 'queue.js',
    shim: 'fastq.cjs',
    command: () => ['sh', '-c', 'for file in test promise; do npx tape test/$file.js; done'],
    read: fromTape,
  },
};

function filesOf(folder, ending) {
  return readdirSync(folder)
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name))
    .sort();
}

/** Files whose tests call `fetch`. */
function callers(folder) {
  return filesOf(folder, '.js').filter((path) => /\bfetch\(/.test(readFileSync(path, 'utf8')));
}

function nodeTest(options, files) {
  const reporter = join(here, 'reporter.mjs');
  return [
    process.execPath,
    ...options,
    '--test',
    '--test-concurrency=1',
    '--test-timeout=120000',
    `--test-reporter=${reporter}`,
    ...files,
  ];
}

function fromNodeTest(text, folder) {
  const lines = text.split('\n').filter((line) => line.startsWith('{"name"'));
  const tests = lines.map((line) => JSON.parse(line)).filter(({ file, name }) => file !== undefined && name !== file);
  return tests.map(({ name, file, isPassed }) => [`${relative(folder, file)}: ${name}`, isPassed]);
}

function fromTap(text) {
  const lines = [...text.matchAll(/^(ok|not ok) \d+ - (.*?)(?: # (SKIP|TODO).*)?$/gm)];
  return lines.filter(([, , , isLeftOut]) => !isLeftOut).map(([, verdict, name]) => [name, verdict === 'ok']);
}

/** Assertions stand under the name of their test. */
function fromTape(text) {
  const tests = [];
  for (const line of text.split('\n')) {
    const [, name] = /^# (?!tests |pass |fail |ok$)(.+)$/.exec(line) ?? [];
    if (name !== undefined) tests.push([name, true]);
    else if (line.startsWith('not ok') && tests.length > 0) tests.at(-1)[1] = false;
  }
  // What ends before its last line was said to pass ends in the middle of a test.
  if (tests.length > 0 && !/^1\.\.\d+$/m.test(text)) tests.at(-1)[1] = false;
  return tests;
}

/** What tests write themselves stands before it. */
function fromMocha(text) {
  const { passes, failures } = JSON.parse(text.slice(text.indexOf('{\n  "stats"')));
  const named = (tests, isPassed) => tests.map(({ fullTitle }) => [fullTitle, isPassed]);
  return [...named(passes, true), ...named(failures, false)];
}

function fromJest(text) {
  const { testResults } = JSON.parse(text.slice(text.indexOf('{"num')));
  return testResults.flatMap(({ assertionResults }) =>
    assertionResults.map(({ fullName, status }) => [fullName, status === 'passed']),
  );
}

/** By name, numbered where several have one; true: it passed. */
async function play({ command, read }, folder) {
  const results = new Map();
  const [program, ...args] = command(folder);
  const { stdout } = await runProgram(program, args, { cwd: folder, timeout: limitMs });
  for (const [name, isPassed] of read(stdout, folder)) {
    let own = name;
    for (let again = 2; results.has(own); again++) own = `${name} (${again})`;
    results.set(own, isPassed);
  }
  return results;
}

const { positionals, values } = parseArgs({ allowPositionals: true, options: { write: { type: 'boolean' } } });
const [name, checkout] = positionals;
const peer = peers[name];
if (peer === undefined || checkout === undefined || !existsSync(join(checkout, 'package.json'))) {
  console.error(
    `expected one of ${Object.keys(peers).join(', ')}, and the folder of a checkout; got ${positionals.join(' ')}`,
  );
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'headgate-peer-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
cpSync(checkout, folder, {
  recursive: true,
  filter: (path) => !['.git', 'node_modules'].includes(basename(path)) || path === checkout,
});
const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
peer.before?.(folder);
const install = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps'];
await runProgram('npm', install, { cwd: folder, timeout: limitMs });
const byItself = await play(peer, folder);
if (byItself.size === 0) throw new Error(`no test of ${name} ran`);

const replaced = join(folder, peer.replaced);
const ending = /\.\w+$/.exec(peer.replaced)[0];
renameSync(replaced, replaced.replace(ending, `.peer${ending}`));
writeFileSync(replaced, readFileSync(join(here, 'shims', peer.shim)));
rmSync(join(folder, 'node_modules/headgate'), { recursive: true, force: true });
symlinkSync(root, join(folder, 'node_modules/headgate'));
const withHeadgate = await play(peer, folder);

const asked = [...byItself].flatMap(([test, isPassed]) => (isPassed ? [test] : []));
const otherwise = asked.filter((test) => withHeadgate.get(test) !== true);
const expectedPath = join(here, 'expected.json');
const expected = JSON.parse(readFileSync(expectedPath, 'utf8'));
const reasons = expected[name]?.otherwise ?? {};
console.log(`${name} ${version}: ${asked.length - otherwise.length} of ${asked.length} tests end the same`);
const faults = [];
/** A name, or the beginning of several with a `*` behind it. */
const isOf = (names, test) => (names.endsWith('*') ? test.startsWith(names.slice(0, -1)) : names === test);
for (const test of otherwise)
  if (!Object.keys(reasons).some((names) => isOf(names, test)))
    faults.push(`ends otherwise, and nothing says why: ${test}`);
for (const [names, reason] of Object.entries(reasons)) {
  const count = otherwise.filter((test) => isOf(names, test)).length;
  if (count === 0) faults.push(`ends the same now: ${names}`);
  else console.log(`  ${count} otherwise: ${names}: ${reason}`);
}
for (const fault of faults) console.error(fault);
if (values.write === true) {
  const day = new Date().toISOString().slice(0, 10);
  expected[name] = { version, day, same: asked.length - otherwise.length, of: asked.length, otherwise: reasons };
  writeFileSync(expectedPath, `${JSON.stringify(expected, undefined, 2)}\n`);
}
process.exitCode = faults.length === 0 ? 0 : 1;
