// Runs tests for Stryker in its own process: bundled once, loaded once, and run again for each mutant. A mutant costs
// the tests that come to it, the quickest first, and no loading: a small part of what it costs with Vitest. For tests
// that wait for nothing outside of the process.
//
// Invariant: a mutant counts as noticed only if the test that failed passes right after that without the mutant. Where
// it does not, something of the mutant has stayed behind: then all is loaded anew, and the mutant runs once more.
import { existsSync, readdirSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { build } from 'esbuild';

/** How long a test may run at a stretch, of the time that the processor gives it: more is an endless loop. */
const longestCpuMs = 1000;
/** Turns of the event loop that a test may take: it has no other way to wait. */
const mostTurns = 5000;
/**
 * Tests that take longer than that, of the processor's time, are left out: simulations notice little that nothing else
 * does.
 */
const slowestMs = 250;

const standIn = new URL('./vitest-stand-in.mjs', import.meta.url).href;
const bundle = 'in-process-tests.mjs';

class InProcessRunner {
  tests = new Map();
  /** Ms of the processor that a test took, by its ID. */
  costs = new Map();
  loads = 0;

  capabilities() {
    return { reloadEnvironment: false };
  }

  async init() {
    // Tests of faults write warnings; what a mutant leaves behind must not end the process.
    for (const level of ['log', 'warn', 'error']) console[level] = () => {};
    for (const event of ['unhandledRejection', 'uncaughtException']) process.on(event, () => {});
    // Stryker makes another process after one that hangs.
    if (!existsSync(bundle)) await bundleTests();
    await this.load();
  }

  async load() {
    const { collected } = await import(standIn);
    collected.length = 0;
    await import(`${pathToFileURL(bundle).href}?${this.loads++}`);
    this.tests = new Map(collected.map((test, index) => [`${index} ${test.name}`, test]));
  }

  async dryRun() {
    const results = [];
    for (const [id, test] of this.tests) {
      stryker().currentTestId = id;
      const before = cpuMs();
      const failure = await failureOf(test);
      const timeSpentMs = cpuMs() - before;
      this.costs.set(id, timeSpentMs);
      if (timeSpentMs > slowestMs) {
        delete stryker().mutantCoverage?.perTest[id];
        continue;
      }
      const result = { id, name: test.name, timeSpentMs };
      results.push(
        failure === undefined ? { ...result, status: 0 } : { ...result, status: 1, failureMessage: String(failure) },
      );
    }
    stryker().currentTestId = undefined;
    return { status: 'complete', tests: results, mutantCoverage: stryker().mutantCoverage };
  }

  async mutantRun({ activeMutant, testFilter, hitLimit }) {
    const ids = [...(testFilter ?? this.tests.keys())].sort(
      (a, b) => (this.costs.get(a) ?? 0) - (this.costs.get(b) ?? 0),
    );
    for (let attempt = 0; attempt < 2; attempt++) {
      const killer = await this.firstFailure(ids, activeMutant.id, hitLimit);
      if (killer === undefined) return { status: 'survived', nrOfTests: ids.length };
      if ((await failureOf(this.tests.get(killer.id))) === undefined) {
        if (killer.isEndless) return { status: 'timeout', reason: 'it comes by the mutant without end' };
        return {
          status: 'killed',
          killedBy: [killer.id],
          failureMessage: String(killer.failure),
          nrOfTests: ids.length,
        };
      }
      await this.load();
    }
    return { status: 'error', errorMessage: 'a test fails without the mutant' };
  }

  async firstFailure(ids, activeMutant, hitLimit) {
    for (const id of ids) {
      Object.assign(stryker(), { activeMutant, hitCount: 0, hitLimit });
      const failure = await failureOf(this.tests.get(id));
      const isEndless = stryker().hitCount > hitLimit;
      Object.assign(stryker(), { activeMutant: undefined, hitCount: undefined });
      if (failure !== undefined) return { id, failure, isEndless };
    }
    return undefined;
  }
}

async function bundleTests() {
  const files = (process.env.MUTATION_TESTS ?? '')
    .split(',')
    .flatMap((path) => (path.endsWith('.ts') ? [path] : testsIn(path)));
  await build({
    stdin: { contents: files.map((file) => `import './test/${file}';`).join('\n'), resolveDir: process.cwd() },
    absWorkingDir: process.cwd(),
    bundle: true,
    // The package says that its files have no side effects: tests are nothing else.
    ignoreAnnotations: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    outfile: bundle,
    logLevel: 'error',
    plugins: [
      {
        name: 'stand-in',
        setup: ({ onResolve }) => onResolve({ filter: /^vitest$/ }, () => ({ path: standIn, external: true })),
      },
    ],
  });
}

function testsIn(folder) {
  const names = readdirSync(`test/${folder}`, { recursive: true }).filter((name) => name.endsWith('.test.ts'));
  return names.sort().map((name) => `${folder}/${name}`);
}

function stryker() {
  globalThis.__stryker__ ??= {};
  return globalThis.__stryker__;
}

function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** What a test failed with; undefined when it passed. */
async function failureOf({ run }) {
  const { vi } = await import(standIn);
  try {
    const answer = atAStretch(run);
    if (typeof answer?.then === 'function') await inTurns(answer);
    return undefined;
  } catch (error) {
    return error ?? 'nothing';
  } finally {
    vi.restoreAllMocks();
  }
}

const call = new vm.Script('globalThis.__run__()');

/** Calls `run`, and ends it when it does not end by itself. On a busy machine it has longer. */
function atAStretch(run) {
  globalThis.__run__ = run;
  const before = cpuMs();
  for (let timeout = 2000; ; timeout *= 2) {
    try {
      return call.runInThisContext({ timeout });
    } catch (error) {
      if (error?.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT' || cpuMs() - before >= longestCpuMs) throw error;
    }
  }
}

/** A promise that never settles leaves nothing to wait for. */
async function inTurns(answer) {
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  answer.then(end, end);
  for (let turns = 0; turns < mostTurns && !isOver; turns++) await new Promise(setImmediate);
  if (!isOver) throw new Error('it does not end');
  await answer;
}

export const strykerPlugins = [{ kind: 'TestRunner', name: 'in-process', injectableClass: InProcessRunner }];
