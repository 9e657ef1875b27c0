/** Page script: the gate, the figures, and one lane for each band with its flows in line before its gate. */
export const lanes: string = /* js */ `
function showGate(frame) {
  const isIdle = frame.waiting === 0;
  const isShut = frame.isGateClosed && !isIdle;
  const gate = byId('gate');
  mark(gate, 'shut', isShut);
  mark(gate, 'open', !isShut);
  write(byId('verdict'), frame.state !== 'open' ? frame.state : isShut ? 'closed' : 'open');
  write(byId('held'), isIdle ? 'nothing waits' : isShut ? 'holds back ' + count(frame.waiting) : 'lets go');
  write(byId('saturation'), frame.saturation.toFixed(2));
  const gauge = byId('gauge');
  set(gauge, '--share', Math.min(frame.saturation / 1.5, 1).toFixed(3));
  tell(gauge, 'aria-valuenow', Math.min(frame.saturation, 1.5));
  tell(gauge, 'aria-valuetext', frame.saturation.toFixed(2) + ', full at 1');
  write(byId('waiting'), count(frame.waiting));
  write(byId('in-flight'), count(frame.inFlight));
  write(byId('drain'), isIdle ? '–' : time(frame.timeToDrainMs));
  write(byId('arriving'), rate(frame.arrivedPerSecond));
  write(byId('dispatching'), rate(frame.dispatchedPerSecond));
  write(byId('bytes'), bytes(frame.waitingBytes));
}

function makeLane() {
  const parts = {};
  const head = make('div', 'lane-head',
    (parts.title = make('h3')), (parts.policies = make('span', 'policies')), (parts.rates = make('span', 'rates')));
  parts.waiting = make('b');
  parts.rest = document.createTextNode('');
  parts.rates.append(parts.waiting, parts.rest);
  parts.queue = make('div', 'queue');
  const line = make('div', 'line', parts.queue);
  line.setAttribute('aria-hidden', 'true');
  const drawing = makeSvg('svg', { viewBox: '0 0 26 34', 'aria-hidden': 'true' });
  drawing.append(makeSvg('path', { class: 'frame', d: 'M4 32V3M22 32V3' }), makeSvg('rect', { class: 'bar', x: 4, y: 15, width: 18, height: 13, rx: 2 }));
  parts.verdict = make('b');
  parts.reading = make('span');
  parts.post = make('div', 'post', drawing, make('span', '', parts.verdict, parts.reading));
  parts.flows = make('ul', 'flows');
  const lane = make('li', 'lane', head, make('div', 'road', line, parts.post), parts.flows);
  lane.parts = parts;
  return lane;
}

function limitText(band) {
  const limit = band.maxRequests === null ? '' : ' of ' + count(band.maxRequests);
  const drain = band.waiting > 0 && band.timeToDrainMs !== null ? ', drains in ' + time(band.timeToDrainMs) : '';
  return limit + ' waiting · ' + rate(band.arrivedPerSecond) + '/s in, ' + rate(band.dispatchedPerSecond) + '/s out' + drain;
}

function showLane(lane, band, longest) {
  const { title, policies, waiting, rest, queue, post, verdict, reading, flows } = lane.parts;
  write(title, 'Priority ' + band.priority);
  write(policies, band.fairness + ' · ' + band.ordering);
  write(waiting, count(band.waiting));
  if (rest.data !== limitText(band)) rest.data = limitText(band);
  // By the square root: a line of ten is seen beside a line of ten thousand.
  set(queue, '--share', band.waiting === 0 ? 0 : Math.max(Math.sqrt(band.waiting / longest), 0.02).toFixed(3));
  mark(post, 'shut', band.isGated);
  write(verdict, band.isGated ? 'gated' : band.held > 0 ? 'endpoints full' : band.waiting > 0 ? 'next' : 'open');
  write(reading, band.saturation.toFixed(2) + (band.isGated ? ' ≥ ' : ' of ') + band.ceiling.toFixed(2));
  const items = band.flows.map((flow) => ({ ...flow, tint: tintOf(flow.name) }));
  if (band.otherWaiting > 0) {
    const name = band.otherFlows === 1 ? '1 other flow' : count(band.otherFlows) + ' other flows';
    items.push({ name, waiting: band.otherWaiting, bytes: 0, isHeld: false, tint: 'others' });
  }
  const keyOf = (flow) => (flow.tint === 'others' ? 'others' : 'flow ' + flow.name);
  list(queue, items, keyOf, (flow) => make('i', flow.tint), (bar, flow) => {
    set(bar, '--grow', flow.waiting);
    mark(bar, 'held', flow.isHeld);
  });
  list(flows, items, keyOf, makeChip, showChip);
}

function makeChip(flow) {
  const swatch = make('span', 'swatch ' + flow.tint);
  swatch.setAttribute('aria-hidden', 'true');
  return make('li', '', swatch, make('span', 'name'), make('span', 'count'));
}

function showChip(chip, flow) {
  const [swatch, name, waiting] = chip.children;
  write(name, flow.name);
  write(waiting, count(flow.waiting) + (flow.isHeld ? ' held back' : ''));
  mark(swatch, 'held', flow.isHeld);
}

function more(id, number, noun) {
  const element = byId(id);
  element.hidden = number === 0;
  write(element, number === 0 ? '' : '… and ' + count(number) + ' ' + noun + (number === 1 ? '' : 's') + ' more');
}

function showBands(frame) {
  const longest = Math.max(1, ...frame.bands.map((band) => band.waiting));
  list(byId('lanes'), frame.bands, (band) => String(band.priority), makeLane, (lane, band) => showLane(lane, band, longest));
  more('other-bands', frame.otherBands, 'band');
}
`;
