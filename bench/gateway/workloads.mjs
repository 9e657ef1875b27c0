// The six workloads of GoModel's comparison of gateways: chat completions, Responses and messages, each as JSON and as a
// stream, 8,000 requests over 10 connections against a model server that answers at once; the highest rate of a sweep
// over connections; memory; the time from the start to the first answer. One gateway at a time.
// Their figures, on an AWS c7i.large (2 vCPU, 4 GiB):
// https://dev.to/s-bandy/benchmarking-ai-gateways-gomodel-vs-litellm-vs-portkey-vs-bifrost-5d98
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import { quantile } from '../lib/measure.mjs';
import { format } from '../lib/tables.mjs';
import { residentBytes } from './probe.mjs';
import { firstMessage } from './subjects.mjs';

const messages = [{ role: 'user', content: 'What should I read about queues, and why?' }];
const interfaces = {
  chat: ['/v1/chat/completions', { model: 'm', messages }],
  responses: ['/v1/responses', { model: 'm', input: messages }],
  messages: ['/v1/messages', { model: 'm', max_tokens: 64, messages }],
};
const workloads = Object.entries(interfaces).flatMap(([name, [path, body]]) => [
  { name, path, body: JSON.stringify(body) },
  { name: `${name}-stream`, path, body: JSON.stringify({ ...body, stream: true }) },
]);
const sweep = [10, 25, 50, 100];

async function answer(pool, headers, { path, body }) {
  const { statusCode, body: answered } = await pool.request({
    path,
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  for await (const _chunk of answered);
  return statusCode;
}

/** Sorted times of all requests, ms, and how many were answered in a second. Undefined if the gateway does not serve it. */
async function load({ port, headers }, workload, { requests, connections }) {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections });
  const times = new Float64Array(requests);
  let begun = 0;
  let isServed = true;
  const startedAtMs = performance.now();
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (begun < requests && isServed) {
        const index = begun++;
        const sentAtMs = performance.now();
        if ((await answer(pool, headers, workload)) !== 200) isServed = false;
        times[index] = performance.now() - sentAtMs;
      }
    }),
  );
  const perSecond = requests / ((performance.now() - startedAtMs) / 1000);
  await pool.destroy();
  return isServed ? { times: times.sort(), perSecond } : undefined;
}

/** Ms from the start of its process to its first answer. */
async function firstAnswer(subject, upstream) {
  const startedAtMs = performance.now();
  const running = { headers: {}, ...(await subject.start(upstream)) };
  const pool = new Pool(`http://127.0.0.1:${running.port}`);
  while ((await answer(pool, running.headers, workloads[0]).catch(() => 0)) !== 200) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await pool.destroy();
  return { running, coldStartMs: performance.now() - startedAtMs };
}

async function figuresOf(subject, upstream, requests) {
  const { running, coldStartMs } = await firstAnswer(subject, upstream);
  try {
    const figures = { coldStartMs };
    // A first pass is for the compiler.
    for (const workload of workloads) await load(running, workload, { requests: requests / 4, connections: 10 });
    for (const workload of workloads) {
      const measured = await load(running, workload, { requests, connections: 10 });
      if (measured === undefined) continue;
      figures[`${workload.name}-p50Ms`] = quantile(measured.times, 0.5);
      figures[`${workload.name}-p99Ms`] = quantile(measured.times, 0.99);
    }
    const rates = [];
    for (const connections of sweep)
      rates.push((await load(running, workloads[0], { requests, connections })).perSecond);
    return { ...figures, mostPerSecond: Math.max(...rates), mostBytes: residentBytes(running.pids, 'VmHWM') };
  } finally {
    running.stop();
  }
}

export async function measureWorkloads(chosen, { quick }) {
  const model = fork(fileURLToPath(new URL('model-server.mjs', import.meta.url)));
  try {
    const port = await firstMessage(model, 'the model server');
    const results = [];
    for (const subject of chosen)
      results.push({ name: subject.name, figures: await figuresOf(subject, port, quick ? 400 : 8000) });
    return results;
  } finally {
    model.kill();
  }
}

export function printWorkloads({ name, figures }) {
  console.log(name);
  for (const [figure, value] of Object.entries(figures)) console.log(`  ${figure.padEnd(24)} ${format(value)}`);
}
