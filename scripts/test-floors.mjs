// Runs the tests of what uses peers with each peer at the lowest version that the package allows:
// `npm run check -- floors`. The versions come from the registry, into a temporary folder; nothing in this checkout
// changes.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** What each peer is used by, in tests that need nothing but npm. */
const suites = [
  'test/adapters/fastify',
  'test/adapters/hono/flow-control.test.ts',
  'test/adapters/undici/flow-control.test.ts',
  'test/adapters/ws',
  'test/fetch/ai/releases.test.ts',
  'test/gateway/hostile-clients.test.ts',
  'test/gateway/proxy.test.ts',
  'test/observability/prometheus',
  'test/observability/opentelemetry',
  'test/config',
  'test/redis/store/client-shapes.test.ts',
];

const folder = mkdtempSync(join(tmpdir(), 'headgate-floors-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
process.on('SIGINT', () => process.exit(130));
process.on('SIGTERM', () => process.exit(143));

function npm(...args) {
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm ${args.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}

const partsOf = (version) => version.split('.').map(Number);

function compare(a, b) {
  const [left, right] = [partsOf(a), partsOf(b)];
  for (let i = 0; i < 3; i++) if ((left[i] ?? 0) !== (right[i] ?? 0)) return (left[i] ?? 0) - (right[i] ?? 0);
  return 0;
}

/**
 * The lowest published version from the floor of a range up, which is `^1.2` or `>=1.2`, with later lines behind `||`.
 */
function lowest(name, range) {
  const [, floor] = /^(?:\^|>=)(\d+(?:\.\d+){0,2})$/.exec(range.split(' || ')[0]) ?? [];
  if (floor === undefined) throw new Error(`${name}: expected a range such as ^1.2 or >=1.2; got ${range}`);
  const published = [JSON.parse(npm('view', name, 'versions', '--json'))].flat();
  const [first] = published
    .filter((version) => /^\d+\.\d+\.\d+$/.test(version) && compare(version, floor) >= 0)
    .sort(compare);
  if (first === undefined) throw new Error(`${name}: no version satisfies ${range}`);
  return first;
}

const floors = Object.entries(peerDependencies).map(([name, range]) => `${name}@${lowest(name, range)}`);
console.log(`peers at their floors: ${floors.join(', ')}`);
writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
// The AI SDK needs zod, and leaves it to its host.
npm(
  'install',
  '--no-audit',
  '--no-fund',
  '--ignore-scripts',
  '--legacy-peer-deps',
  ...floors,
  `zod@${dependencies.zod}`,
);

const vitest = join(root, 'node_modules/vitest/vitest.mjs');
const options = ['run', '--project', 'floors', '--outputFile.json=test-results/floors.json', ...suites];
const { status } = spawnSync(process.execPath, [vitest, ...options], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, FLOORS_FOLDER: folder },
});
process.exitCode = status ?? 1;
