// Looks at servers side by side: how many requests they answer under load, what CPU time one takes, and how long one
// takes without load.
import { fork } from 'node:child_process';
import { Agent, get } from 'node:http';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { quantile } from '../lib/measure.mjs';

const server = fileURLToPath(new URL('server.mjs', import.meta.url));
const connections = 50;

function answerOf(child, what) {
  return new Promise((resolve, reject) => {
    const fail = (code) => reject(new Error(`${what}: the server ended with exit code ${code}`));
    child.once('exit', fail);
    child.once('message', (message) => {
      child.off('exit', fail);
      resolve(message);
    });
  });
}

async function start(framework, variant) {
  const what = `${framework} ${variant}`;
  const child = fork(server, [framework, variant]);
  const port = await answerOf(child, what);
  const cpuUs = () => {
    child.send('cpu');
    return answerOf(child, what);
  };
  return { variant, child, port, cpuUs, requests: 0, loadedSeconds: 0, loadedCpuUs: 0, singles: [] };
}

function load({ port }, seconds) {
  return autocannon({ url: `http://127.0.0.1:${port}/v1/chat/completions`, connections, duration: seconds });
}

/** One second of load. */
async function slice(one) {
  const before = await one.cpuUs();
  const { requests, duration, non2xx, errors } = await load(one, 1);
  if (non2xx > 0 || errors > 0) throw new Error(`${non2xx} responses were no success, ${errors} requests failed`);
  one.loadedCpuUs += (await one.cpuUs()) - before;
  one.requests += requests.total;
  one.loadedSeconds += duration;
}

function once(agent, port) {
  return new Promise((resolve, reject) => {
    const startedAtMs = performance.now();
    get({ agent, port, host: '127.0.0.1', path: '/v1/chat/completions' }, (response) => {
      response.resume();
      response.once('end', () => resolve((performance.now() - startedAtMs) * 1000));
    }).once('error', reject);
  });
}

/** Microseconds of single requests. */
async function latencies({ port }, count) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let i = 0; i < count / 4; i++) await once(agent, port);
  const samples = [];
  for (let i = 0; i < count; i++) samples.push(await once(agent, port));
  agent.destroy();
  return samples;
}

/**
 * Every server is up all the while, and they take turns of a second: whatever else the machine does meets all of them.
 * @returns by variant: requests/s, µs of CPU time per request, and the median and the 99th percentile of single
 * requests, µs
 */
export async function probe(framework, variants, { seconds, singles }) {
  const servers = [];
  try {
    for (const variant of variants) servers.push(await start(framework, variant));
    for (const one of servers) one.singles = Float64Array.from(await latencies(one, singles)).sort();
    for (const one of servers) await load(one, 2);
    for (let turn = 0; turn < seconds; turn++) {
      for (const one of turn % 2 === 0 ? servers : servers.toReversed()) await slice(one);
    }
  } finally {
    for (const { child } of servers) child.kill();
  }
  return Object.fromEntries(
    servers.map(({ variant, requests, loadedSeconds, loadedCpuUs, singles }) => [
      variant,
      {
        perSecond: requests / loadedSeconds,
        cpuUs: loadedCpuUs / requests,
        p50Us: quantile(singles, 0.5),
        p99Us: quantile(singles, 0.99),
      },
    ]),
  );
}
