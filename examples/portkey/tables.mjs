// The two runs as Markdown, and whether flow control helped.

const seconds = (ms) => (ms === undefined ? '-' : `${(ms / 1000).toFixed(2)} s`);

/** Of sorted values; the one that has this share of them at or below it. */
function quantile(values, share) {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1];
}

function summary(records) {
  const waits = records.flatMap(({ firstTokenMs }) => firstTokenMs ?? []);
  const count = (...results) => records.filter(({ result }) => results.includes(result)).length;
  return {
    sent: records.length,
    completed: count('completed'),
    inTime: records.filter(
      ({ result, tenant, firstTokenMs }) => result === 'completed' && firstTokenMs <= tenant.ttftTargetMs,
    ).length,
    refused: count('429', '503'),
    left: count('gave up', 'unfinished', 'failed'),
    median: quantile(waits, 0.5),
    p95: quantile(waits, 0.95),
  };
}

const of = (run, id) => summary(run.records.filter(({ tenant }) => tenant.id === id));

export function tables(before, after) {
  const ids = [...new Set(before.records.map(({ tenant }) => tenant.id))].sort();
  const pair = (a, b) => `${a} → ${b}`;
  const rows = ids.map((id) => {
    const [was, is] = [of(before, id), of(after, id)];
    const cells = [
      was.sent,
      pair(was.inTime, is.inTime),
      pair(seconds(was.median), seconds(is.median)),
      pair(seconds(was.p95), seconds(is.p95)),
      pair(was.refused, is.refused),
      pair(was.left, is.left),
    ];
    return `| ${id} | ${cells.join(' | ')} |`;
  });
  return `| tenant | sent | completed, first token in time | median first token | 95th percentile | 429 and 503 | gave up or cut off |
|---|---|---|---|---|---|---|
${rows.join('\n')}

| model servers | Portkey as it is | with flow control |
|---|---|---|
| most requests queued in one of them | ${before.load.mostWaiting} | ${after.load.mostWaiting} |
| mean of it | ${before.load.meanWaiting.toFixed(1)} | ${after.load.meanWaiting.toFixed(1)} |
| preemptions | ${before.load.preemptions} | ${after.load.preemptions} |
`;
}

/** The polite tenant's answers come in time more often, and the servers' queues are shorter. */
export function isBetter(before, after) {
  return of(after, 'polite').inTime > of(before, 'polite').inTime && after.load.mostWaiting < before.load.mostWaiting;
}
