// Runs one of several tasks of a kind: `npm run bench -- http --quick`, which is `node scripts/run-task.mjs bench http
// --quick`. What follows the name goes to the last command. A kind with a task of its own name runs that when no name
// is given; of the others it tells the names.
import { spawn } from 'node:child_process';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = 'node scripts/build.mjs --if-stale';
const benchPeers = 'node bench/install.mjs';
const sitePackages = 'node bench/install.mjs ../site';
const bundled = 'node --enable-source-maps scripts/run-bundled.mjs';

/** By kind and name: commands, each a line of words. */
export const tasks = {
  demo: {
    demo: [dist, 'node examples/gateway/demo.mjs'],
    serve: [dist, 'node examples/gateway/serve.mjs'],
    eviction: [dist, 'node examples/gateway/eviction.mjs'],
    capacity: [dist, 'node examples/gateway/capacity.mjs'],
    'late-binding': [dist, 'node examples/gateway/late-binding.mjs'],
    workers: [dist, 'node examples/replicas/workers.mjs'],
    overflow: [dist, 'node examples/gateway/overflow.mjs'],
    'long-prompts': [dist, 'node examples/gateway/long-prompts.mjs'],
    replicas: [dist, 'node examples/replicas/serve.mjs --seconds 16 --kill-after 8'],
    portkey: [dist, 'node bench/install.mjs ../examples/portkey', 'node examples/portkey/demo.mjs'],
  },
  bench: {
    bench: [dist, benchPeers, 'node bench/run.mjs'],
    http: [dist, benchPeers, 'node bench/http/run.mjs'],
    gateway: [dist, 'node bench/install.mjs gateway', 'node bench/gateway/run.mjs'],
    fairness: [dist, 'node --expose-gc bench/fairness.mjs'],
    metrics: [dist, 'node --expose-gc bench/metrics.mjs'],
    scrape: [dist, 'node --expose-gc bench/scrape.mjs'],
    scraping: [dist, 'node bench/scraping.mjs'],
    scanning: [`${bundled} bench/scanning.mjs`],
    'ext-proc': [dist, 'node bench/ext-proc/run.mjs'],
    shared: [dist, 'node bench/shared-state.mjs'],
    workers: [dist, 'node bench/workers.mjs'],
  },
  torture: {
    torture: [`${bundled} test/property/torture.ts`],
    budgets: [`${bundled} test/property/budgets-torture.ts`],
    fetch: [`${bundled} test/fetch/torture.ts`],
    sockets: [`${bundled} test/adapters/ws/torture.ts`],
    redis: ['node scripts/torture-redis.mjs'],
  },
  check: {
    package: [dist, 'publint --strict', 'attw --pack . --profile node16 --format table-flipped'],
    publish: [dist, 'node scripts/check-publish.mjs'],
    'supply-chain': ['node scripts/check-supply-chain.mjs'],
    api: [dist, 'node scripts/api-reports.mjs'],
    size: [dist, 'size-limit'],
    unused: [sitePackages, 'knip'],
    examples: [dist, 'tsc -p examples/tsconfig.json', 'node scripts/run-examples.mjs'],
    nodes: ['node scripts/node-matrix.mjs'],
    runtimes: [dist, 'node scripts/other-runtimes.mjs'],
    typescript: [dist, 'node scripts/typescript-versions.mjs'],
    floors: ['node scripts/test-floors.mjs'],
    programs: ['node scripts/test-programs.mjs'],
    'engine-versions': ['node scripts/test-engine-versions.mjs'],
  },
  docs: {
    dev: [sitePackages, 'npm run --prefix site dev'],
    build: [sitePackages, 'npm run --silent --prefix site build'],
    check: [
      sitePackages,
      'npm run --silent --prefix site build',
      'npm run --silent --prefix site typecheck',
      'node scripts/test-programs.mjs site',
    ],
    options: ['vitest run test/docs/options.test.ts -u'],
    versions: ['node site/versions.mjs'],
  },
  release: {
    release: ['node scripts/build.mjs', 'changeset publish'],
    version: [
      'changeset version',
      'npm install --package-lock-only --ignore-scripts',
      'node scripts/close-changelog.mjs',
    ],
  },
};

/** The commands that `words` ask for, and what goes to the last of them. Throws for a name that there is not. */
export function chosenTask(kind, words) {
  const named = tasks[kind];
  if (named === undefined) throw new Error(`expected one of ${Object.keys(tasks).join(', ')}; got ${kind}`);
  const isNamed = words[0] !== undefined && !words[0].startsWith('-');
  const name = isNamed ? words[0] : kind;
  if (!Object.hasOwn(named, name)) {
    const names = Object.keys(named).filter((each) => each !== kind);
    throw new Error(`npm run ${kind}: expected one of ${names.join(', ')}; got ${isNamed ? name : 'none'}`);
  }
  return { commands: named[name], rest: words.slice(isNamed ? 1 : 0) };
}

/** Resolves to the exit code. A terminal interrupts both; whoever ends this program alone ends the other as well. */
function execute(program, args) {
  const path = [join(root, 'node_modules/.bin'), dirname(process.execPath), process.env.PATH].join(delimiter);
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: root, stdio: 'inherit', env: { ...process.env, PATH: path } });
    process.removeAllListeners('SIGTERM').on('SIGTERM', () => child.kill('SIGTERM'));
    child.on('error', reject).on('exit', (code) => resolve(code ?? 1));
  });
}

/** Resolves to the exit code of the first command that fails, or to 0. */
async function run({ commands, rest }) {
  for (const [i, line] of commands.entries()) {
    const [program, ...args] = line.split(' ');
    const code = await execute(program, i === commands.length - 1 ? [...args, ...rest] : args);
    if (code !== 0) return code;
  }
  return 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.on('SIGINT', () => {});
  const [kind, ...words] = process.argv.slice(2);
  try {
    process.exitCode = await run(chosenTask(kind, words));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 2;
  }
}
