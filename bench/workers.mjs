// What workers cost and bring: CPU of the gateway for a request, and requests a second, with one process, with workers,
// and with replicas through Redis (`--redis URL`). Servers answer at once, so that the gateway is what is measured.
//   npm run bench -- workers --seconds 8 --workers 1,2,4
// Read it on a machine with nothing else to do: "speed-up" is the rate against one process. It needs a core for each
// worker, and one more for the load and the server, or these are what is measured.

import { fork, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    workers: { type: 'string', default: '1,2,4' },
    seconds: { type: 'string', default: '8' },
    clients: { type: 'string', default: '64' },
    redis: { type: 'string' },
    role: { type: 'string' },
    url: { type: 'string' },
  },
});
const seconds = Number(values.seconds);
const self = fileURLToPath(import.meta.url);
const command = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
const ticksPerSecond = 100;

function serve() {
  const server = createServer((req, res) => {
    req.resume().once('end', () => res.setHeader('content-type', 'application/json').end('{"choices":[]}'));
  });
  server.listen(0, '127.0.0.1', () => process.send?.(server.address().port));
}

/** Requests that were answered in the time. */
async function load(url) {
  const until = performance.now() + seconds * 1_000;
  let answered = 0;
  const client = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (performance.now() < until) {
      const isWhole = await new Promise((resolve) => {
        const headers = { 'content-type': 'application/json' };
        const outgoing = request(`${url}/v1/chat/completions`, { method: 'POST', agent, headers }, (res) =>
          res.resume().once('end', () => resolve(res.statusCode === 200)),
        );
        outgoing.once('error', () => resolve(false));
        outgoing.end('{"model":"m","messages":[{"role":"user","content":"hello"}]}');
      });
      if (isWhole) answered++;
    }
    agent.destroy();
  };
  await Promise.all(Array.from({ length: Number(values.clients) }, client));
  return answered;
}

const answerOf = (child) => new Promise((resolve) => child.once('message', resolve));
const start = (role, ...more) =>
  fork(self, ['--role', role, '--seconds', values.seconds, '--clients', values.clients, ...more]);

/** CPU seconds of a process and of its children that live. */
function cpuSeconds(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [, ...fields] = stat.slice(stat.lastIndexOf(')')).split(' ');
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  return (
    (Number(fields[11]) + Number(fields[12])) / ticksPerSecond +
    children.reduce((sum, each) => sum + cpuSeconds(each), 0)
  );
}

async function run(port, workers, sharedState) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  const file = join(folder, 'gateway.json');
  const detector = { type: 'concurrency-detector', parameters: { maxConcurrency: 32 } };
  const flowControl = { saturationDetector: { pluginRef: 'concurrency-detector' } };
  const upstreams = [{ id: 'server', url: `http://127.0.0.1:${port}` }];
  const log = { format: 'json', requests: false };
  const listen = { port: 0 };
  writeFileSync(file, JSON.stringify({ listen, log, upstreams, plugins: [detector], flowControl, sharedState }));
  const args = [command, 'gateway', '--config', file, '--workers', String(workers)];
  const gateway = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const url = await new Promise((resolve) => {
    let said = '';
    gateway.stderr.on('data', (text) => {
      said += text;
      const found = /"event":"listening".*?"url":"([^"]+)"/.exec(said)?.[1];
      if (found) resolve(found);
    });
  });
  await delay(sharedState === undefined ? 500 : 6_000);
  await answerOf(start('load', '--url', url)); // code that has run only a little is slow
  const before = cpuSeconds(gateway.pid);
  const answered = await answerOf(start('load', '--url', url));
  const cpuMs = ((cpuSeconds(gateway.pid) - before) * 1_000) / answered;
  gateway.kill('SIGTERM');
  await new Promise((resolve) => gateway.once('exit', resolve));
  rmSync(folder, { recursive: true });
  return { rate: answered / seconds, cpuMs };
}

async function measure() {
  const server = start('server');
  const port = await answerOf(server);
  const rows = values.workers.split(',').map((count) => [`${count} worker(s)`, Number(count), undefined]);
  const sharedState = { url: values.redis, pool: 'bench', endpointConcurrency: 32, replicas: 2 };
  if (values.redis !== undefined) rows.push(['2 workers through Redis', 2, sharedState]);
  let first;
  for (const [name, count, shared] of rows) {
    const { rate, cpuMs } = await run(port, count, shared);
    first ??= rate;
    console.log(
      `${name.padEnd(24)} ${rate.toFixed(0).padStart(7)}/s  CPU ${cpuMs.toFixed(3)} ms a request  speed-up ${(rate / first).toFixed(2)}`,
    );
  }
  server.kill();
}

if (values.role === 'server') serve();
else if (values.role === 'load') process.send?.(await load(values.url));
else await measure();
