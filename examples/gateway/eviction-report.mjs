// @ts-check
// Two runs of the eviction demo as a table, and as a verdict: did premium wait less, and was every request accounted
// for? Pure. The books are kept twice, by the clients and by the gateway, and must say the same.

import { percentile, seconds, table, waitsOf } from './report.mjs';

/** @import { Played } from './play.mjs' */
/** @import { RequestRecord } from './traffic.mjs' */

/** @typedef {Pick<Played, 'records' | 'stats' | 'left' | 'total'>} EvictionRun */

/**
 * @typedef {object} Ends What became of requests. Lost is what should not happen: failed, given up, unfinished.
 * @property {number} sent
 * @property {number} completed
 * @property {number} evicted While they ran: told so by a 429, or by a stream that breaks off.
 * @property {number} dropped Refused, or waited too long.
 * @property {number} lost
 */

const evictedReason = '429 evicted-priority';

/** @param {readonly RequestRecord[]} records @returns {Ends} */
export function endsOf(records) {
  const ends = { sent: records.length, completed: 0, evicted: 0, dropped: 0, lost: 0 };
  for (const { result, reason } of records) {
    if (result === 'completed') ends.completed += 1;
    else if (result === 'cut short' || reason === evictedReason) ends.evicted += 1;
    else if (result === 'dropped') ends.dropped += 1;
    else ends.lost += 1;
  }
  return ends;
}

/** @param {EvictionRun} run */
function summarize({ records, stats, total }) {
  const premium = records.filter(({ tenant }) => tenant === 'premium');
  const batch = records.filter(({ tenant }) => tenant === 'batch');
  const waits = waitsOf(premium);
  return {
    premium: endsOf(premium),
    batch: endsOf(batch),
    ttftMs: [50, 95, 100].map((p) => percentile(waits, p)),
    p95Ms: percentile(waits, 95),
    evictions: stats?.evictedInFlight ?? 0,
    stopped: total('demo:aborted_requests_total'),
    lostTokens: batch.reduce((sum, { result, tokens }) => sum + (result === 'completed' ? 0 : tokens), 0),
  };
}

/** @param {EvictionRun} off @param {EvictionRun} on */
export function renderEviction(off, on) {
  const header = [
    'eviction',
    'premium TTFT p50',
    'p95',
    'max',
    'best-effort sent',
    'completed',
    'evicted',
    'dropped',
    'evictions counted',
  ];
  const rows = /** @type {const} */ ([
    ['off', off],
    ['on', on],
  ]).map(([name, run]) => {
    const { batch, ttftMs, evictions } = summarize(run);
    return [
      name,
      ...ttftMs.map(seconds),
      ...[batch.sent, batch.completed, batch.evicted, batch.dropped, evictions].map(String),
    ];
  });
  return table(header, rows, [0])
    .map((line) => `  ${line}`)
    .join('\n');
}

/**
 * What is wrong with the books of one run; nothing, if every request that was sent ended once and every seat came back.
 * @param {EvictionRun} run
 * @returns {string[]}
 */
export function auditBooks({ records, stats, left }) {
  if (!stats) return ['the gateway ran without flow control'];
  const { sent, completed, evicted, dropped, lost } = endsOf(records);
  const { enqueued, dispatched, rejected, released, evictedInFlight } = stats;
  const problems = [];
  /** @param {string} what @param {number} expected @param {number} got */
  const expectSame = (what, expected, got) => {
    if (expected !== got) problems.push(`${what}: expected ${expected}; got ${got}`);
  };
  expectSame('sent = completed + evicted + dropped', sent, completed + evicted + dropped);
  expectSame('requests lost', 0, lost);
  expectSame('requests that the gateway took in', sent, enqueued);
  expectSame('requests that got a seat', completed + evicted, dispatched);
  expectSame('requests that got none', dropped, rejected + stats.evicted);
  expectSame('seats given back', dispatched, released);
  expectSame('requests left behind in the gateway or a server', 0, left);
  // Not equal: an answer whose last byte is on its way is complete, although its seat was asked for.
  if (evicted > evictedInFlight)
    problems.push(`answers broken off: ${evicted}; the gateway evicted only ${evictedInFlight}`);
  return problems;
}

/**
 * By a wide margin, or it does not count: noise on a busy machine must not decide.
 * @param {EvictionRun} off
 * @param {EvictionRun} on
 * @returns {{ isGood: boolean, sentence: string, failures: string[] }}
 */
export function evictionVerdict(off, on) {
  const [before, after] = [summarize(off), summarize(on)];
  const failures = [
    ...auditBooks(off).map((problem) => `eviction off, the books: ${problem}`),
    ...auditBooks(on).map((problem) => `eviction on, the books: ${problem}`),
  ];
  const books =
    failures.length > 0 ? 'the books do not balance' : 'every request ended once, and every seat is free again';
  if (!(after.p95Ms <= before.p95Ms / 2)) {
    failures.push(`premium's TTFT p95 had to halve at least: ${seconds(before.p95Ms)} became ${seconds(after.p95Ms)}`);
  }
  if (before.evictions !== 0) failures.push(`nobody may be evicted while eviction is off: ${before.evictions} were`);
  if (after.evictions === 0) failures.push('somebody had to be evicted while eviction is on: nobody was');
  if (after.premium.completed !== after.premium.sent) {
    failures.push(
      `all of premium had to complete with eviction on: ${after.premium.completed} of ${after.premium.sent} did`,
    );
  }
  const sentence =
    `With eviction, premium's TTFT p95 went from ${seconds(before.p95Ms)} to ${seconds(after.p95Ms)}; the gateway evicted ${after.evictions} of ` +
    `${after.batch.sent} best-effort requests, the servers stopped computing ${after.stopped}, and ${after.lostTokens} tokens were generated ` +
    `in vain; ${books}.`;
  return { isGood: failures.length === 0, sentence, failures };
}
