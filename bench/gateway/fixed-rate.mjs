// Latency at a fixed rate, as agentgateway's authors measure it: fortio, 3,000 requests a second with 1 kB over 32
// connections for 30 s. What a proxy adds is its figure less that of the model server alone, in the same run.
// Their figures: https://agentgateway.dev, "Benchmarking Agentgateway vs LiteLLM Part 2: Fixed Throughput", 2026-06-26.
import { execFile, fork, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { format } from '../lib/tables.mjs';
import { firstMessage } from './subjects.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
/** The last one that the Go module proxy serves with all that it needs. */
const fortioVersion = 'v1.68.0';
const fortio = here('node_modules/.bin/fortio');
const percentiles = { p50Ms: 50, p99Ms: 99, p999Ms: 99.9 };

const filler = 'What should I read about queues, and why? '.repeat(22);
const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: filler }] });

/** False where neither fortio nor Go is there. */
function isInstalled() {
  if (existsSync(fortio)) return true;
  const env = { ...process.env, GOBIN: here('node_modules/.bin') };
  return spawnSync('go', ['install', `fortio.org/fortio@${fortioVersion}`], { env, stdio: 'inherit' }).status === 0;
}

async function load(port, headers, seconds) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  const file = join(folder, 'result.json');
  const allHeaders = { 'content-type': 'application/json', ...headers };
  try {
    await promisify(execFile)(
      fortio,
      [
        ...['load', '-quiet', '-qps', '3000', '-c', '32', '-t', `${seconds}s`, '-r', '0.00001', '-json', file],
        ...['-p', Object.values(percentiles).join(','), '-payload', body],
        ...Object.entries(allHeaders).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
        `http://127.0.0.1:${port}/v1/chat/completions`,
      ],
      { maxBuffer: 2 ** 26 },
    );
    return JSON.parse(readFileSync(file, 'utf8'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function figuresOf({ name, port, headers = {} }, seconds) {
  await load(port, headers, Math.ceil(seconds / 4));
  const result = await load(port, headers, seconds);
  const answers = Object.entries(result.RetCodes).filter(([status]) => status !== '200');
  if (answers.length > 0)
    throw new Error(`${name} answered ${answers.map(([status, count]) => `${status} × ${count}`)}`);
  const of = (percentile) =>
    1000 * result.DurationHistogram.Percentiles.find(({ Percentile }) => Percentile === percentile).Value;
  const latencies = Object.entries(percentiles).map(([figure, percentile]) => [figure, of(percentile)]);
  return { perSecond: result.ActualQPS, ...Object.fromEntries(latencies) };
}

export async function measureFixedRate(chosen, { quick }) {
  if (!isInstalled()) {
    console.log('fixed-rate did not run: it needs Go, which installs fortio');
    return [];
  }
  const seconds = quick ? 2 : 30;
  const model = fork(here('model-server.mjs'));
  try {
    const port = await firstMessage(model, 'the model server');
    const results = [
      { name: 'the model server alone', figures: await figuresOf({ name: 'model server', port }, seconds) },
    ];
    for (const subject of chosen) {
      const running = { headers: {}, ...(await subject.start(port)), name: subject.name };
      try {
        results.push({ name: subject.name, figures: await figuresOf(running, seconds) });
      } finally {
        running.stop();
      }
    }
    const [{ figures: alone }] = results;
    for (const { figures } of results.slice(1)) {
      for (const figure of Object.keys(percentiles)) figures[`${figure}-added`] = figures[figure] - alone[figure];
    }
    return results;
  } finally {
    model.kill();
  }
}

export function printFixedRate({ name, figures }) {
  const cells = Object.entries(figures).map(([figure, value]) => `${figure} ${format(value)}`);
  console.log(`${name.padEnd(24)} ${cells.join('  ')}`);
}
