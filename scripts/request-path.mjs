// Prints how many files, functions and calls one request takes through the library: one that passes through, and one
// that waits once. First with globalStrict(), which does nothing of its own: the way through the controller itself.
// Then with the default fairness policy. With --list also which functions, in the order of their files. Counted by V8's
// precise coverage, so that inlining hides nothing.
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(root, 'node_modules/.cache/headgate-request-path');

const { values } = parseArgs({
  options: { list: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
});

/** Each source becomes a module of its own, because a bundle would be one file. */
async function compile() {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const folders = ['base', 'tiers', 'endpoints', 'gate', 'constraints', 'admission', 'eviction', 'plugins', 'core'];
  const entryPoints = folders.flatMap((folder) =>
    readdirSync(join(root, 'src', folder), { recursive: true })
      .filter((name) => String(name).endsWith('.ts'))
      .map((name) => join(root, 'src', folder, String(name))),
  );
  entryPoints.push(join(root, 'src/index.ts'));
  await build({
    entryPoints,
    tsconfig: join(root, 'tsconfig.json'),
    outdir: out,
    outbase: join(root, 'src'),
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
  });
}

/** The functions of this library that ran, with their number of calls, as `{ file, name, count }`. */
async function calls(session) {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const base = `${pathToFileURL(out).href}/`;
  return result
    .filter(({ url }) => url.startsWith(base))
    .flatMap(({ url, functions }) =>
      functions
        .filter(
          ({ ranges: [range], functionName }) => range.count > 0 && !(functionName === '' && range.startOffset === 0),
        )
        .map(({ ranges: [range], functionName }) => ({
          file: relative(out, fileURLToPath(url)).split(sep).join('/').replace(/\.js$/, '.ts'),
          name: functionName || '(anonymous)',
          count: range.count,
        })),
    );
}

function summary(functions) {
  return {
    files: new Set(functions.map(({ file }) => file)).size,
    functions: functions.length,
    calls: functions.reduce((sum, { count }) => sum + count, 0),
  };
}

await compile();
const { FlowController, concurrencyDetector, globalStrict, roundRobin } = await import(
  pathToFileURL(join(out, 'index.js')).href
);
const request = { byteSize: 0 };
const key = { fairnessId: 'tenant', priority: 0 };

/** Resolves when the turn of the event loop is over: what a rush shares has been given back. */
const nextTurn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/** Both ways of a request through a controller with this fairness policy. */
async function pathsWith(fairness) {
  const bands = [{ priority: 0, fairness }];
  const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }), bands });
  const passThrough = async () => {
    const { lease } = await flow.enqueue(request, key);
    lease.release();
  };
  /** `first` holds the only seat; the request that is counted waits for it. */
  const waitOnce = async (first) => {
    const waiting = flow.enqueue(request, key);
    first.release();
    const { lease } = await waiting;
    lease.release();
  };
  const passing = await measure(passThrough);
  const waiting = await measure(waitOnce, async () => (await flow.enqueue(request, key)).lease);
  await flow.close();
  return [passing, waiting];
}

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

/**
 * The shortest of some runs after the first: what the first request of a controller makes, others find, and on a busy
 * machine a timer of the last request may end during this one.
 */
async function measure(run, prepare = async () => undefined) {
  let shortest = [];
  for (let i = 0; i < 5; i++) {
    const prepared = await prepare();
    await nextTurn();
    await calls(session);
    await run(prepared);
    const functions = await calls(session);
    if (i > 0 && (shortest.length === 0 || functions.length < shortest.length)) shortest = functions;
    await nextTurn();
  }
  return shortest;
}

const [passing, waiting] = await pathsWith(globalStrict());
const [passingInTurn, waitingInTurn] = await pathsWith(roundRobin());
const paths = {
  'passes through': passing,
  'waits once': waiting,
  'passes through, with roundRobin()': passingInTurn,
  'waits once, with roundRobin()': waitingInTurn,
};
rmSync(out, { recursive: true, force: true });

if (values.json)
  console.log(
    JSON.stringify(Object.fromEntries(Object.entries(paths).map(([name, functions]) => [name, summary(functions)]))),
  );
else {
  for (const [name, functions] of Object.entries(paths)) {
    const { files, functions: distinct, calls: total } = summary(functions);
    console.log(`a request that ${name}: ${files} files, ${distinct} functions, ${total} calls`);
    if (values.list)
      for (const { file, name: called, count } of functions)
        console.log(`  ${String(count).padStart(3)}  ${file}  ${called}`);
  }
}
