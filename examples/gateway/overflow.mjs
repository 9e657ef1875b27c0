// @ts-check
// Own servers first, paid ones after: the same traffic on two own servers alone, and with a provider to which chat may
// go once it has waited 200 ms. Cost and waits beside each other, and the simulator's prediction of the bill. Exits with
// 1 if chat did not get faster, if batch went to the provider, or if the prediction is wrong by more than a fifth.
// Options: --seconds 15, --seed 7.

import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { concurrencyDetector } from 'headgate';
import { simulate } from 'headgate/simulator';
import { startGatewayCommand } from './gateway-command.mjs';
import { Processes } from './processes.mjs';
import { percentile } from './report.mjs';
import { randomFrom } from './tenants.mjs';

/** @typedef {{ atMs: number, isChat: boolean, promptTokens: number, outputTokens: number }} Arrival */
/** @typedef {{ group: string, after?: string } | string} Turn */
/** @typedef {{ chatMs: number[], batchDone: number, failed: number, paid: Served, bill: number }} Run */
/** @typedef {{ requests: number, promptTokens: number, outputTokens: number, longestPrompt: number }} Served */

const { values: args } = parseArgs({
  options: { seconds: { type: 'string', default: '15' }, seed: { type: 'string', default: '7' } },
});
const seats = 4;
const tokenMs = 12;
/** Prompts of batch are longer, so that the provider's books tell what it got. */
const longestOfChat = 400;
/** Own servers cost the same whatever they do; the provider charges a million tokens. */
const price = { input: 3, output: 15 };
const processes = new Processes();

/** Batch jobs that are there from the start, and chat: a burst in the middle third. @returns {Arrival[]} */
function schedule() {
  const random = randomFrom(Number(args.seed));
  const between = (/** @type {number} */ least, /** @type {number} */ most) =>
    Math.round(least + random() * (most - least));
  const lengthMs = Number(args.seconds) * 1_000;
  /** @type {Arrival[]} */
  const arrivals = Array.from({ length: 20 }, () => {
    return { atMs: 0, isChat: false, promptTokens: between(longestOfChat + 1, 800), outputTokens: between(60, 120) };
  });
  for (let atMs = 0; ; ) {
    const perSecond = Math.abs(atMs / lengthMs - 0.5) < 1 / 6 ? 20 : 3;
    atMs += (-Math.log(1 - random()) / perSecond) * 1_000;
    if (atMs >= lengthMs) return arrivals;
    arrivals.push({ atMs, isChat: true, promptTokens: between(100, longestOfChat), outputTokens: between(30, 90) });
  }
}

/** @param {readonly Turn[]} chat */
const bandsOf = (chat) => [
  { priority: 100, endpoints: chat },
  { priority: -10, endpoints: ['own'] },
];

/** @param {readonly Turn[]} chat @param {readonly string[]} own @param {string} paid */
function startGateway(chat, own, paid) {
  return startGatewayCommand({
    upstreams: [
      ...own.map((url, index) => ({ id: `own-${index}`, url, labels: { group: 'own' } })),
      { id: 'paid', url: paid, weight: 8, labels: { group: 'paid' } },
    ],
    plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency: seats } }],
    flowControl: {
      saturationDetector: { pluginRef: 'concurrency-detector' },
      maxRequests: '1k',
      priorityBands: bandsOf(chat),
      defaultPriorityBand: { endpoints: ['own'] },
    },
    objectives: { chat: 100, batch: -10 },
    auth: {
      keys: [
        { key: 'chat', tenant: 'chat', objective: 'chat' },
        { key: 'batch', tenant: 'batch', objective: 'batch' },
      ],
    },
  });
}

