// @ts-check
// The same traffic against the same servers, first without flow control, then with it; two tables and a verdict.
// Exits with 1 if flow control did not help. Options: --seconds 22, --seed 7.

import { parseArgs } from 'node:util';
import { Processes } from './processes.mjs';
import { renderRun, verdict } from './report.mjs';

/** @import { Run } from './report.mjs' */
/** @import { Running } from './processes.mjs' */

const { values: args } = parseArgs({ options: { seconds: { type: 'string', default: '22' }, seed: { type: 'string', default: '7' } } });
const drainSeconds = 6;
const processes = new Processes();

/** @param {'off' | 'on'} flowControl @returns {Promise<Run>} */
async function play(flowControl) {
  const names = ['server-1', 'server-2', 'server-3'];
  const servers = await Promise.all(names.map((name) => processes.startServer('model-server.mjs', ['--name', name])));
  const upstreams = servers.flatMap(({ url }, index) => ['--server', `${names[index]}=${url}`]);
  const gateway = await processes.startServer('gateway.mjs', [...upstreams, '--flow-control', flowControl, '--trust-flow-headers']);
  const { records, elapsedMs } = await sendTraffic(gateway, `flow control ${flowControl.padEnd(3)}`);
  const totals = await Promise.all(servers.map(readTotals));
  await processes.stopAll();
  const sum = (/** @type {string} */ name) => totals.reduce((total, values) => total + (values.get(name) ?? 0), 0);
  return {
    records,
    elapsedMs,
    preemptions: sum('vllm:num_preemptions_total'),
    recomputedTokens: sum('demo:recomputed_tokens_total'),
    promptTokens: sum('vllm:prompt_tokens_total'),
  };
}

/** @param {Running} gateway @param {string} title @returns {Promise<Pick<Run, 'records' | 'elapsedMs'>>} */
function sendTraffic(gateway, title) {
  const options = ['--url', gateway.url, '--seed', args.seed, '--seconds', args.seconds, '--drain', `${drainSeconds}`];
  const showProgress = progressLine(title);
  /** @type {Promise<Pick<Run, 'records' | 'elapsedMs'>>} */
  const done = new Promise((resolve) => {
    processes.start('traffic.mjs', options, (message) => {
      if (message.type === 'progress') showProgress(message);
      if (message.type === 'records') resolve(message);
    });
  });
  return Promise.race([done, processes.failed]).finally(() => process.stderr.isTTY && process.stderr.write('\r\x1b[K'));
}

/** One line that is written over on a terminal; elsewhere a line every five seconds. @param {string} title */
function progressLine(title) {
  let nextAtMs = 5_000;
  /** @param {{ elapsedMs: number, total: number, sent: number, streaming: number, completed: number, dropped: number }} progress */
  return ({ elapsedMs, total, sent, streaming, completed, dropped }) => {
    const text = `${title}  ${(elapsedMs / 1_000).toFixed(0).padStart(2)} s  sent ${sent}/${total}  streaming ${streaming}  completed ${completed}  refused ${dropped}`;
    if (process.stderr.isTTY) {
      process.stderr.write(`\r${text.slice(0, (process.stderr.columns ?? 80) - 1)}\x1b[K`);
    } else if (elapsedMs >= nextAtMs) {
      nextAtMs += 5_000;
      process.stderr.write(`${text}\n`);
    }
  };
}

/** The plain samples of a server's /metrics. @param {Running} server @returns {Promise<Map<string, number>>} */
async function readTotals({ url }) {
  const response = await fetch(`${url}/metrics`);
  const samples = (await response.text()).matchAll(/^([a-z_:]+)(?:\{.*\})? (\S+)$/gm);
  return new Map(Array.from(samples, ([, name = '', value]) => [name, Number(value)]));
}

try {
  console.log('Three model servers, four tenants, about 1.5 times the load that the servers can bear. Twice; this takes a minute.\n');
  const without = await play('off');
  console.log(`${renderRun('WITHOUT FLOW CONTROL', without)}\n`);
  const withIt = await play('on');
  console.log(`${renderRun('WITH FLOW CONTROL', withIt)}\n`);
  const { isBetter, sentence, failures } = verdict(without, withIt);
  console.log(sentence);
  for (const failure of failures) console.error(`NOT GOOD ENOUGH: ${failure}.`);
  process.exit(isBetter ? 0 : 1);
} catch (error) {
  console.error(error);
  process.exit(1);
}
