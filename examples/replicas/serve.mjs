// @ts-check
// Two replicas of the gateway behind one port, in front of a model server, with one limit. One that dies is replaced.
//   node examples/replicas/serve.mjs                    starts redis-server, or takes REDIS_URL
//   node examples/replicas/kill-one.mjs                 in another terminal: SIGKILL for one replica
//   npm run demo -- replicas                           by itself: traffic of its own for 16 s, one replica killed after 8 s
// The pool is new to the store: its first grants come after a lease of 5 s.

import { spawn } from 'node:child_process';
import cluster from 'node:cluster';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createNetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { seconds: { type: 'string' }, 'kill-after': { type: 'string' }, port: { type: 'string', default: '8080' } },
});
const pidFile = join(tmpdir(), 'headgate-replicas.json');
/** 0 takes one that is free. */
const port = values.port === '0' ? await freePort() : Number(values.port);
const limit = 8;

/** A model server that counts what it has at once. */
let running = 0;
let most = 0;
const model = createServer((req, res) => {
  req.resume().on('end', async () => {
    running++;
    most = Math.max(most, running);
    await delay(300 + 400 * Math.random());
    running--;
    res
      .setHeader('content-type', 'application/json')
      .end('{"choices":[{"message":{"role":"assistant","content":"hello"}}]}');
  });
});
await new Promise((resolve) => model.listen(0, '127.0.0.1', () => resolve(undefined)));
const modelPort = portOf(model);

const { url, stop } = await engine();
const file = readFileSync(new URL('gateway.yaml', import.meta.url), 'utf8')
  .replace('8000', String(modelPort))
  .replace('8080', String(port));

/** @type {Map<number, { cap: number, inFlight: number }>} */
const reports = new Map();
cluster.setupPrimary({ exec: fileURLToPath(new URL('replica.mjs', import.meta.url)), args: [] });
const start = () => {
  cluster.fork({ REDIS_URL: url, FILE: file }).on('message', ({ pid, ...report }) => reports.set(pid, report));
};
let isEnding = false;
cluster.on('exit', (worker) => {
  const { pid = 0 } = worker.process;
  reports.delete(pid);
  if (isEnding) return;
  console.log(`replica ${pid} is gone; another takes its place`);
  start();
});
cluster.on('online', writePids);
const serving = new Promise((resolve) => {
  let listening = 0;
  cluster.on('listening', () => {
    if (++listening === 2) resolve(undefined);
  });
});
start();
start();
await serving;
console.log(`two replicas on http://127.0.0.1:${port}, limit ${limit}; kill one: node examples/replicas/kill-one.mjs`);

const show = setInterval(() => {
  const shares = [...reports].map(([pid, { cap, inFlight }]) => `${pid}: ${inFlight} of ${cap}`);
  console.log(`model server: ${running} at once, most ${most} | ${shares.join(' | ')}`);
}, 1_000);

if (values.seconds !== undefined) {
  const until = performance.now() + Number(values.seconds) * 1_000;
  if (values['kill-after'] !== undefined) setTimeout(killOne, Number(values['kill-after']) * 1_000);
  let answered = 0;
  let failed = 0;
  await Promise.all(Array.from({ length: 24 }, client));
  console.log(
    `${answered} answered, ${failed} failed with the replica that was killed; at most ${most} at once in the model server`,
  );
  await end(answered > 0 && most <= limit ? 0 : 1);

  async function client() {
    while (performance.now() < until) {
      try {
        const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hello' }] }),
          // A connection that was on its way to the replica that was killed is answered by nobody.
          signal: AbortSignal.timeout(10_000),
        });
        await response.text();
        if (!response.ok) throw new Error(`status ${response.status}`);
        answered++;
      } catch {
        failed++;
        await delay(200);
      }
    }
  }
}

process.on('SIGINT', () => void end(0));
process.on('SIGTERM', () => void end(0));

function killOne() {
  const [pid] = reports.keys();
  if (pid !== undefined) process.kill(pid, 'SIGKILL');
}

function writePids() {
  const pids = Object.values(cluster.workers ?? {}).map((worker) => worker?.process.pid);
  writeFileSync(pidFile, JSON.stringify(pids));
}

/** @param {number} code */
async function end(code) {
  isEnding = true;
  clearInterval(show);
  for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL');
  model.close();
  stop();
  rmSync(pidFile, { force: true });
  process.exit(code);
}

/** The store of REDIS_URL, or one of its own. */
async function engine() {
  if (process.env.REDIS_URL) return { url: process.env.REDIS_URL, stop: () => {} };
  const enginePort = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'headgate-redis-'));
  const options = ['--port', String(enginePort), '--bind', '127.0.0.1', '--save', '', '--dir', dir];
  const child = spawn('redis-server', options, { stdio: 'ignore' });
  child.on('error', () => {
    console.error('redis-server is not installed: install it, or set REDIS_URL');
    process.exit(1);
  });
  return {
    url: `redis://127.0.0.1:${enginePort}`,
    stop: () => {
      child.kill('SIGKILL');
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve) => {
    const server = createNetServer().listen(0, '127.0.0.1', () => {
      const free = portOf(server);
      server.close(() => resolve(free));
    });
  });
}

/** @param {import('node:net').Server} server */
function portOf(server) {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
