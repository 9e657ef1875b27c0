// @ts-check
// Chats beside long prompts on two real servers whose KV cache is what is scarce: the capacity ledger with one
// configuration for every mix, beside the number of requests that does best in each mix, and beside the reference's
// utilization detector. Exits with 1 where the ledger does not keep its promise.
// Options: --mix chats,half,long --load 1.2,1.5,2 --limits 4,6,8,12,16,24 --seconds 20 --seed 7.

import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { defaultEngine } from './engine.mjs';
import { startGatewayCommand } from './gateway-command.mjs';
import { mixes } from './mixes.mjs';
import { Processes } from './processes.mjs';
import { percentile, waitsOf } from './report.mjs';

/** @import { RequestRecord } from './traffic.mjs' */
/** @typedef {{ p50Ms: number, p99Ms: number, tokensPerSecond: number, preempted: number, cache: number }} Measured */

const { values: args } = parseArgs({
  options: {
    mix: { type: 'string', default: Object.keys(mixes).join() },
    load: { type: 'string', default: '1.5' },
    limits: { type: 'string', default: '4,6,8,12,16,24' },
    seconds: { type: 'string', default: '20' },
    seed: { type: 'string', default: '7' },
  },
});
const processes = new Processes();
// Each gateway that is started hears of the end of this process.
process.setMaxListeners(0);
const { kvBlocks, blockTokens, maxBatchedTokens, maxNumSeqs } = defaultEngine;

const unbounded = { type: 'concurrency-detector', parameters: { maxConcurrency: 1_000 } };
const ledger = {
  plugins: [
    unbounded,
    {
      type: 'capacity-ledger',
      parameters: {
        slots: maxNumSeqs,
        prefillTokens: 3 * maxBatchedTokens,
        kvTokens: Math.floor(0.97 * kvBlocks * blockTokens),
        guaranteedFrom: 1_000,
        defaultOutputTokens: 120,
      },
    },
  ],
  detector: unbounded.type,
  constraintPluginRefs: ['capacity-ledger'],
};
const utilization = { plugins: [{ type: 'utilization-detector' }], detector: 'utilization-detector' };
/** @param {number} maxConcurrency */
const limit = (maxConcurrency) => ({
  plugins: [{ ...unbounded, parameters: { maxConcurrency } }],
  detector: unbounded.type,
});

/** @param {string} url @returns {Promise<Record<string, number>>} The server's figures by their names */
async function figuresOf(url) {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Object.fromEntries(
    [...text.matchAll(/^\w+:(\w+)\{model_name.*\} (\S+)$/gm)].map(([, n, v]) => [n, Number(v)]),
  );
}

/**
 * @param {{ plugins: readonly object[], detector: string, constraintPluginRefs?: readonly string[] }} gate
 * @param {string} mix @param {string} load @returns {Promise<Measured>}
 */
