// Runs the tests of the adapters under the supported lines of Node beside this one, under which `npm test` runs them:
// what a client's leaving looks like differs between them. Then it runs scenarios of the simulator under each, this one
// included, and compares what they write: same seed, same bytes, the page of charts included. Where Node can load
// undici 8 (from 22.19 on), what goes out through undici is tested with that, too. The binaries come from the npm
// package `node`, into a temporary folder.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const lines = ['20', '22', '24'].filter((line) => !process.version.startsWith(`v${line}.`));
const adapters = ['node', 'express', 'koa', 'fastify', 'hono', 'web', 'undici', 'ws'];
const suites = ['test/integration/', 'test/fetch/', ...adapters.map((name) => `test/adapters/${name}/`)];
/** What goes out through undici: the adapter, and the gateway. */
const undiciSuites = [
  'test/adapters/undici/',
  'test/gateway/proxy.test.ts',
  'test/gateway/forwarding/first-token.test.ts',
];
const scenarios = ['two-classes', 'vtc-weighted', 'batch-beside-chat'];
/** `--only bytes` leaves the tests out, which take minutes. */
const isBytesOnly = process.argv.includes('--only') && process.argv.at(-1) === 'bytes';
/** For one program, so that none hangs for ever; a loaded machine takes minutes for the tests. */
const limitMs = 900_000;

const folder = mkdtempSync(join(tmpdir(), 'headgate-nodes-'));
/** Each program leads its own process group, so that whatever it started goes with it. */
const groups = new Set();

process.on('exit', () => {
  for (const group of groups) killGroup(group);
  rmSync(folder, { recursive: true, force: true });
});
process.on('SIGINT', () => process.exit(130));
process.on('SIGTERM', () => process.exit(143));

function killGroup(group) {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // The group has ended already.
  }
}

/** Resolves to what it printed; rejects with that when it fails or takes too long. */
function run(program, args, env = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1', ...env },
    });
    groups.add(child.pid);
    const output = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    const timer = setTimeout(() => killGroup(child.pid), limitMs);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      groups.delete(child.pid);
      const text = Buffer.concat(output).toString();
      if (code === 0) resolve(text);
      else reject(new Error(`${program} ended with ${signal ?? `exit code ${code}`}\n${text}`));
    });
  });
}

async function install(line) {
  const prefix = join(folder, line);
  await run('npm', ['install', '--prefix', prefix, '--no-audit', '--no-fund', '--no-save', `node@${line}`]);
  return join(prefix, 'node_modules/node/bin/node');
}

/** Resolves to the entry of undici 8. */
async function installUndici() {
  const prefix = join(folder, 'undici');
  await run('npm', ['install', '--prefix', prefix, '--no-audit', '--no-fund', '--no-save', 'undici@8']);
  return join(prefix, 'node_modules/undici/index.js');
}

/** Resolves to how many tests passed. */
async function test(binary, suites, env) {
  const report = join(folder, 'report.json');
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const options = ['--typecheck.enabled=false', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  await run(binary, [vitest, 'run', ...suites, ...options], env);
  const { numPassedTests } = JSON.parse(readFileSync(report, 'utf8'));
  if (!(numPassedTests > 0)) throw new Error('no test ran');
  return numPassedTests;
}

/** The command in one file, so that no build is needed; its packages are found beside it. */
async function bundleCommand() {
  const bundle = join(root, 'test-results', `node-matrix-${process.pid}`);
  process.on('exit', () => rmSync(bundle, { recursive: true, force: true }));
  mkdirSync(bundle, { recursive: true });
  const outfile = join(bundle, 'cli.mjs');
  const entry = join(root, 'src/gateway/cli/main.ts');
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'error',
  });
  return outfile;
}

/** Resolves to one hash of everything that the scenarios write. */
async function bytes(binary, command) {
  const hash = createHash('sha256');
  const page = join(folder, 'report.html');
  for (const name of scenarios) {
    hash.update(
      await run(binary, [command, 'simulate', join(root, `examples/scenarios/${name}.yaml`), '--json', '--html', page]),
    );
    hash.update(readFileSync(page));
  }
  return hash.digest('hex');
}

/** Resolves to what is told of the tests; they are left out under the Node of `npm test`. */
async function tested(binary, version) {
  const passed = version === process.version ? '' : `${await test(binary, suites)} tests passed, `;
  const withUndici = await testUndici(binary, version);
  return withUndici === undefined ? passed : `${passed}${withUndici} passed with undici 8, `;
}

const command = await bundleCommand();
const newUndici = isBytesOnly ? undefined : installUndici();
// A failed installation is reported where it is needed.
newUndici?.catch(() => {});
let expected;

/** Resolves to how many tests passed with undici 8; undefined for a Node that cannot load it. */
async function testUndici(binary, version) {
  if (Number(/^v(\d+)/.exec(version)?.[1]) < 22) return undefined;
  return test(binary, undiciSuites, { HEADGATE_UNDICI: await newUndici });
}

/** Resolves to what is told of this Node. */
async function check(binary, version) {
  const passed = isBytesOnly ? '' : await tested(binary, version);
  const written = await bytes(binary, command);
  expected ??= written;
  if (written !== expected) throw new Error(`the simulator writes ${written}, and ${expected} under the first`);
  return `${passed}the simulator writes ${written.slice(0, 16)}`;
}

const binaries = [
  { line: 'this', binary: Promise.resolve(process.execPath) },
  ...lines.map((line) => ({ line, binary: install(line) })),
];
// A failed installation is reported in its turn.
for (const { binary } of binaries) binary.catch(() => {});
let failed = 0;
for (const { line, binary } of binaries) {
  const startedAtMs = performance.now();
  const seconds = () => ((performance.now() - startedAtMs) / 1000).toFixed(1);
  let name = `Node ${line}`;
  try {
    const version = (await run(await binary, ['--version'])).trim();
    name = `Node ${version}`;
    console.log(`ok    ${name}: ${await check(await binary, version)} (${seconds()} s)`);
  } catch (error) {
    console.log(`FAIL  ${name} (${seconds()} s): ${error.message}`);
    failed += 1;
  }
}
process.exitCode = failed === 0 ? 0 : 1;
