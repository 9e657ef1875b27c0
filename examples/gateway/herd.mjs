// @ts-check
// The herd: many requests arrive between two scrapes, while the last sample still says that the servers are idle.
// Simulated time and the demo's engines: exact, and over in a second. `node examples/gateway/herd.mjs` prints the table
// of docs/gateway.md.

import { pathToFileURL } from 'node:url';
import { EndpointPool, FlowController, utilizationDetector } from 'headgate';
import { ManualClock } from 'headgate/testing';
import { Engine } from './engine.mjs';
import { driveEngine } from './engine-loop.mjs';

/**
 * @typedef {object} HerdOptions
 * @property {boolean} lagCompensation
 * @property {number} [requests]
 * @property {number} [withinMs] They arrive evenly within this time, less than an interval.
 * @property {number} [scrapeMs] From question to question.
 * @property {number} [answerMs] From question to answer.
 */

/**
 * @typedef {object} Herd
 * @property {number} beforeSample Requests dispatched before a sample could tell of them.
 * @property {number} peakQueue The longest queue in any server.
 * @property {number} overshoot By how many requests it exceeded the threshold.
 * @property {number} preemptions
 * @property {number} finishedMs
 */

export const queueDepthThreshold = 5;
const [promptTokens, outputTokens] = [200, 40];
const names = ['server-1', 'server-2', 'server-3'];

/** @param {HerdOptions} options @returns {Promise<Herd>} */
export async function herd({ lagCompensation, requests = 500, withinMs = 40, scrapeMs = 50, answerMs = 5 }) {
  const clock = new ManualClock();
  const time = {
    nowMs: () => clock.now(),
    after: (/** @type {number} */ ms, /** @type {() => void} */ then) => void clock.setTimeout(then, ms),
  };
  const pool = new EndpointPool();
  const saturationDetector = utilizationDetector({ queueDepthThreshold, lagCompensation });
  const flow = new FlowController({ pool, saturationDetector, clock, defaultRequestTtl: 0 });
  const servers = new Map(names.map((name) => [name, startServer()]));
  let finished = 0;
  let beforeSample = 0;
  let peakQueue = 0;

  function startServer() {
    const engine = new Engine();
    return { engine, wake: driveEngine(engine, time) };
  }

  /** A sample is as old as its question. @param {string} name */
  function ask(name) {
    const { engine } = servers.get(name) ?? startServer();
    const sampledAtMs = clock.now();
    const sample = { waitingQueueSize: engine.waiting.length, runningRequests: engine.running.length };
    const kvCacheUsage = engine.usedBlocks / engine.options.kvBlocks;
    time.after(answerMs, () => pool.report(name, { ...sample, kvCacheUsage, sampledAtMs }));
    time.after(scrapeMs, () => ask(name));
  }

  async function send() {
    const outcome = await flow.enqueue({ byteSize: 1_000 }, { fairnessId: 'tenant' });
    if (outcome.type !== 'Dispatched') throw new Error(outcome.reason);
    const { lease } = outcome;
    if (clock.now() < scrapeMs + answerMs) beforeSample += 1;
    const { engine, wake } = servers.get(lease.endpoint?.id ?? '') ?? startServer();
    engine.submit(promptTokens, outputTokens, ({ state }) => {
      if (state !== 'finished') return;
      finished += 1;
      lease.release();
    });
    peakQueue = Math.max(peakQueue, engine.waiting.length);
    wake();
  }

  for (const name of names) {
    pool.add(name);
    ask(name);
  }
  clock.advance(answerMs);
  const arrivedAtMs = clock.now();
  for (let index = 0; index < requests; index += 1) time.after((index * withinMs) / requests, () => void send());
  while (finished < requests) {
    clock.advance(0.5);
    await new Promise(setImmediate); // whoever was dispatched goes on in a turn of its own
    for (const { engine } of servers.values()) peakQueue = Math.max(peakQueue, engine.waiting.length);
  }
  const preemptions = [...servers.values()].reduce((sum, { engine }) => sum + engine.totals.preemptions, 0);
  await flow.close();
  return {
    beforeSample,
    peakQueue,
    overshoot: Math.max(0, peakQueue - queueDepthThreshold),
    preemptions,
    finishedMs: Math.round(clock.now() - arrivedAtMs),
  };
}

async function print() {
  console.log('500 requests within 40 ms, scrapes every 50 ms, three servers, queueDepthThreshold 5\n');
  console.log(
    '| | dispatched before a sample | longest queue in a server | over the threshold | preemptions | all done after |',
  );
  console.log('|---|---|---|---|---|---|');
  for (const lagCompensation of [false, true]) {
    const { beforeSample, peakQueue, overshoot, preemptions, finishedMs } = await herd({ lagCompensation });
    const name = lagCompensation ? 'with lag compensation' : 'without';
    console.log(
      `| ${name} | ${beforeSample} | ${peakQueue} | ${overshoot} | ${preemptions} | ${(finishedMs / 1_000).toFixed(1)} s |`,
    );
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await print();
