/** Longest waits, outcomes over time, endpoints. */
import type { FrameEndpoint, FrameWait, InspectorFrame } from '../../frame.js';
import { byId, fill, list, make, makeSvg, mark, more, notice, part, rows, set, tell, terms, write } from './dom.js';
import { count, rate, share, time } from './figures.js';

function showWait(row: HTMLElement, { waitedMs, flow, priority, why }: FrameWait): void {
  fill(row, { time: time(waitedMs), flow, priority: `priority ${priority}`, why });
}

export function showWaits({ slowest }: InspectorFrame): void {
  rows('waits', slowest, (_, index) => String(index), 'wait', showWait);
}

const kinds = ['dispatched', 'rejected', 'evicted'] as const;
const chartHeight = 90;
const chartWidth = 300;

function barsOf(buckets: InspectorFrame['outcomes']['buckets'], peak: number) {
  return buckets.flatMap((bucket, index) => {
    if (bucket === null) return [{ kind: 'unknown', index, y: chartHeight - 2, height: 2 }];
    let y = chartHeight;
    return bucket.flatMap((number, kind) => {
      const height = (number / peak) * chartHeight;
      y -= height;
      return number > 0 ? [{ kind: kinds[kind] as string, index, y, height }] : [];
    });
  });
}

export function showChart(frame: InspectorFrame): void {
  const { buckets, bucketMs, waiting } = frame.outcomes;
  const peak = Math.max(1, ...buckets.map((bucket) => (bucket === null ? 0 : bucket[0] + bucket[1] + bucket[2])));
  const width = chartWidth / Math.max(buckets.length, 1);
  const chart = byId('chart');
  list(
    chart,
    barsOf(buckets, peak),
    (bar) => bar.kind + bar.index,
    (bar) => makeSvg('rect', { class: bar.kind }),
    (rect, bar) => {
      tell(rect, 'x', (bar.index * width + 0.4).toFixed(1));
      tell(rect, 'width', (width - 0.8).toFixed(1));
      tell(rect, 'y', bar.y.toFixed(1));
      tell(rect, 'height', Math.max(bar.height, 0.5).toFixed(1));
    },
  );
  write(byId('peak'), bucketMs === 0 ? 'no history is kept' : `peak ${rate(peak / (bucketMs / 1000))}/s`);
  const longest = Math.max(0, ...waiting.map((number) => number ?? 0));
  write(byId('queue-peak'), `longest queue ${count(longest)}`);
  const total = (kind: number): string => count(buckets.reduce((sum, bucket) => sum + (bucket?.[kind] ?? 0), 0));
  const totals = kinds.map((name, kind) => `${total(kind)} ${name}`);
  tell(chart, 'aria-label', `Of the last five minutes: ${totals.join(', ')}`);
}

/** What each reason means, in a few words; the word itself stands beside it. */
const reasonWords: Readonly<Record<InspectorFrame['outcomes']['reasons'][number]['reason'], string>> = {
  'global-max-requests': 'the whole queue was full',
  'global-max-bytes': 'the whole queue was full of bytes',
  'band-max-requests': 'their band was full',
  'band-max-bytes': 'their band was full of bytes',
  'flow-max-requests': 'their flow was full',
  'flow-max-bytes': 'their flow was full of bytes',
  refused: 'an admission policy refused them',
  overloaded: 'every worker was busy',
  displaced: 'others took their places',
  evicted: 'others took their seats',
  infeasible: 'too late for their deadlines',
  'over-quota': 'a quota had no room in time',
  'over-budget': 'a budget was used up',
  revoked: 'void while they waited',
  'max-bands': 'no band for their priority',
  'ttl-expired': 'their time was up',
  'no-endpoints': 'there was no endpoint',
  cancelled: 'the clients left',
  'shutting-down': 'the controller closes',
};

function swatchOf(outcome: string): HTMLElement {
  const kind = outcome.startsWith('Evicted') ? 'evicted' : outcome.startsWith('Rejected') ? 'rejected' : 'dispatched';
  const swatch = make('span', `swatch ${kind}`);
  swatch.setAttribute('aria-hidden', 'true');
  return swatch;
}

export function showTotals({ outcomes: { reasons, bucketMs, totals } }: InspectorFrame): void {
  byId('reasons-section').hidden = bucketMs === 0 || reasons.length === 0;
  terms(
    'reasons',
    reasons.map(({ reason, requests }) => [reason, count(requests)] as const),
    (reason) => [reasonWords[reason], ' ', make('small', '', reason)],
  );
  terms(
    'totals',
    Object.entries(totals).map(([outcome, requests]) => [outcome, count(requests)] as const),
    (outcome) => [swatchOf(outcome), ` ${outcome}`],
  );
}

function showEndpoint(card: HTMLElement, endpoint: FrameEndpoint): void {
  const { name, trouble, seats, inFlight, kvCacheUsage, waitingQueueSize, capacity } = endpoint;
  const used = kvCacheUsage ?? 0;
  fill(card, {
    name,
    seats: seats === null ? count(inFlight) : `${count(inFlight)} of ${count(seats)}`,
    usage: share(used),
    queued: count(waitingQueueSize ?? 0),
  });
  notice(part(card, 'badge'), trouble ?? '');
  part(card, 'meter').hidden = kvCacheUsage === null;
  part(card, 'cache').hidden = kvCacheUsage === null;
  part(card, 'queue').hidden = waitingQueueSize === null;
  showMeter(card, used, `KV cache in use on ${name}`);
  rows(part(card, 'dimensions'), capacity, ({ dimension }) => dimension, 'dimension', showDimension);
}

/** What requests hold of an endpoint, by the capacity ledger. */
const ledgerWords: Readonly<Record<FrameEndpoint['capacity'][number]['dimension'], string>> = {
  slots: 'slots held',
  unstarted: 'without a first token',
  prefill: 'tokens in prefill',
  kv: 'tokens of KV held',
};

function showDimension(row: HTMLElement, { dimension, used, limit }: FrameEndpoint['capacity'][number]): void {
  const name = ledgerWords[dimension];
  fill(row, { dimension: name, held: `${count(Math.round(used))} of ${count(Math.round(limit))}` });
  showMeter(row, used / limit, name);
}

function showMeter(row: HTMLElement, used: number, label: string): void {
  const meter = part(row, 'meter');
  mark(meter, 'high', used > 0.8);
  set(meter, '--share', Math.min(used, 1));
  tell(meter, 'aria-valuenow', Math.round(used * 100));
  tell(meter, 'aria-label', label);
}

export function showEndpoints(frame: InspectorFrame): void {
  byId('endpoints-section').hidden = frame.endpoints.length === 0;
  rows('endpoints', frame.endpoints, ({ name }) => name, 'endpoint', showEndpoint);
  more('other-endpoints', frame.otherEndpoints, 'endpoint');
}
