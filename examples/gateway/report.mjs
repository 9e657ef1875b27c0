// @ts-check
// Turns records into numbers, numbers into tables, and two runs into a verdict. Pure.
// Waits are never hidden by survivors: a request that never got a token counts with the time it waited in vain; only
// requests that the gateway refused at once, and so did not let wait, are left out of the percentiles.

import { tenants } from './tenants.mjs';

/** @import { RequestRecord } from './traffic.mjs' */

/**
 * @typedef {object} TenantSummary
 * @property {string} id
 * @property {number} sent
 * @property {number} completed
 * @property {number} good Completed, and the first token came within the tenant's target.
 * @property {number[]} ttftMs p50, p95, p99.
 * @property {number} perTokenMs Median, of completed requests.
 * @property {Record<string, number>} lost What became of the rest.
 */

/** @typedef {{ records: readonly RequestRecord[], elapsedMs: number, preemptions: number, recomputedTokens: number, promptTokens: number }} Run */
/** @typedef {{ tenants: TenantSummary[], sent: number, good: number, tokensPerSecond: number }} Summary */

/**
 * Nearest rank: the smallest value that p percent of all are not above; NaN of nothing. @param {readonly number[]}
 * values @param {number} p
 */
export function percentile(values, p) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((p / 100) * sorted.length) - 1)] ?? Number.NaN;
}

/**
 * How long the first tokens took, ms; of those who waited in vain, how long they did.
 * @param {readonly RequestRecord[]} records
 */
export function waitsOf(records) {
  return records.filter(({ reason }) => !reason?.startsWith('429')).map(({ ttftMs, waitedMs }) => ttftMs ?? waitedMs);
}

/** @param {Run} run @returns {Summary} */
export function summarize({ records, elapsedMs }) {
  const summaries = tenants.map(({ id, ttftTargetMs }) => {
    const own = records.filter(({ tenant }) => tenant === id);
    const completed = own.filter(({ result }) => result === 'completed');
    const waits = waitsOf(own);
    /** @type {Record<string, number>} */
    const lost = {};
    for (const { result, reason } of own) {
      if (result === 'completed') continue;
      const name = result === 'dropped' ? String(reason) : [result, reason].filter(Boolean).join(': ');
      lost[name] = (lost[name] ?? 0) + 1;
    }
    return {
      id,
      sent: own.length,
      completed: completed.length,
      good: completed.filter(({ ttftMs = Number.POSITIVE_INFINITY }) => ttftMs <= ttftTargetMs).length,
      ttftMs: [50, 95, 99].map((p) => percentile(waits, p)),
      perTokenMs: percentile(
        completed.flatMap(({ perTokenMs }) => perTokenMs ?? []),
        50,
      ),
      lost,
    };
  });
  const completedTokens = records.reduce((sum, { result, tokens }) => sum + (result === 'completed' ? tokens : 0), 0);
  return {
    tenants: summaries,
    sent: records.length,
    good: summaries.reduce((sum, { good }) => sum + good, 0),
    tokensPerSecond: completedTokens / (elapsedMs / 1_000),
  };
}

/** @param {string} title @param {Run} run */
export function renderRun(title, run) {
  const summary = summarize(run);
  const header = [
    'tenant',
    'sent',
    'completed',
    'on time',
    'target',
    'TTFT p50',
    'p95',
    'p99',
    'per token',
    'not completed',
  ];
  const rows = summary.tenants.flatMap((tenant, index) => {
    const [lost = '-', ...moreLost] = Object.entries(tenant.lost).map(([name, count]) => `${count} × ${name}`);
    const cells = [
      tenant.id,
      `${tenant.sent}`,
      `${tenant.completed}`,
      `${tenant.good} (${percent(tenant.good, tenant.sent)})`,
      seconds(tenants[index]?.ttftTargetMs ?? Number.NaN),
      ...tenant.ttftMs.map(seconds),
      `${tenant.perTokenMs.toFixed(0)} ms`,
      lost,
    ];
    return [cells, ...moreLost.map((more) => [...cells.slice(1).map(() => ''), more])];
  });
  const recomputed = percent(run.recomputedTokens, run.promptTokens + run.recomputedTokens);
  return [
    title,
    '',
    ...table(header, rows, [0, header.length - 1]),
    '',
    `all tenants: ${summary.good} of ${summary.sent} on time; ${summary.tokensPerSecond.toFixed(0)} output tokens/s, of completed requests`,
    `servers: ${run.preemptions} preemptions; ${recomputed} of the prefill repeated what a preemption had thrown away`,
  ]
    .map((text) => `  ${text}`.trimEnd())
    .join('\n');
}

