// @ts-check
// One limit over several workers of a gateway, without Redis, while workers are killed: `npm run demo:workers`.
// The model server is a process of its own and counts what it has at once. Fails when that was more than the limit, or
// when more requests were lost than the killed workers can have had.
//   node examples/replicas/workers.mjs --workers 4 --seconds 12

import { fork, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    workers: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '12' },
    limit: { type: 'string', default: '8' },
    serve: { type: 'boolean', default: false },
  },
});
const limit = Number(values.limit);
const clients = 3 * limit;

if (values.serve) serveModel();
else process.exitCode = await demonstrate();

/** The model server: a request is over for it when its connection is. */
function serveModel() {
  const seen = { now: 0, most: 0, served: 0 };
  const server = createServer((req, res) => {
    if (req.method !== 'POST') {
      res.end(JSON.stringify(seen));
      return;
    }
    seen.most = Math.max(seen.most, ++seen.now);
    res.once('close', () => seen.now--);
    req.resume().once('end', async () => {
      await delay(50 + 100 * Math.random());
      seen.served++;
      res.setHeader('content-type', 'application/json').end('{"choices":[{"message":{"content":"hello"}}]}');
    });
  });
  server.listen(0, '127.0.0.1', () => process.send?.(server.address()));
  process.on('disconnect', () => process.exit());
}

/** @returns {Promise<number>} */
async function demonstrate() {
  const model = fork(fileURLToPath(import.meta.url), ['--serve']);
  const { port } = await /** @type {Promise<{ port: number }>} */ (
    new Promise((resolve) => model.once('message', resolve))
  );
  const folder = mkdtempSync(join(tmpdir(), 'headgate-workers-'));
  const file = join(folder, 'gateway.json');
  writeFileSync(
    file,
    JSON.stringify({
      listen: { port: 0 },
      log: { format: 'json', requests: false },
      upstreams: [{ id: 'model', url: `http://127.0.0.1:${port}` }],
      plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency: limit } }],
      flowControl: { saturationDetector: { pluginRef: 'concurrency-detector' } },
      drain: { delay: '0s' },
    }),
  );
  const command = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
  const args = [command, 'gateway', '--config', file, '--workers', values.workers];
  const gateway = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'pipe'] });
  const ended = new Promise((resolve) => gateway.once('exit', resolve));
  /** @type {Map<number, number>} */
  const living = new Map();
  let killed = 0;
  let log = '';
  /** @type {Promise<string>} */
  const listening = new Promise((resolve, reject) => {
    gateway.stderr.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
      log += text;
      const url = /"event":"listening".*?"url":"([^"]+)"/.exec(log)?.[1];
      if (url) resolve(url);
      for (const [, event, worker, pid] of text.matchAll(/"worker-(ready|died)","worker":(\d+),"pid":(\d+)/g)) {
        if (event === 'ready') living.set(Number(worker), Number(pid));
        else living.delete(Number(worker));
      }
    });
    gateway.once('exit', () => reject(new Error(`the gateway ended: ${log}`)));
  });
  const url = await listening;
  console.log(`${values.workers} workers on ${url}, one limit: ${limit}`);

  const until = performance.now() + Number(values.seconds) * 1_000;
  let answered = 0;
  let lost = 0;
  let refused = 0;
  async function client() {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (performance.now() < until) {
      const status = await send(url, agent);
      if (status === 200) answered++;
      else if (status === 0) lost++;
      else refused++;
    }
    agent.destroy();
  }
  const all = Array.from({ length: clients }, client);
  for (let n = 0; n < 3; n++) {
    await delay((Number(values.seconds) * 1_000) / 4);
    const [pid] = living.values();
    if (pid === undefined) continue;
    killed++;
    process.kill(pid, 'SIGKILL');
    const seen = await counts(port);
    console.log(
      `worker ${pid} is killed | the model server has ${seen.now}, at most ${seen.most}; ${answered} answered`,
    );
  }
  await Promise.all(all);
  const { most, served } = await counts(port);
  gateway.kill('SIGTERM');
  await ended;
  model.kill();
  rmSync(folder, { recursive: true });
  // Of each killed worker: what it ran, what waited in it, and what was on its way to it.
  const mayBeLost = killed * clients;
  console.log(
    `limit ${limit}, most in flight ${most}; ${served} served, ${answered} answered, ${lost} lost with ${killed} killed workers, ${refused} refused`,
  );
  return most <= limit && answered > 0 && refused === 0 && lost <= mayBeLost && killed > 0 ? 0 : 1;
}

/** What the model server has seen. @param {number} port @returns {Promise<{ now: number, most: number, served: number }>} */
async function counts(port) {
  const answer = await fetch(`http://127.0.0.1:${port}`);
  return /** @type {{ now: number, most: number, served: number }} */ (await answer.json());
}

/** The status of a whole answer, or 0. @param {string} url @param {Agent} agent @returns {Promise<number>} */
function send(url, agent) {
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json' };
    const outgoing = request(`${url}/v1/chat/completions`, { method: 'POST', agent, headers }, (answer) => {
      answer.resume().once('close', () => resolve(answer.complete ? (answer.statusCode ?? 0) : 0));
    });
    outgoing.once('error', () => resolve(0));
    // A connection that was on its way to a worker that died is answered by nobody.
    outgoing.setTimeout(10_000, () => outgoing.destroy());
    outgoing.end('{"model":"demo","messages":[]}');
  });
}
