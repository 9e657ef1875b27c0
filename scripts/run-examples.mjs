// Runs every examples/*.mjs. One that ends with an error, or does not end in time, fails the run.
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const limitMs = 60_000;
/** Each example leads its own process group, so that whatever it started goes with it. */
let group;

function killGroup() {
  try {
    if (group !== undefined) process.kill(-group, 'SIGKILL');
  } catch {
    // The group has ended already.
  }
  group = undefined;
}

process.on('exit', killGroup);
process.on('SIGINT', () => process.exit(130));
process.on('SIGTERM', () => process.exit(143));

/** Resolves to what went wrong, or to undefined. */
function run(name) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [join('examples', name)], { cwd: root, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    group = child.pid;
    const output = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      killGroup();
    }, limitMs);
    child.on('exit', () => {
      clearTimeout(timer);
      killGroup();
    });
    child.on('close', (code, signal) => {
      if (code === 0) return resolve(undefined);
      const problem = isLate ? `still running after ${limitMs / 1000} s` : `ended with ${signal ?? `exit code ${code}`}`;
      resolve(`${problem}\n${Buffer.concat(output)}`);
    });
  });
}

const names = readdirSync(join(root, 'examples'))
  .filter((name) => name.endsWith('.mjs'))
  .sort();
let failed = 0;
for (const name of names) {
  const startedAtMs = performance.now();
  const problem = await run(name);
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
  console.log(problem === undefined ? `ok    ${name} (${seconds} s)` : `FAIL  ${name} (${seconds} s): ${problem}`);
  if (problem !== undefined) failed += 1;
}
console.log(`examples: ${names.length - failed} ran, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