/**
 * The lines of a table; figures stand to the right.
 * @param {readonly string[]} header
 * @param {readonly (readonly string[])[]} rows
 * @param {readonly number[]} textColumns
 */
export function table(header, rows, textColumns) {
  const widths = header.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)));
  return [header, widths.map((width) => '-'.repeat(width)), ...rows].map((cells) =>
    widths
      .map((width, column) =>
        textColumns.includes(column) ? (cells[column] ?? '').padEnd(width) : (cells[column] ?? '').padStart(width),
      )
      .join('  ')
      .trimEnd(),
  );
}

/**
 * Did it help? By a wide margin, or it does not count: noise on a busy machine must not decide.
 * @param {Run} without
 * @param {Run} withIt
 * @returns {{ isBetter: boolean, sentence: string, failures: string[] }}
 */
export function verdict(without, withIt) {
  const [before, after] = [summarize(without), summarize(withIt)];
  const [premium, polite] = before.tenants.map((was, index) => ({
    was,
    is: /** @type {TenantSummary} */ (after.tenants[index]),
  }));
  if (!premium || !polite) throw new Error('expected the tenants of tenants.mjs');
  const p99 = { was: premium.was.ttftMs[2] ?? Number.NaN, is: premium.is.ttftMs[2] ?? Number.NaN };
  const share = { was: polite.was.good / polite.was.sent, is: polite.is.good / polite.is.sent };

  const failures = [];
  if (!(p99.is <= p99.was / 2))
    failures.push(`premium's TTFT p99 had to halve at least: ${seconds(p99.was)} became ${seconds(p99.is)}`);
  if (!(share.is >= share.was + 0.2)) {
    failures.push(
      `polite's share on time had to rise by 20 points at least: ${points(share.was)} became ${points(share.is)}`,
    );
  }
  if (!(after.good >= before.good))
    failures.push(`the total on time must not fall: ${before.good} became ${after.good}`);

  const worse = before.tenants.flatMap(({ id, good }, index) => {
    const now = after.tenants[index]?.good ?? 0;
    return now < good ? [`${id} (${now} on time instead of ${good})`] : [];
  });
  const sentence =
    `With flow control, on the same servers and the same ${before.sent} requests, premium's TTFT p99 went from ${seconds(p99.was)} to ` +
    `${seconds(p99.is)}, the polite tenant had ${points(share.is)} of its requests answered on time instead of ${points(share.was)}, and all tenants ` +
    `together ${after.good} instead of ${before.good}, at ${after.tokensPerSecond.toFixed(0)} instead of ${before.tokensPerSecond.toFixed(0)} tokens/s; ` +
    `who paid for it: ${worse.join(', ') || 'nobody'}.`;
  return { isBetter: failures.length === 0, sentence, failures };
}

/**
 * What sharing by tokens changed for the two tenants of one band, one of whom sends prompts several times as long.
 * @param {Run} byTurns
 * @param {Run} byTokens
 */
export function compareFairness(byTurns, byTokens) {
  const [turns, tokens] = [summarize(byTurns), summarize(byTokens)];
  const said = ['polite', 'noisy'].map((id) => {
    const [was, is] = [turns, tokens].map((summary) => summary.tenants.find((tenant) => tenant.id === id));
    if (!was || !is) throw new Error('expected the tenants of tenants.mjs');
    return `${id} had ${points(is.good / is.sent)} on time instead of ${points(was.good / was.sent)} (TTFT p95 ${seconds(is.ttftMs[1] ?? Number.NaN)} instead of ${seconds(was.ttftMs[1] ?? Number.NaN)})`;
  });
  return `Sharing a band by tokens instead of by turns (round robin): ${said.join(', ')}.`;
}

/** @param {number} part @param {number} whole */
function percent(part, whole) {
  return points(whole === 0 ? 0 : part / whole);
}

/** @param {number} ratio */
function points(ratio) {
  return `${(ratio * 100).toFixed(0)}%`;
}

/** @param {number} ms */
export function seconds(ms) {
  return Number.isNaN(ms) ? '-' : `${(ms / 1_000).toFixed(2)} s`;
}
