// @ts-check
// Late binding against pushing: the same requests on the same three servers, once pushed round robin, once through
// `headgate gateway`, which keeps them until a server has a seat. One class of requests, below what the servers can do:
// what differs is where they wait. Exits with 1 if late binding did not shorten the tail. Options: --seconds 20, --rate
// 20, --seed 7.

import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startGatewayCommand } from './gateway-command.mjs';
import { Processes } from './processes.mjs';
import { percentile } from './report.mjs';
import { randomFrom } from './tenants.mjs';

/** @import { Running } from './processes.mjs' */
/** @typedef {{ atMs: number, promptTokens: number, outputTokens: number }} Arrival */
/** @typedef {{ ttftMs: number, totalMs: number, isWhole: boolean }} Measured */

const { values: args } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    rate: { type: 'string', default: '20' },
    seed: { type: 'string', default: '7' },
  },
});
const seatsPerServer = 12;
const processes = new Processes();
const filler = 'lorem ipsum dolor sit amet, '.repeat(1_000);

/** Poisson arrivals; one in seven is long, in prompt and answer. @returns {Arrival[]} */
function schedule() {
  const random = randomFrom(Number(args.seed));
  const between = (/** @type {number} */ least, /** @type {number} */ most) =>
    Math.round(least + random() * (most - least));
  /** @type {Arrival[]} */
  const arrivals = [];
  for (let atMs = 0; ; ) {
    atMs += (-Math.log(1 - random()) / Number(args.rate)) * 1_000;
    if (atMs >= Number(args.seconds) * 1_000) return arrivals;
    const isLong = random() < 1 / 7;
    arrivals.push(
      isLong
        ? { atMs, promptTokens: between(1_500, 2_500), outputTokens: between(200, 400) }
        : { atMs, promptTokens: between(100, 400), outputTokens: between(20, 60) },
    );
  }
}

/** @param {readonly Running[]} servers */
function startHeadgate(servers) {
  return startGatewayCommand({
    upstreams: servers.map(({ url }, index) => ({ id: `server-${index + 1}`, url })),
    plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency: seatsPerServer } }],
    flowControl: { saturationDetector: { pluginRef: 'concurrency-detector' }, maxRequests: '1k' },
  });
}

/** @param {string} url @param {Agent} agent @param {Arrival} arrival @returns {Promise<Measured>} */
function send(url, agent, { promptTokens, outputTokens }) {
  const startedAtMs = performance.now();
  return new Promise((resolve) => {
    let ttftMs = Number.NaN;
    let tail = '';
    const settle = () => {
      const totalMs = performance.now() - startedAtMs;
      resolve({ ttftMs: Number.isNaN(ttftMs) ? totalMs : ttftMs, totalMs, isWhole: tail.endsWith('data: [DONE]\n\n') });
    };
    const headers = { 'content-type': 'application/json' };
    const outgoing = request(`${url}/v1/completions`, { method: 'POST', agent, headers }, (answer) => {
      answer.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
        if (Number.isNaN(ttftMs)) ttftMs = performance.now() - startedAtMs;
        tail = (tail + text).slice(-20);
      });
      answer.once('close', settle);
    });
    outgoing.once('error', settle);
    const prompt = filler.slice(0, promptTokens * 4);
    outgoing.end(
      JSON.stringify({ model: 'default-model', prompt, max_tokens: outputTokens, ignore_eos: true, stream: true }),
    );
  });
}

/** @param {string} url */
async function measure(url) {
  const agent = new Agent({ keepAlive: true });
  const startedAtMs = performance.now();
  /** @type {Promise<Measured>[]} */
  const under = [];
  for (const arrival of schedule()) {
    await delay(Math.max(0, startedAtMs + arrival.atMs - performance.now()));
    under.push(send(url, agent, arrival));
  }
  const measured = await Promise.all(under);
  agent.destroy();
  return measured;
}

/** @param {string} name @param {readonly Measured[]} measured @param {number} preemptions */
function row(name, measured, preemptions) {
  const ttfts = measured.map(({ ttftMs }) => ttftMs);
  const seconds = (/** @type {number} */ p) => `${(percentile(ttfts, p) / 1_000).toFixed(2)} s`;
  const whole = measured.filter(({ isWhole }) => isWhole).length;
  return `| ${name} | ${whole} of ${measured.length} | ${seconds(50)} | ${seconds(95)} | ${seconds(99)} | ${preemptions} |`;
}

/** @param {readonly Running[]} servers */
async function preemptionsOf(servers) {
  const texts = await Promise.all(servers.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()));
  return texts.reduce((sum, text) => sum + Number(/^vllm:num_preemptions_total\S* (\d+)$/m.exec(text)?.[1] ?? 0), 0);
}

/** @param {(servers: readonly Running[]) => Promise<{ url: string, stop?(): Promise<unknown> }>} startFront */
async function play(startFront) {
  const servers = await Promise.all(
    [1, 2, 3].map((n) => processes.startServer('model-server.mjs', ['--name', `server-${n}`])),
  );
  const front = await startFront(servers);
  const measured = await measure(front.url);
  const preemptions = await preemptionsOf(servers);
  await front.stop?.();
  await processes.stopAll();
  return { measured, preemptions };
}

const pushed = await play((servers) =>
  processes.startServer(
    'round-robin.mjs',
    servers.map(({ url }) => url),
  ),
);
const bound = await play(startHeadgate);
console.log(`${pushed.measured.length} requests in ${args.seconds} s, three servers, ${seatsPerServer} seats each\n`);
console.log('| | completed | TTFT p50 | p95 | p99 | preemptions |\n|---|---|---|---|---|---|');
console.log(row('pushed, round robin', pushed.measured, pushed.preemptions));
console.log(row('late binding, `headgate gateway`', bound.measured, bound.preemptions));
const p99 = (/** @type {readonly Measured[]} */ measured) =>
  percentile(
    measured.map(({ ttftMs }) => ttftMs),
    99,
  );
const isBetter = p99(bound.measured) < p99(pushed.measured);
if (!isBetter) console.error('NOT GOOD ENOUGH: the 99th percentile of the time to first token is not shorter.');
process.exitCode = isBetter ? 0 : 1;
process.exit();
