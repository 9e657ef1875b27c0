// @ts-check
// Predicted against measured: the demo's model servers behind `headgate gateway`. The first half of the gateway's log
// calibrates a model of the servers, and `headgate simulate --from` predicts the second half from its arrivals alone.
// Options: --seconds 60, --rate 8, --servers 2, --seed 7, --log FILE to keep the log, --write for the figures of
// docs/capacity-planning.md.

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { calibrate, readTrace } from 'headgate/simulator';
import { defaultEngine } from './engine.mjs';
import { Processes } from './processes.mjs';
import { percentile } from './report.mjs';
import { randomFrom } from './tenants.mjs';

const { values: args } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    rate: { type: 'string', default: '8' },
    servers: { type: 'string', default: '2' },
    seed: { type: 'string', default: '7' },
    log: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});
const maxConcurrency = 16;
const processes = new Processes();
const folder = mkdtempSync(join(tmpdir(), 'headgate-capacity-'));
const command = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const filler = 'lorem ipsum dolor sit amet, '.repeat(1_000);
const page = new URL('../../docs/capacity-planning.md', import.meta.url);
const [opening, closing] = ['<!-- measured -->\n', '<!-- /measured -->'];
const gate = {
  plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency } }],
  saturationDetector: { pluginRef: 'concurrency-detector' },
};

/** @param {readonly string[]} urls */
async function startGateway(urls) {
  const file = join(folder, 'gateway.yaml');
  const upstreams = urls.map((url, index) => ({ id: `server-${index}`, url }));
  writeFileSync(file, JSON.stringify({ listen: { port: 0 }, log: { format: 'json' }, upstreams, ...gate })); // JSON is YAML as well
  const child = spawn(process.execPath, [command, 'gateway', '--config', file], {
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  process.once('exit', () => child.kill('SIGKILL'));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  let log = '';
  /** @type {Promise<string>} */
  const listening = new Promise((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
      log += text;
      const url = /"event":"listening",.*?"url":"([^"]+)"/.exec(log)?.[1];
      if (url) resolve(url);
    });
    child.once('exit', () => reject(new Error(`the gateway ended: ${log}`)));
  });
  return {
    url: await listening,
    async stop() {
      child.kill('SIGINT');
      await ended;
      return log;
    },
  };
}

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

/** @typedef {{ p50Ms: number, p95Ms: number }} Percentiles */

/**
 * @param {string} log @returns {{ model: Record<string, number | undefined>, fittedTo: number, predicted:
 * Record<string, Percentiles>, measured: import('headgate/simulator').TraceRow[] }}
 */
function predict(log) {
  const { rows } = readTrace(log);
  const half = (rows.at(-1)?.arrivalMs ?? 0) / 2;
  const count = Number(args.servers);
  const calibration = calibrate(
    rows.filter(({ arrivalMs }) => arrivalMs < half),
    { servers: count },
  );
  if (calibration === undefined) throw new Error('too few requests to calibrate by');
  // What the operator knows of the engine; its times come from the log alone.
  const { kvBlocks, blockTokens, maxNumSeqs, maxBatchedTokens } = defaultEngine;
  const known = { kvTokens: kvBlocks * blockTokens, blockTokens, maxSequences: maxNumSeqs, maxBatchedTokens };
  const plan = {
    duration: (rows.at(-1)?.arrivalMs ?? 0) + 1,
    warmUp: half,
    servers: [{ name: 'server', count, model: 'continuous-batching', ...known, ...calibration.model }],
    ...gate,
  };
  const [planFile, logFile] = [join(folder, 'plan.yaml'), join(folder, 'access.jsonl')];
  writeFileSync(planFile, JSON.stringify(plan));
  writeFileSync(logFile, log);
  const printed = execFileSync(process.execPath, [command, 'simulate', planFile, '--from', logFile, '--json'], {
    encoding: 'utf8',
  });
  const [result] = [JSON.parse(printed)].flat();
  const measured = rows.filter(({ arrivalMs }) => arrivalMs >= half);
  return { model: calibration.model, fittedTo: calibration.requests, predicted: result.all, measured };
}

/** @param {ReturnType<typeof predict>} prediction */
function report({ model, fittedTo, predicted, measured }) {
  const times = {
    'time to the first token': { of: predicted.ttft, values: measured.flatMap(({ ttftMs }) => ttftMs ?? []) },
    'time to the last token': { of: predicted.total, values: measured.flatMap(({ totalMs }) => totalMs ?? []) },
    'time for each further token': {
      of: predicted.perToken,
      values: measured.flatMap(({ totalMs = 0, ttftMs = 0, outputTokens = 1 }) =>
        outputTokens > 1 ? (totalMs - ttftMs) / (outputTokens - 1) : [],
      ),
    },
  };
  const rows = Object.entries(times).map(([name, { of, values }]) => {
    const cells = [50, 95].flatMap((percent) => {
      const [foretold = Number.NaN, found] = [percent === 50 ? of?.p50Ms : of?.p95Ms, percentile(values, percent)];
      const off = foretold / found - 1;
      const holds = Math.abs(off) <= (percent === 50 ? 0.15 : 0.25);
      return [
        `${foretold.toFixed(1)} ms`,
        `${found.toFixed(1)} ms`,
        `${(off * 100).toFixed(0)} %${holds ? '' : ' (**more**)'}`,
      ];
    });
    return `| ${name} | ${cells.join(' | ')} |`;
  });
  const fitted = Object.entries(model).map(
    ([name, value = Number.NaN]) => `\`${name}\` ${value.toPrecision(3)} (engine: ${trueValues[name]})`,
  );
  return [
    `${args.rate} requests a second for ${args.seconds} s on ${args.servers} servers, ${maxConcurrency} seats each; ${new Date().toISOString().slice(0, 10)}.`,
    `Calibrated by ${fittedTo} requests: ${fitted.join(', ')}.`,
    `${measured.length} requests predicted.`,
    '',
    '| | predicted p50 | measured p50 | off by | predicted p95 | measured p95 | off by |',
    '|---|---|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

/** What the engine of the demo really goes by. @type {Record<string, number>} */
const trueValues = {
  stepMs: defaultEngine.stepMs,
  decodeMs: defaultEngine.decodeSeqMs,
  kvTokenMs: defaultEngine.kvTokenMs,
  prefillTokenMs: defaultEngine.prefillTokenMs,
};

try {
  const servers = await Promise.all(
    Array.from({ length: Number(args.servers) }, (_, n) =>
      processes.startServer('model-server.mjs', ['--name', `server-${n}`]),
    ),
  );
  const gateway = await startGateway(servers.map(({ url }) => url));
  await sendAll(gateway.url);
  const log = await gateway.stop();
  await processes.stopAll();
  if (args.log !== undefined) writeFileSync(args.log, log);
  const text = report(predict(log));
  console.log(text);
  if (args.write) {
    const before = readFileSync(page, 'utf8');
    const [start, end] = [before.indexOf(opening) + opening.length, before.indexOf(closing)];
    writeFileSync(page, `${before.slice(0, start)}\n${text}\n${before.slice(end)}`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
