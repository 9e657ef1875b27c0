// Looks at one server: how many requests it answers under load, and how long one takes when there is no load.
import { fork } from 'node:child_process';
import { Agent, get } from 'node:http';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { quantile } from '../lib/measure.mjs';

const server = fileURLToPath(new URL('server.mjs', import.meta.url));
const connections = 50;

async function withServer(framework, variant, use) {
  const child = fork(server, [framework, variant]);
  try {
    const port = await new Promise((resolve, reject) => {
      child.once('message', resolve);
      child.once('exit', (code) => reject(new Error(`${framework} ${variant}: the server ended with exit code ${code}`)));
    });
    return await use(port);
  } finally {
    child.removeAllListeners('exit');
    child.kill();
  }
}

async function throughput(port, seconds) {
  const url = `http://127.0.0.1:${port}/v1/chat/completions`;
  await autocannon({ url, connections, duration: 1 });
  const { requests, non2xx, errors } = await autocannon({ url, connections, duration: seconds });
  if (non2xx > 0 || errors > 0) throw new Error(`${non2xx} responses were no success, ${errors} requests failed`);
  return requests.average;
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

/** Microseconds of single requests, sorted. */
async function latencies(port, count) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let i = 0; i < count / 4; i++) await once(agent, port);
  const samples = new Float64Array(count);
  for (let i = 0; i < count; i++) samples[i] = await once(agent, port);
  agent.destroy();
  return samples.sort();
}

/** @returns requests/s, and the median and the 99th percentile of single requests, µs */
export function probe(framework, variant, { seconds, singles }) {
  return withServer(framework, variant, async (port) => {
    const sorted = await latencies(port, singles);
    return { perSecond: await throughput(port, seconds), p50Us: quantile(sorted, 0.5), p99Us: quantile(sorted, 0.99) };
  });
}
