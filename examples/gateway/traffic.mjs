// @ts-check
// The clients, in a process of their own: sends what tenants.mjs, burst.mjs or mixes.mjs has scheduled, when it is due,
// whatever became of earlier requests (open loop), and measures from the instant a request was due. One record per
// request goes to the parent at the end.

import { Agent, request } from 'node:http';
import { parseArgs } from 'node:util';
import { burst } from './burst.mjs';
import { mixed } from './mixes.mjs';
import { obeyParent } from './processes.mjs';
import { schedule } from './tenants.mjs';

/** @import { Arrival } from './tenants.mjs' */
/** @import { IncomingMessage } from 'node:http' */

/**
 * @typedef {object} RequestRecord
 * @property {string} tenant
 * @property {'completed' | 'dropped' | 'cut short' | 'gave up' | 'unfinished' | 'failed'} result Dropped: refused by
 * the gateway, with a
 *   reason. Cut short: the answer had begun, and the connection broke.
 * @property {string} [reason] Status and reason of a drop or failure.
 * @property {number} [dueMs] When it was due, since the first instant of the schedule.
 * @property {number} [ttftMs] From due to first token; absent if none came.
 * @property {number} [perTokenMs] Mean time between tokens.
 * @property {number} waitedMs From due to the end, however it ended.
 * @property {number} tokens Output tokens received.
 */

const { values: args } = parseArgs({
  options: {
    url: { type: 'string' },
    scenario: { type: 'string', default: 'overload' },
    seed: { type: 'string' },
    seconds: { type: 'string' },
    drain: { type: 'string' },
    mix: { type: 'string' },
    load: { type: 'string' },
  },
});
const completionsUrl = new URL('/v1/completions', args.url);
const [seed, lengthMs] = [Number(args.seed), Number(args.seconds) * 1_000];
/** @type {Record<string, () => Arrival[]>} */
const scenarios = {
  overload: () => schedule(seed, lengthMs),
  burst: () => burst(seed),
  mixed: () => mixed(seed, lengthMs, String(args.mix), Number(args.load)),
};
const arrivals = scenarios[args.scenario]?.() ?? [];
const agent = new Agent({ keepAlive: true });
const filler = 'lorem ipsum dolor sit amet, '.repeat(1_000);

/** @type {RequestRecord[]} */
const records = [];
/** @type {Set<() => void>} */
const cutOffs = new Set();
const counts = { total: arrivals.length, sent: 0, streaming: 0, completed: 0, dropped: 0 };

/** @param {Arrival} arrival @param {number} dueAtMs */
function send(arrival, dueAtMs) {
  const { tenant, promptTokens, outputTokens } = arrival;
  let firstTokenAtMs = 0;
  let lastTokenAtMs = 0;
  let tokens = 0;
  let isSettled = false;

  /** @param {RequestRecord['result']} result @param {string} [reason] */
  function settle(result, reason) {
    if (isSettled) return;
    isSettled = true;
    clearTimeout(patience);
    cutOffs.delete(cutOff);
    const waitedMs = performance.now() - dueAtMs;
    records.push({
      tenant: tenant.id,
      result,
      dueMs: arrival.atMs,
      waitedMs,
      tokens,
      ...(reason && { reason }),
      ...(tokens > 0 && { ttftMs: firstTokenAtMs - dueAtMs }),
      ...(tokens > 1 && { perTokenMs: (lastTokenAtMs - firstTokenAtMs) / (tokens - 1) }),
    });
    if (tokens > 0) counts.streaming -= 1;
    if (result === 'completed' || result === 'dropped') counts[result] += 1;
    if (result !== 'completed' && result !== 'dropped') outgoing.destroy();
  }
  const cutOff = () => settle('unfinished');
  const patience = setTimeout(() => settle('gave up'), tenant.patienceMs - (performance.now() - dueAtMs));
  cutOffs.add(cutOff);
  counts.sent += 1;

  const outgoing = request(completionsUrl, {
    method: 'POST',
    agent,
    headers: {
      'content-type': 'application/json',
      'x-gateway-inference-fairness-id': tenant.id,
      'x-gateway-inference-objective': tenant.objective,
      'x-slo-ttft-ms': tenant.ttftTargetMs,
    },
  });
  outgoing.on('error', (error) => settle('failed', error.message));
  outgoing.once('response', (/** @type {IncomingMessage} */ answer) => {
    answer.on('error', () => settle('cut short'));
    if (answer.statusCode !== 200) {
      const reason = answer.headers['x-llm-d-request-dropped-reason'];
      answer
        .resume()
        .once('end', () =>
          settle(reason ? 'dropped' : 'failed', `${answer.statusCode} ${reason ?? 'without a reason'}`),
        );
      return;
    }
    let rest = '';
    let isDone = false;
    answer.once('end', () =>
      isDone && tokens === outputTokens ? settle('completed') : settle('failed', 'not the whole answer'),
    );
    answer.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
      const pieces = (rest + text).split('\n\n');
      rest = pieces.pop() ?? '';
      // A gateway that makes it wait says so by comments.
      const events = pieces.filter((piece) => piece.startsWith('data:'));
      if (events.length === 0) return;
      lastTokenAtMs = performance.now();
      if (tokens === 0) {
        firstTokenAtMs = lastTokenAtMs;
        counts.streaming += 1;
        clearTimeout(patience);
      }
      isDone = events.at(-1) === 'data: [DONE]';
      tokens += events.length - Number(isDone);
    });
  });
  const body = {
    model: 'default-model',
    prompt: filler.slice(0, promptTokens * 4),
    max_tokens: outputTokens,
    ignore_eos: true,
    stream: true,
  };
  outgoing.end(JSON.stringify(body));
}

async function run() {
  const startedAtMs = performance.now();
  const progress = setInterval(
    () => process.send?.({ type: 'progress', elapsedMs: performance.now() - startedAtMs, ...counts }),
    250,
  );
  for (const arrival of arrivals) {
    const dueAtMs = startedAtMs + arrival.atMs;
    const earlyMs = dueAtMs - performance.now();
    if (earlyMs > 0) await sleep(earlyMs);
    send(arrival, dueAtMs);
  }
  const endsAtMs = startedAtMs + (arrivals.at(-1)?.atMs ?? 0) + Number(args.drain) * 1_000;
  while (cutOffs.size > 0 && performance.now() < endsAtMs) await sleep(50);
  for (const cutOff of [...cutOffs]) cutOff();
  clearInterval(progress);
  process.send?.({ type: 'records', records, elapsedMs: performance.now() - startedAtMs });
}

/** @param {number} delayMs */
function sleep(delayMs) {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}

obeyParent();
await run();
