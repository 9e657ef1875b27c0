// What a request costs with and without shared state, while the grant lasts, and how many calls of the store a second
// that makes.
//
//     npm run bench -- shared --rounds 15 --requests 200000      (needs redis-server, or REDIS_URL)
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { concurrencyDetector, FlowController } from '../dist/index.js';
import { sharedConcurrency } from '../dist/redis.js';
import { describeMachine, today } from './lib/machine.mjs';
import { quantile } from './lib/measure.mjs';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '15' }, requests: { type: 'string', default: '200000' } },
});
const rounds = Number(values.rounds);
const requests = Number(values.requests);
const limit = 64;
const key = { fairnessId: 'a', priority: 0 };

/** Requests go one after another, each at once: ns for enqueue and release. */
function uncontended(flow) {
  const startedAtMs = performance.now();
  for (let i = 0; i < requests; i++) flow.tryEnqueue({ byteSize: 1 }, key).lease.release();
  return ((performance.now() - startedAtMs) * 1e6) / requests;
}

/** Four requests wait for each seat, so that every release lets another go. */
async function contended(flow) {
  const startedAtMs = performance.now();
  let left = requests;
  await Promise.all(
    Array.from({ length: 4 * limit }, async () => {
      while (left-- > 0) (await flow.enqueue({ byteSize: 1 }, key)).lease.release();
    }),
  );
  return ((performance.now() - startedAtMs) * 1e6) / requests;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function startEngine() {
  if (process.env.REDIS_URL) return { url: process.env.REDIS_URL, stop() {} };
  const [port, dir] = [await freePort(), mkdtempSync(join(tmpdir(), 'headgate-bench-'))];
  const child = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', dir], {
    stdio: 'ignore',
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    stop() {
      child.kill('SIGKILL');
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

const engine = await startEngine();
const client = new Redis(engine.url);
client.on('error', () => {});
const shared = sharedConcurrency(client, { pool: 'bench', maxConcurrency: limit, callTimeout: '1s' });
// A store that is new to the pool learns for one lease.
while (shared.limit < limit) await delay(50);
const subjects = {
  'concurrencyDetector()': new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: limit }) }),
  'sharedConcurrency()': new FlowController({ saturationDetector: shared }),
};
shared.attach(subjects['sharedConcurrency()']);

const times = Object.fromEntries(Object.keys(subjects).map((name) => [name, { uncontended: [], contended: [] }]));
const callsBefore = shared.status[0].store.calls;
const startedAtMs = performance.now();
for (let round = 0; round < rounds; round++) {
  for (const [name, flow] of Object.entries(subjects)) {
    times[name].uncontended.push(uncontended(flow));
    times[name].contended.push(await contended(flow));
    await delay(0);
  }
}
const seconds = (performance.now() - startedAtMs) / 1_000;
const calls = shared.status[0].store.calls - callsBefore;

console.log(`${today()}, ${describeMachine()}\n`);
console.log('| ns for a request, median (least) | it goes at once | it waits |\n|---|---|---|');
for (const [name, { uncontended: free, contended: full }] of Object.entries(times)) {
  const shown = (list) =>
    `${Math.round(
      quantile(
        [...list].sort((a, b) => a - b),
        0.5,
      ),
    )} (${Math.round(Math.min(...list))})`;
  console.log(`| \`${name}\` | ${shown(free)} | ${shown(full)} |`);
}
const perSecond = Math.round((rounds * 2 * requests) / seconds);
console.log(`\n${(calls / seconds).toFixed(2)} calls of the store a second at ${perSecond} requests a second.`);
await shared.close();
client.disconnect();
engine.stop();