async function play({ plugins, detector, constraintPluginRefs = [] }, mix, load) {
  const servers = await Promise.all(
    [1, 2].map((n) => processes.startServer('model-server.mjs', ['--name', `gpu-${n}`])),
  );
  const gateway = await startGatewayCommand({
    upstreams: servers.map(({ url }, index) => ({ id: `gpu-${index}`, url })),
    scrape: { interval: '100ms' },
    auth: { anonymous: { tenant: 'anonymous', objective: 'long', maxPriority: 100, trusted: true } },
    plugins,
    objectives: { chat: 100, long: 0 },
    flowControl: {
      saturationDetector: { pluginRef: detector },
      constraintPluginRefs,
      maxRequests: '10k',
      defaultRequestTTL: '10m',
    },
  });
  const options = {
    scenario: 'mixed',
    url: gateway.url,
    seed: args.seed,
    seconds: args.seconds,
    drain: '0',
    mix,
    load,
  };
  /** @type {Promise<readonly RequestRecord[]>} */
  const ended = new Promise((resolve) => {
    processes.start(
      'traffic.mjs',
      Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]),
      ({ type, records }) => type === 'records' && resolve(records),
    );
  });
  const all = () => Promise.all(servers.map(({ url }) => figuresOf(url)));
  const sum = (/** @type {Record<string, number>[]} */ figures, /** @type {string} */ name) =>
    figures.reduce((total, each) => total + (each[name] ?? 0), 0);
  /** Once the queue stands: the first quarter is not measured. */
  const lengthMs = Number(args.seconds) * 1_000;
  const startedAtMs = performance.now();
  await delay(lengthMs / 4);
  const before = await all();
  const measuredFromMs = performance.now();
  /** @type {number[]} */
  const usage = [];
  while (performance.now() < startedAtMs + lengthMs - 200) {
    await delay(100);
    for (const figures of await all()) usage.push(figures.kv_cache_usage_perc ?? 0);
  }
  const after = await all();
  const measuredMs = performance.now() - measuredFromMs;
  const records = await ended;
  await gateway.stop();
  await processes.stopAll();
  const failed = records.filter(({ result }) => result !== 'completed' && result !== 'unfinished');
  if (failed.length > 0) throw new Error(`${failed.length} requests failed: ${JSON.stringify(failed[0])}`);
  const waits = waitsOf(records.filter(({ tenant, dueMs = 0 }) => tenant === 'chat' && dueMs >= lengthMs / 4));
  const grew = (/** @type {string} */ name) => sum(after, name) - sum(before, name);
  return {
    p50Ms: percentile(waits, 50),
    p99Ms: percentile(waits, 99),
    tokensPerSecond: ((grew('prompt_tokens_total') + grew('generation_tokens_total')) / measuredMs) * 1_000,
    preempted: sum(after, 'num_preemptions_total') / records.length,
    cache: usage.reduce((total, each) => total + each, 0) / usage.length,
  };
}

/** @param {string} name @param {Measured} measured */
function row(name, { p50Ms, p99Ms, tokensPerSecond, preempted, cache }) {
  const percents = [preempted, cache].map((part) => `${(100 * part).toFixed(1)} %`);
  const cells = [`${Math.round(p50Ms)} ms`, `${Math.round(p99Ms)} ms`, Math.round(tokensPerSecond), ...percents];
  return `| ${name} | ${cells.join(' | ')} |`;
}

/** @type {string[]} */
const failures = [];
console.log('Two servers; first token of chats, tokens that servers computed, preempted requests, use of the cache.\n');
console.log('| | p50 | p99 | tokens/s | preempted | KV cache |\n|---|---|---|---|---|---|');
for (const mix of args.mix.split(',')) {
  for (const load of args.load.split(',')) {
    const name = `${mix} × ${load}`;
    const own = await play(ledger, mix, load);
    console.log(row(`${name}: ledger`, own));
    const theirs = await play(utilization, mix, load);
    console.log(row(`${name}: utilization detector`, theirs));
    /** @type {Measured | undefined} */
    let best;
    for (const seats of args.limits.split(',').map(Number)) {
      const limited = await play(limit(seats), mix, load);
      console.log(row(`${name}: limit ${seats}`, limited));
      if (best === undefined || limited.tokensPerSecond > best.tokensPerSecond) best = limited;
    }
    for (const [what, other] of Object.entries({ 'the best limit': best, 'the utilization detector': theirs })) {
      if (other === undefined) continue;
      if (own.tokensPerSecond < 0.97 * other.tokensPerSecond) failures.push(`${name}: ${what} serves more`);
      if (own.p99Ms > 0.5 * other.p99Ms) failures.push(`${name}: not half of the p99 of ${what}`);
    }
    if (own.preempted > 0.01) failures.push(`${name}: the ledger lets more than 1 % be preempted`);
  }
}
for (const failure of failures) console.error(`NOT GOOD ENOUGH: ${failure}.`);
process.exitCode = failures.length === 0 ? 0 : 1;
process.exit();
