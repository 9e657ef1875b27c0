// Builds dist/; with `--if-stale` only when something it is made of is newer. Callers that start together wait for one
// build.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { writePage } from './build-inspector-page.mjs';
import { writeStoreScripts } from './build-store-scripts.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const lock = join(root, 'node_modules/.cache/headgate-build.lock');

/** What it is made of, beside the sources. */
const settings = [
  'tsup.config.ts',
  'scripts/build-for-require.mjs',
  'tsconfig.json',
  'tsconfig.declarations.json',
  'package.json',
];

const mtime = (path) => statSync(join(root, path), { throwIfNoEntry: false })?.mtimeMs;

/** Folders count too: a deleted or renamed file changes nothing but its folder. */
function newestInput() {
  const sources = readdirSync(join(root, 'src'), { recursive: true }).map((name) => join('src', name));
  return Math.max(...['src', ...sources, ...settings].map((path) => mtime(path) ?? 0));
}

/** `-Infinity` while an output is missing, which a failed build leaves behind: declarations are written last. */
function oldestOutput() {
  const { exports, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const outputs = JSON.stringify([exports, bin]).match(/dist\/[^"]+/g);
  return Math.min(...outputs.map((path) => mtime(path) ?? Number.NEGATIVE_INFINITY));
}

const isStale = () => newestInput() > oldestOutput();

function holderIsAlive() {
  try {
    const pid = Number(readFileSync(lock, 'utf8'));
    return pid === 0 || process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

async function takeLock() {
  mkdirSync(dirname(lock), { recursive: true });
  for (;;) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx' });
      return;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (holderIsAlive()) await delay(100);
    else rmSync(lock, { force: true });
  }
}

/** The compiler checks the types and declares each file; then tsup bundles the code and those declarations for `import`. */
const steps = [
  ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.declarations.json'],
  ['node_modules/tsup/dist/cli-default.js', '--silent'],
  ['scripts/build-for-require.mjs'],
  ['scripts/declare-for-require.mjs'],
];

/** Editors find them in `node_modules/headgate/dist/schemas`. */
function writeSchemas() {
  mkdirSync(join(root, 'dist/schemas'), { recursive: true });
  return ['gateway', 'endpoint-picker', 'scenario'].every((kind) => {
    const command = [join(root, 'dist/cli.js'), 'schema', kind];
    const { status, stdout, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8' });
    if (status === 0) writeFileSync(join(root, `dist/schemas/${kind}.json`), JSON.stringify(JSON.parse(stdout)));
    else process.stderr.write(`${stderr}no schema of ${kind}\n`);
    return status === 0;
  });
}

function runSteps() {
  return steps.every(([script, ...args]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, script), ...args], {
      cwd: root,
      encoding: 'utf8',
    });
    if (status !== 0) process.stderr.write(`${stdout}${stderr}build failed\n`);
    return status === 0;
  });
}

async function build({ onlyIfStale }) {
  if (onlyIfStale && !isStale()) return true;
  await takeLock();
  try {
    if (onlyIfStale && !isStale()) return true;
    // A source that was saved during the build may be missing from it: build again, but not for ever.
    for (let round = 0; round < 3; round += 1) {
      await writePage();
      await writeStoreScripts();
      const startedAtMs = Date.now();
      if (!runSteps() || !writeSchemas()) return false;
      for (const name of readdirSync(join(root, 'src/gateway/cli')).filter((each) => each.endsWith('.txt')))
        copyFileSync(join(root, 'src/gateway/cli', name), join(root, 'dist', name));
      if (newestInput() <= startedAtMs) break;
    }
    return true;
  } finally {
    rmSync(lock, { force: true });
  }
}

process.exitCode = (await build({ onlyIfStale: process.argv.includes('--if-stale') })) ? 0 : 1;
