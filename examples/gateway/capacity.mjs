// @ts-check
// Predicted against measured: the demo's model servers behind `headgate gateway`. The first half of the gateway's log
// calibrates a model of the servers, and the simulator predicts the second half from its arrivals alone.
// Options: --seconds 60, --rate 8, --servers 2, --seed 7, --log FILE to keep the log, --write for the figures of
// docs/capacity.md and the record that they are checked against, --again to compute by that record.

import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { readTrace } from 'headgate/simulator';
import { capacityReport, gate } from './capacity-report.mjs';
import { startGatewayCommand } from './gateway-command.mjs';
import { Processes } from './processes.mjs';
import { randomFrom } from './tenants.mjs';

const { values: args } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    rate: { type: 'string', default: '8' },
    servers: { type: 'string', default: '2' },
    seed: { type: 'string', default: '7' },
    log: { type: 'string' },
    write: { type: 'boolean', default: false },
    again: { type: 'boolean', default: false },
  },
});
const processes = new Processes();
const filler = 'lorem ipsum dolor sit amet, '.repeat(1_000);
const page = new URL('../../docs/capacity.md', import.meta.url);
const recordFile = new URL('capacity-record.csv', import.meta.url);
const [opening, closing] = ['<!-- measured -->\n', '<!-- /measured -->'];

/**
 * @param {string} url @param {Agent} agent @param {number} promptTokens @param {number} outputTokens @returns
 * {Promise<void>}
 */
function send(url, agent, promptTokens, outputTokens) {
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json' };
    const outgoing = request(`${url}/v1/completions`, { method: 'POST', agent, headers }, (answer) => {
      answer.resume().once('close', () => resolve());
    });
    outgoing.once('error', () => resolve());
    const prompt = filler.slice(0, promptTokens * 4);
    const stream = { stream: true, stream_options: { include_usage: true } };
    outgoing.end(
      JSON.stringify({ model: 'default-model', prompt, max_tokens: outputTokens, ignore_eos: true, ...stream }),
    );
  });
}

/** @param {string} url */
async function sendAll(url) {
  const random = randomFrom(Number(args.seed));
  const between = (/** @type {number} */ least, /** @type {number} */ most) =>
    Math.round(least + random() * (most - least));
  const agent = new Agent({ keepAlive: true });
  const startedAtMs = performance.now();
  /** @type {Promise<void>[]} */
  const under = [];
  for (let atMs = 0; ; ) {
    atMs += (-Math.log(1 - random()) / Number(args.rate)) * 1_000;
    if (atMs >= Number(args.seconds) * 1_000) break;
    await delay(Math.max(0, startedAtMs + atMs - performance.now()));
    under.push(send(url, agent, between(50, 800), between(20, 160)));
  }
  await Promise.all(under);
  agent.destroy();
}

/** @param {string} log @returns {string} CSV of what the report goes by */
function recordOf(log) {
  const { rows } = readTrace(log);
  const columns = /** @type {const} */ ([
    'arrivalMs',
    'queuedMs',
    'ttftMs',
    'totalMs',
    'promptTokens',
    'outputTokens',
    'server',
  ]);
  return [columns, ...rows.map((row) => columns.map((column) => row[column]))].map((cells) => `${cells}\n`).join('');
}

/** A record of a run: the requests that go through the gateway, and the log of it. */
async function measure() {
  const servers = await Promise.all(
    Array.from({ length: Number(args.servers) }, (_, n) =>
      processes.startServer('model-server.mjs', ['--name', `server-${n}`]),
    ),
  );
  const upstreams = servers.map(({ url }, index) => ({ id: `server-${index}`, url }));
  const gateway = await startGatewayCommand({ log: { format: 'json' }, upstreams, ...gate });
  await sendAll(gateway.url);
  const log = await gateway.stop();
  await processes.stopAll();
  if (args.log !== undefined) writeFileSync(args.log, log);
  return recordOf(log);
}

const before = readFileSync(page, 'utf8');
const [start, end] = [before.indexOf(opening) + opening.length, before.indexOf(closing)];
const [, dated = ''] = /; (\d{4}-\d\d-\d\d)\./.exec(before.slice(start, end)) ?? [];
const record = args.again ? readFileSync(recordFile, 'utf8') : await measure();
const [rate, seconds, servers] = [Number(args.rate), Number(args.seconds), Number(args.servers)];
const date = args.again ? dated : new Date().toISOString().slice(0, 10);
const text = capacityReport(readTrace(record).rows, { rate, seconds, servers, date });
console.log(text);
if (args.write) {
  writeFileSync(recordFile, record);
  writeFileSync(page, `${before.slice(0, start)}\n${text}\n${before.slice(end)}`);
}
process.exit();
