// The same traffic through Portkey's gateway as it is, and with flow-control.mjs: three model servers, four tenants,
// the OpenAI client. Options: --seconds 20, --seed 7, and --write, which puts the table into README.md. Exits with 1 if
// flow control did not help.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Processes } from '../gateway/processes.mjs';
import { schedule } from '../gateway/tenants.mjs';
import { play } from './clients.mjs';
import { ServerWatch } from './server-watch.mjs';
import { isBetter, tables } from './tables.mjs';

const { values: args } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    seed: { type: 'string', default: '7' },
    write: { type: 'boolean' },
  },
});
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const processes = new Processes();
/**
 * Portkey forwards no `ignore_eos`, so that answers are shorter than those of the gateway's demo: more of them make the
 * same overload.
 */
const faster = 1.3;

/** This checkout, under the name by which everybody imports it. */
function linkHeadgate() {
  const link = here('node_modules/headgate');
  if (!existsSync(link)) symlinkSync('../../..', link, 'dir');
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Portkey's gateway in a process of its own; `preload` is what Node loads before it. */
async function startPortkey(preload, servers) {
  const port = await freePort();
  const script = here('node_modules/@portkey-ai/gateway/build/start-server.js');
  const child = spawn(process.execPath, [...preload, script, `--port=${port}`, '--headless'], {
    cwd: here('.'),
    env: { ...process.env, MODEL_SERVERS: servers.join(' ') },
    // It tells of every client that leaves.
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let complaints = '';
  child.stderr.on('data', (text) => {
    complaints = (complaints + text).slice(-2_000);
  });
  process.on('exit', () => child.kill('SIGKILL'));
  const url = `http://127.0.0.1:${port}`;
  for (let attempt = 0; attempt < 200; attempt++) {
    if (child.exitCode !== null) break;
    const isUp = await fetch(url).then(
      (answer) => answer.ok,
      () => false,
    );
    if (isUp) return { url, stop: () => child.kill('SIGKILL') };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`Portkey does not answer.\n${complaints}`);
}

async function run(title, preload) {
  console.log(`${title} ...`);
  const running = await Promise.all(
    [1, 2, 3].map((number) => processes.startServer('../gateway/model-server.mjs', ['--name', `server-${number}`])),
  );
  const servers = running.map(({ url }) => url);
  const portkey = await startPortkey(preload, servers);
  const watch = new ServerWatch(servers);
  const arrivals = schedule(Number(args.seed), Number(args.seconds) * faster * 1_000).map((each) => ({
    ...each,
    atMs: each.atMs / faster,
  }));
  const records = await play({ url: portkey.url, servers, arrivals });
  const load = await watch.stop();
  portkey.stop();
  await processes.stopAll();
  return { records, load };
}

linkHeadgate();
const before = await run('Portkey as it is', []);
const after = await run('Portkey with flow control', ['--import', './flow-control.mjs']);
const text = tables(before, after);
console.log(`\n${text}`);
if (args.write) {
  const readme = here('README.md');
  const measured = /(?<=<!-- measured -->\n).*(?=<!-- \/measured -->)/s;
  writeFileSync(readme, readFileSync(readme, 'utf8').replace(measured, `\n${text}\n`));
}
process.exit(isBetter(before, after) ? 0 : 1);
