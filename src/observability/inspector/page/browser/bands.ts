/** One lane for each band, with its flows in line before its gate. */
import type { FrameBand, FrameFlow, FrameWhole, InspectorFrame } from '../../frame.js';
import { byId, fill, keepTints, list, make, mark, more, part, rows, set, tinted, tintOf, write } from './dom.js';
import { bytes, count, gateWords, rate, time } from './figures.js';

/** The use of whichever limit is nearer. */
function useOf({ waiting, maxRequests, bytes: waitingBytes, maxBytes }: FrameWhole): number {
  const use = (used: number, most: number | null): number => (most === null ? 0 : used / Math.max(most, 1));
  return Math.min(Math.max(use(waiting, maxRequests), use(waitingBytes, maxBytes)), 1);
}

/** The limit of all bands together: requests are dropped at it although their own band has room. */
function showWhole(whole: FrameWhole): void {
  const lane = byId('whole');
  lane.hidden = whole.maxRequests === null && whole.maxBytes === null;
  set(byId('whole-use'), '--share', useOf(whole).toFixed(4));
  write(byId('whole-waiting'), count(whole.waiting));
  const requests = whole.maxRequests === null ? '' : ` of ${count(whole.maxRequests)}`;
  const size = whole.maxBytes === null ? '' : `, ${bytes(whole.bytes)} of ${bytes(whole.maxBytes)}`;
  write(byId('whole-limit'), `${requests} waiting${size}`);
  write(byId('whole-dropped'), whole.dropped === 0 ? 'drops nothing' : `dropped ${count(whole.dropped)}`);
  mark(lane, 'drops', whole.dropped > 0);
}

function limitText(band: FrameBand): string {
  const limit = band.maxRequests === null ? '' : ` of ${count(band.maxRequests)}`;
  const drains = band.waiting > 0 && band.timeToDrainMs !== null ? `, drains in ${time(band.timeToDrainMs)}` : '';
  const drain = band.isGrowing ? ', growing' : drains;
  return `${limit} waiting, ${count(band.inFlight)} running · ${rate(band.arrivedPerSecond)}/s in, ${rate(band.dispatchedPerSecond)}/s out${drain}`;
}

/** One flow of a lane, or all those that are not shown. */
type LaneFlow = Omit<FrameFlow, 'bytes'> & { readonly tint: string };

function flowsOf(band: FrameBand): LaneFlow[] {
  const flows: LaneFlow[] = band.flows.map((flow) => ({ ...flow, tint: tintOf(flow.name) }));
  if (band.otherWaiting > 0) {
    const name = band.otherFlows === 1 ? '1 other flow' : `${count(band.otherFlows)} other flows`;
    flows.push({ name, waiting: band.otherWaiting, isHeld: false, isAtCap: false, tint: 'others' });
  }
  return flows;
}

function showLane(lane: HTMLElement, band: FrameBand, longest: number): void {
  // Linear to the limit; a few in a long line are still seen.
  const most = band.maxRequests ?? longest;
  const end = band.maxRequests === null ? `no limit; the lane ends at ${count(most)}` : `limit ${count(most)}`;
  fill(lane, {
    title: `Priority ${band.priority}`,
    policies: `${band.fairness} · ${band.ordering}`,
    waiting: count(band.waiting),
    rates: limitText(band),
    limit: band.dropped === 0 ? end : `${end} · dropped ${count(band.dropped)}`,
    verdict: gateWords[band.gate],
    reading: `${band.saturation.toFixed(2)}${band.gate === 'full' ? ' ≥ ' : ' of '}${band.ceiling.toFixed(2)}`,
  });
  const queue = part(lane, 'queue');
  set(
    queue,
    '--share',
    band.waiting === 0 ? 0 : Math.min(Math.max(band.waiting / Math.max(most, 1), 0.006), 1).toFixed(4),
  );
  mark(lane, 'drops', band.dropped > 0);
  mark(part(lane, 'post'), 'shut', band.gate !== 'open' && band.gate !== 'behind');
  mark(part(lane, 'post'), 'behind', band.gate === 'behind');
  const items = flowsOf(band);
  const keyOf = (flow: LaneFlow): string => (flow.tint === 'others' ? 'others' : `flow ${flow.name}`);
  list(queue, items, keyOf, (flow) => make('i', flow.tint), showBar);
  list(part(lane, 'flows'), items, keyOf, ({ tint }) => tinted('chip', tint), showChip);
}

function showBar(bar: HTMLElement, flow: LaneFlow): void {
  set(bar, '--grow', flow.waiting);
  mark(bar, 'held', flow.isHeld || flow.isAtCap);
}

function showChip(chip: HTMLElement, flow: LaneFlow): void {
  const why = flow.isAtCap ? ' at its cap' : flow.isHeld ? ' held back' : '';
  fill(chip, { name: flow.name, count: count(flow.waiting) + why });
  mark(part(chip, 'swatch'), 'held', flow.isHeld || flow.isAtCap);
}

export function showBands(frame: InspectorFrame): void {
  const longest = Math.max(10, ...frame.bands.map((band) => (band.maxRequests === null ? band.waiting : 0)));
  showWhole(frame.whole);
  keepTints(frame.bands.flatMap(({ flows }) => flows.map(({ name }) => name)));
  const show = (lane: HTMLElement, band: FrameBand): void => showLane(lane, band, longest);
  rows('lanes', frame.bands, ({ priority }) => String(priority), 'lane', show);
  more('other-bands', frame.otherBands, 'band');
}
