/** Longest waits, outcomes over time, endpoints. */
import type { FrameEndpoint, FrameWait, InspectorFrame } from '../../frame.js';
import { byId, count, list, make, makeSvg, mark, more, parts, rate, set, share, tell, time, write } from './dom.js';

function showWait(row: HTMLElement, wait: FrameWait): void {
  const [waited, who, why] = parts(row);
  write(waited, time(wait.waitedMs));
  write(who?.firstChild, wait.flow);
  write(who?.lastChild, `priority ${wait.priority}`);
  write(why, wait.why);
}

export function showWaits(frame: InspectorFrame): void {
  const makeWait = (): HTMLElement =>
    make('li', '', make('span', 'time'), make('span', 'who', make('span'), make('small')), make('span', 'why'));
  list(byId('waits'), frame.slowest, (_, index) => String(index), makeWait, showWait);
  byId('no-waits').hidden = frame.slowest.length > 0;
}

const kinds = ['dispatched', 'rejected', 'evicted'] as const;
const chartHeight = 90;
const chartWidth = 300;

interface Bar {
  readonly kind: string;
  readonly index: number;
  readonly y: number;
  readonly height: number;
}

function barsOf(buckets: InspectorFrame['outcomes']['buckets'], peak: number): Bar[] {
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
  tell(
    chart,
    'aria-label',
    `Of the last five minutes: ${kinds.map((name, kind) => `${total(kind)} ${name}`).join(', ')}`,
  );
}

function makeTotal([type]: readonly [string, number]): HTMLElement {
  const kind = type.startsWith('Evicted') ? 'evicted' : type.startsWith('Rejected') ? 'rejected' : 'dispatched';
  const swatch = make('span', `swatch ${kind}`);
  swatch.setAttribute('aria-hidden', 'true');
  return make('div', '', make('dt', '', swatch, ` ${type}`), make('dd'));
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
  revoked: 'void while they waited',
  'max-bands': 'no band for their priority',
  'ttl-expired': 'their time was up',
  'no-endpoints': 'there was no endpoint',
  cancelled: 'the clients left',
  'shutting-down': 'the controller closes',
};

function showReasons({ outcomes: { reasons, bucketMs } }: InspectorFrame): void {
  byId('reasons-section').hidden = bucketMs === 0 || reasons.length === 0;
  list(
    byId('reasons'),
    reasons,
    ({ reason }) => reason,
    ({ reason }) => make('div', '', make('dt', '', reasonWords[reason], ' ', make('small', '', reason)), make('dd')),
    (row, { requests }) => write(row.lastChild, count(requests)),
  );
}

export function showTotals(frame: InspectorFrame): void {
  showReasons(frame);
  const rows = Object.entries(frame.outcomes.totals);
  list(
    byId('totals'),
    rows,
    ([type]) => type,
    makeTotal,
    (row, [, number]) => write(row.lastChild, count(number)),
  );
}

function makeEndpoint(): HTMLElement {
  const label = (text: string): HTMLElement => make('div', 'row', make('span', '', text), make('b'));
  const meter = make('div', 'meter', make('div'));
  const range = { role: 'meter', 'aria-valuemin': '0', 'aria-valuemax': '100', 'aria-valuenow': '0' };
  for (const [name, value] of Object.entries(range)) meter.setAttribute(name, value);
  const badge = make('span', 'badge');
  return make(
    'li',
    '',
    make('div', 'name', make('span'), badge),
    label('seats'),
    label('KV cache'),
    meter,
    label('its queue'),
  );
}

function showEndpoint(card: HTMLElement, endpoint: FrameEndpoint): void {
  const [name, seats, usage, meter, queue] = parts(card) as [
    HTMLElement,
    HTMLElement,
    HTMLElement,
    HTMLElement,
    HTMLElement,
  ];
  const used = endpoint.kvCacheUsage ?? 0;
  write(name.firstChild, endpoint.name);
  write(name.lastElementChild, endpoint.trouble ?? '');
  (name.lastElementChild as HTMLElement).hidden = endpoint.trouble === null;
  write(
    seats.lastChild,
    endpoint.seats === null ? count(endpoint.inFlight) : `${count(endpoint.inFlight)} of ${count(endpoint.seats)}`,
  );
  usage.hidden = endpoint.kvCacheUsage === null;
  queue.hidden = endpoint.waitingQueueSize === null;
  write(usage.lastChild, share(used));
  meter.hidden = endpoint.kvCacheUsage === null;
  mark(meter, 'high', used > 0.8);
  set(meter, '--share', Math.min(used, 1));
  tell(meter, 'aria-valuenow', Math.round(used * 100));
  tell(meter, 'aria-label', `KV cache in use on ${endpoint.name}`);
  write(queue.lastChild, count(endpoint.waitingQueueSize ?? 0));
}

export function showEndpoints(frame: InspectorFrame): void {
  byId('endpoints-section').hidden = frame.endpoints.length === 0;
  list(byId('endpoints'), frame.endpoints, (endpoint) => endpoint.name, makeEndpoint, showEndpoint);
  more('other-endpoints', frame.otherEndpoints, 'endpoint');
}
