/** Page script: longest waits, outcomes over time, endpoints. */
export const charts: string = /* js */ `
function showWaits(frame) {
  const create = () => {
    const who = make('span', 'who', make('span'), make('small'));
    return make('li', '', make('span', 'time'), who, make('span', 'why'));
  };
  list(byId('waits'), frame.slowest, (wait, index) => String(index), create, (row, wait) => {
    const [waited, who, why] = row.children;
    write(waited, time(wait.waitedMs));
    write(who.firstChild, wait.flow);
    write(who.lastChild, 'priority ' + wait.priority);
    write(why, wait.why);
  });
  byId('no-waits').hidden = frame.slowest.length > 0;
}

const kinds = ['dispatched', 'rejected', 'evicted'];
const chartHeight = 90;

function showChart(frame) {
  const { buckets, bucketMs } = frame.outcomes;
  const sums = buckets.map((bucket) => (bucket === null ? 0 : bucket[0] + bucket[1] + bucket[2]));
  const peak = Math.max(1, ...sums);
  const width = 300 / buckets.length;
  const bars = [];
  buckets.forEach((bucket, index) => {
    if (bucket === null) {
      bars.push({ kind: 'unknown', index, y: chartHeight - 2, height: 2 });
      return;
    }
    let y = chartHeight;
    bucket.forEach((number, kind) => {
      const height = (number / peak) * chartHeight;
      y -= height;
      if (number > 0) bars.push({ kind: kinds[kind], index, y, height });
    });
  });
  const chart = byId('chart');
  list(chart, bars, (bar) => bar.kind + bar.index, (bar) => makeSvg('rect', { class: bar.kind }), (rect, bar) => {
    tell(rect, 'x', (bar.index * width + 0.4).toFixed(1));
    tell(rect, 'width', (width - 0.8).toFixed(1));
    tell(rect, 'y', bar.y.toFixed(1));
    tell(rect, 'height', Math.max(bar.height, 0.5).toFixed(1));
  });
  write(byId('peak'), 'peak ' + rate(peak / (bucketMs / 1000)) + '/s');
  const total = (kind) => count(buckets.reduce((sum, bucket) => sum + (bucket === null ? 0 : bucket[kind]), 0));
  tell(chart, 'aria-label', 'Of the last five minutes: ' + kinds.map((name, kind) => total(kind) + ' ' + name).join(', '));
}

function showTotals(frame) {
  const rows = Object.entries(frame.outcomes.totals);
  const create = ([type]) => {
    const swatch = make('span', 'swatch ' + (type.startsWith('Evicted') ? 'evicted' : type.startsWith('Rejected') ? 'rejected' : 'dispatched'));
    swatch.setAttribute('aria-hidden', 'true');
    return make('div', '', make('dt', '', swatch, ' ' + type), make('dd'));
  };
  list(byId('totals'), rows, ([type]) => type, create, (row, [, number]) => write(row.lastChild, count(number)));
}

function makeEndpoint() {
  const label = (text) => make('div', 'row', make('span', '', text), make('b'));
  const meter = make('div', 'meter', make('div'));
  for (const [name, value] of [['role', 'meter'], ['aria-valuemin', 0], ['aria-valuemax', 100], ['aria-valuenow', 0]]) meter.setAttribute(name, value);
  const badge = make('span', 'badge', 'overloaded');
  return make('li', '', make('div', 'name', make('span'), badge), label('seats'), label('KV cache'), meter, label('its queue'));
}

function showEndpoints(frame) {
  byId('endpoints-section').hidden = frame.endpoints.length === 0;
  list(byId('endpoints'), frame.endpoints, (endpoint) => endpoint.name, makeEndpoint, (card, endpoint) => {
    const [name, seats, usage, meter, queue] = card.children;
    const known = endpoint.kvCacheUsage !== null;
    write(name.firstChild, endpoint.name);
    name.lastChild.hidden = !endpoint.isOverloaded;
    write(seats.lastChild, count(endpoint.inFlight));
    write(usage.lastChild, known ? share(endpoint.kvCacheUsage) : 'not reported');
    meter.hidden = !known;
    mark(meter, 'high', endpoint.kvCacheUsage > 0.8);
    set(meter, '--share', Math.min(endpoint.kvCacheUsage || 0, 1));
    tell(meter, 'aria-valuenow', Math.round((endpoint.kvCacheUsage || 0) * 100));
    tell(meter, 'aria-label', 'KV cache in use on ' + endpoint.name);
    write(queue.lastChild, endpoint.waitingQueueSize === null ? '–' : count(endpoint.waitingQueueSize));
  });
  more('other-endpoints', frame.otherEndpoints, 'endpoint');
}
`;