/** @param {string} url @param {Agent} agent @param {Arrival} arrival @returns {Promise<{ tookMs: number, status: number }>} */
function send(url, agent, { isChat, promptTokens, outputTokens }) {
  const startedAtMs = performance.now();
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${isChat ? 'chat' : 'batch'}` };
    const settle = (/** @type {number} */ status) => resolve({ tookMs: performance.now() - startedAtMs, status });
    const outgoing = request(`${url}/v1/completions`, { method: 'POST', agent, headers }, (answer) => {
      answer.resume().once('close', () => settle(answer.statusCode ?? 0));
    });
    outgoing.once('error', () => settle(0));
    outgoing.end(JSON.stringify({ model: 'm', prompt: 'x'.repeat(promptTokens * 4), max_tokens: outputTokens }));
  });
}

/** @param {Pick<Served, 'promptTokens' | 'outputTokens'>} served */
const billOf = ({ promptTokens, outputTokens }) => (promptTokens * price.input + outputTokens * price.output) / 1e6;

/** @param {readonly Turn[]} chat @returns {Promise<Run>} */
async function play(chat) {
  const start = () => processes.startServer('slot-server.mjs', ['--token-ms', `${tokenMs}`]);
  const [one, two, paid] = await Promise.all([start(), start(), start()]);
  const gateway = await startGateway(chat, [one.url, two.url], paid.url);
  const agent = new Agent({ keepAlive: true });
  const startedAtMs = performance.now();
  const under = [];
  for (const arrival of schedule()) {
    await delay(Math.max(0, startedAtMs + arrival.atMs - performance.now()));
    under.push(send(gateway.url, agent, arrival).then((measured) => ({ ...measured, ...arrival })));
  }
  const measured = await Promise.all(under);
  agent.destroy();
  const served = await processes.ask(paid, 'served');
  await gateway.stop();
  await processes.stopAll();
  const done = measured.filter(({ status }) => status === 200);
  return {
    chatMs: done.filter(({ isChat }) => isChat).map(({ tookMs }) => tookMs),
    batchDone: done.filter(({ isChat }) => !isChat).length,
    failed: measured.length - done.length,
    paid: served,
    bill: billOf(served),
  };
}

/** The same in the simulator: servers of slots, with prices. @param {readonly Turn[]} chat */
async function predict(chat) {
  const rows = schedule().map(({ atMs, isChat, promptTokens, outputTokens }) => {
    const who = isChat ? { tenant: 'chat', priority: 100 } : { tenant: 'batch', priority: -10 };
    return { arrivalMs: atMs, ...who, promptTokens, outputTokens, serviceMs: outputTokens * tokenMs };
  });
  const result = await simulate({
    duration: `${args.seconds}s`,
    servers: [
      { model: 'slots', slots: seats, count: 2, name: 'own', labels: { group: 'own' }, price: {} },
      { model: 'slots', slots: seats, count: 8, name: 'paid', labels: { group: 'paid' }, price },
    ],
    traffic: [{ arrivals: { type: 'trace', rows } }],
    flow: { saturationDetector: concurrencyDetector({ maxConcurrency: seats }), bands: bandsOf(chat) },
  });
  const spent = result.servers.reduce((sum, { cost = 0 }) => sum + cost, 0);
  return { bill: spent, p99Ms: result.tenants.chat?.total.p99Ms ?? Number.NaN };
}

const money = (/** @type {number} */ amount) => amount.toFixed(4);
const ms = (/** @type {number} */ value) => `${Math.round(value)} ms`;

/** @param {string} name @param {Run} run @param {{ bill: number, p99Ms: number }} predicted */
function row(name, run, predicted) {
  const cells = [
    `${ms(percentile(run.chatMs, 50))}`,
    `${ms(percentile(run.chatMs, 99))}`,
    ms(predicted.p99Ms),
    `${run.batchDone}`,
    `${run.paid.requests}`,
    money(run.bill),
    money(predicted.bill),
  ];
  return `| ${name} | ${cells.join(' | ')} |`;
}

console.log(`Two own servers of ${seats} seats, one provider; ${args.seconds} s of chat over a batch, twice.\n`);
const own = ['own'];
const overflowing = ['own', { group: 'paid', after: '200ms' }];
const alone = await play(own);
const both = await play(overflowing);
const [aloneSimulated, bothSimulated] = [await predict(own), await predict(overflowing)];
console.log('| | chat p50 | p99 | p99 simulated | batch done | paid requests | bill | bill simulated |');
console.log('|---|---|---|---|---|---|---|---|');
console.log(row('own alone', alone, aloneSimulated));
console.log(row('own, then paid after 200 ms', both, bothSimulated));
const everything = schedule().filter(({ isChat }) => isChat);
const sum = (/** @type {'promptTokens' | 'outputTokens'} */ of) => everything.reduce((all, each) => all + each[of], 0);
const all = billOf({ promptTokens: sum('promptTokens'), outputTokens: sum('outputTokens') });
console.log(`\nAll of the chat at the provider would cost ${money(all)}.`);
const failures = [
  percentile(both.chatMs, 99) < percentile(alone.chatMs, 99) || 'chat did not get faster',
  alone.paid.requests === 0 || 'the provider got requests that may not go there',
  both.paid.longestPrompt <= longestOfChat || 'batch went to the provider',
  Math.abs(both.bill / bothSimulated.bill - 1) <= 0.2 || 'the prediction of the bill is wrong by more than a fifth',
  alone.failed + both.failed === 0 || 'requests failed',
].filter((verdict) => verdict !== true);
for (const failure of failures) console.error(`NOT GOOD ENOUGH: ${failure}.`);
process.exitCode = failures.length === 0 ? 0 : 1;
process.exit();
