// Runs every examples/*.mjs and examples/recipes/*.mjs, the relay of several keys, and the replicas where there is an
// engine. One that ends with an error, or does not end in time, fails the run.
import { spawn, spawnSync } from 'node:child_process';
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
function run([name, ...args]) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [join('examples', name), ...args], {
      cwd: root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
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
      const problem = isLate
        ? `still running after ${limitMs / 1000} s`
        : `ended with ${signal ?? `exit code ${code}`}`;
      resolve(`${problem}\n${Buffer.concat(output)}`);
    });
  });
}

const namesIn = (folder) => readdirSync(join(root, 'examples', folder)).map((name) => join(folder, name));
const commands = [...namesIn('.'), ...namesIn('recipes'), 'hosted/relay.mjs']
  .filter((name) => name.endsWith('.mjs'))
  .sort()
  .map((name) => [name]);
const replicas = ['replicas/serve.mjs', '--port', '0', '--seconds', '12', '--kill-after', '8'];
const hasEngine = Boolean(process.env.REDIS_URL) || spawnSync('redis-server', ['--version']).status === 0;
if (hasEngine) commands.push(replicas);
else console.log('SKIP  replicas/serve.mjs: redis-server is not installed, and REDIS_URL is not set');
let failed = 0;
for (const command of commands) {
  const [name] = command;
  const startedAtMs = performance.now();
  const problem = await run(command);
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
  console.log(problem === undefined ? `ok    ${name} (${seconds} s)` : `FAIL  ${name} (${seconds} s): ${problem}`);
  if (problem !== undefined) failed += 1;
}
console.log(`examples: ${commands.length - failed} ran, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
