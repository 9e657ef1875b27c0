/** Why does this request still wait? Reads the walk's state, in the walk's order, and changes nothing. */
import { requestField } from '../../base/request-field.js';
import type { RequestWait } from '../../gate/constraint.js';
import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { ItemView } from '../../tiers/views.js';
import type { Engine } from '../engine/engine.js';
import type { InFlightCaps } from '../engine/in-flight-caps.js';
import { QueueItem } from '../engine/queue-item.js';
import type { FlowController } from '../flow-controller.js';
import type { FlowRequest } from '../flow-request.js';
import { by, drainTimeMs, type Explanation, inSeconds, type WaitExplanation } from '../outcome/explanation.js';
import { engineFor } from './engine-of.js';
import { oldestLease } from './in-flight.js';

/** It has the type of a method, so that a controller of any request can stand for a controller of a narrower kind. */
type RequestTest<R> = { test(request: R): boolean }['test'];

/**
 * Why a request waits, its place, and for how long. It is named by its object, `item` of `queued`, its sequence, or a
 * function; undefined when it does not wait. O(waiting); O(place) with `item` and arrival order. @throws
 * FlowConfigError for what is no controller
 */
export function explainWait<R extends FlowRequest>(
  flow: FlowController<R>,
  waiting: R | ItemView<R> | number | RequestTest<R>,
): WaitExplanation | undefined {
  const engine = engineFor('explainWait', flow);
  const item = findWaiting(engine, waiting);
  return item && engine.look((nowMs) => waitOf(engine, item, nowMs));
}

/** A request by arrival number, view, the object passed to `enqueue`, or a test of that. O(waiting), by view O(1). */
function findWaiting(engine: Engine, wanted: unknown): QueueItem | undefined {
  if (wanted instanceof QueueItem) return wanted.isWaiting ? wanted : undefined;
  const isWanted = typeof wanted === 'function' ? wanted : undefined;
  for (const band of engine.backlog.bands.allWaiting()) {
    for (const item of band.members()) {
      // The view may come from a controller of the package's other copy.
      const isNamed = item.sequence === wanted || item.request === wanted || item === wanted;
      if (isWanted === undefined ? isNamed : isWanted(item.request) === true) return item as QueueItem;
    }
  }
  return undefined;
}

/** Explains a wait. The place costs O(place) by arrival, else O(queue); `most` bounds it, at the price of `ahead`. */
export function waitOf(engine: Engine, item: QueueItem, nowMs: number, most: number = Infinity): WaitExplanation {
  const band = item.band as PriorityBand;
  const flow = item.flow as Flow;
  const saturation = engine.gate.readingFor(band).saturation;
  const { ceiling } = band;
  const ahead = (band.sharedQueue ?? flow.queue)?.ahead(item, most);
  const turns = (ahead ?? flow.waiting - 1) + 1;
  const aheadInOtherFlows = band.sharedQueue ? 0 : othersBefore(turns, flow, band, most);
  const higher = engine.backlog.bands.allWaiting().filter((other) => other.priority > band.priority && other.ready > 0);
  const inHigherBands = higher.reduce((sum, other) => sum + other.ready, 0);
  const isPoolEmpty = engine.gate.isPoolEmpty(nowMs);
  const inBand = turns + aheadInOtherFlows;
  const estimatedWaitMs = isPoolEmpty ? undefined : estimate(engine, band, inBand, inHigherBands, nowMs);
  const deadlineMs = engine.backlog.expiry.deadlineOf(item);
  const expiresInMs = deadlineMs === Infinity ? undefined : Math.max(deadlineMs - nowMs, 0);
  const leadInCost = band.policies.selector?.lead(flow);
  const oldest = oldestLease(engine.seats, nowMs);
  const { text, ...verdict } = judge(engine, item, higher, ahead, nowMs);
  const { inputTokens, outputTokens = '?' } = item.estimate ?? {};
  const takenFor =
    inputTokens === undefined ? requestField(item.request, 'takenFor') : `${inputTokens}+${outputTokens}`;
  const isAhead = leadInCost !== undefined && leadInCost >= 1;
  const isTooLong = expiresInMs !== undefined && (estimatedWaitMs ?? 0) > expiresInMs;
  const clauses = [
    text,
    inHigherBands > 0 && verdict.decidedBy !== 'priority' ? `${inHigherBands} in higher bands` : '',
    ahead !== undefined && ahead > 0 ? `${ahead} ahead in this ${band.sharedQueue ? 'band' : 'flow'}` : '',
    isAhead ? `its flow has received ${inWhole(leadInCost)} more than its share` : '',
    aheadInOtherFlows > 0 ? `${aheadInOtherFlows} ahead in other flows` : '',
    typeof takenFor === 'string' ? `taken for ${takenFor} tokens` : '',
    requestField(item.request, 'hasBegun') === true ? 'its answer has begun' : '',
    oldest?.isOverdue ? `a lease is held for ${inSeconds(oldest.heldMs)}, longer than maxLeaseMs` : '',
    estimatedWaitMs === undefined ? '' : `about ${inSeconds(estimatedWaitMs)}`,
    isTooLong ? `may wait only ${inSeconds(expiresInMs)} more` : '',
  ];
  return {
    ...verdict,
    text: `${engine.shadow === undefined ? '' : 'would wait: '}${clauses.filter((clause) => clause !== '').join('; ')}`,
    priority: item.priority,
    sequence: item.sequence,
    saturation,
    ceiling,
    waitedMs: nowMs - item.waitingSinceMs,
    expiresInMs,
    ahead,
    aheadInOtherFlows,
    inHigherBands,
    estimatedWaitMs,
    oldestLeaseMs: oldest?.heldMs,
    ...(leadInCost === undefined ? {} : { leadInCost }),
  };
}

/** The first thing that holds it back. */
function judge(
  { gate, placement, selector, parking: { caps } }: Engine,
  item: QueueItem,
  higher: readonly PriorityBand[],
  ahead: number | undefined,
  nowMs: number,
): Explanation {
  const band = item.band as PriorityBand;
  const flow = item.flow as Flow;
  const name = `band ${band.priority}`;
  const lowest = higher[higher.length - 1];
  if (gate.isPoolEmpty(nowMs))
    return by('pool', `${name} waits: ${gate.whyUnavailable(nowMs) ?? 'the pool has no endpoints'}`);
  const first = (flow.isParked && flow.head) || item;
  if (caps?.obstacle(first, band) !== undefined)
    return by('cap', `${name} waits for its own cap (${capText(caps, first, band)})`);
  const next = placement.awaitedGroup(item, nowMs);
  if (flow.waitsFor !== undefined) {
    if (next !== undefined) return by('endpoints', `${name} ${next}`);
    const wait = placement.waitOf(item, nowMs);
    if (wait !== undefined && wait.atMs > nowMs) return waitsFor(name, wait, nowMs);
    const obstacle = placement.obstacle(flow.contendsIn?.requestClass, band, nowMs) ?? 'full';
    return by('endpoints', `${name}: ${obstacles[obstacle]}`);
  }
  if (!gate.isOpenFor(band)) {
    const { saturation, isFailing } = gate.readingFor(band);
    if (isFailing) return by('gate', `${name} gated: the saturation detector fails`);
    return by('gate', `${name} gated: saturation ${saturation.toFixed(2)} ≥ ceiling ${band.ceiling.toFixed(2)}`);
  }
  if (lowest !== undefined && selector.isStrict) {
    const waiting =
      higher.length === 1 ? `band ${lowest.priority}, where ${lowest.ready} wait` : `${higher.length} higher bands`;
    return by('priority', `${name} waits for ${waiting}`);
  }
  const obstacle = placement.obstacle(item.requestClass, band, nowMs);
  if (next !== undefined) return by('endpoints', `${name} ${next}`);
  const wait = obstacle === undefined ? placement.waitOf(item, nowMs) : undefined;
  if (wait !== undefined && wait.atMs > nowMs) return waitsFor(name, wait, nowMs);
  if (obstacle !== undefined) return by('endpoints', `${name}: ${obstacles[obstacle]}`);
  if (!selector.isStrict) return by('priority', `${name} waits for its turn among the bands`);
  const { fairness, ordering } = band.settings;
  return ahead === 0 && !band.sharedQueue
    ? by('fairness', `${name}: it is the turn of other flows`, { policy: fairness.type })
    : by('ordering', `${name}: others of its queue go first`, { policy: ordering.type });
}

/** `8 of 8 running`, or the same in tokens where these are what is missing. */
function capText(caps: InFlightCaps, head: ItemView, band: PriorityBand): string {
  const { cap, account } = caps.stateOf(head, band) ?? {};
  const { requests = 0, tokens = 0 } = account ?? {};
  if (cap === undefined) return 'it was lifted just now';
  if (requests >= cap.maxRequests) return `${inWhole(requests)} of ${inWhole(cap.maxRequests)} running`;
  return `${inWhole(tokens)} of ${inWhole(cap.maxTokens)} tokens running, ${inWhole(head.tokens)} more wanted`;
}

/** `band 0 waits for 1,200 input tokens of account A, in 3.4 s`. */
function waitsFor(name: string, { atMs, missing }: RequestWait, nowMs: number): Explanation {
  const when = atMs === Infinity ? '' : `, in ${inSeconds(atMs - nowMs)}`;
  return by('endpoints', `${name} waits for ${missing}${when}`);
}

/** `12,400`. */
function inWhole(cost: number): string {
  return Math.round(cost).toLocaleString('en-US');
}

const obstacles = {
  full: 'the endpoints it may go to are full',
  overloaded: 'the endpoints it may go to are marked as overloaded',
  absent: 'the endpoints it may go to are ill, draining, marked as overloaded, or do not report their load',
} as const;

/** At the band's own rate; if higher bands go first, at least as long as all bands together need for these. */
function estimate({ backlog }: Engine, band: PriorityBand, inBand: number, inHigherBands: number, nowMs: number) {
  const own = drainTimeMs(inBand, band.traffic.dispatchedPerSecond(nowMs));
  if (inHigherBands === 0) return own;
  const perSecond = backlog.bands.all().reduce((sum, each) => sum + (each.traffic.dispatchedPerSecond(nowMs) ?? 0), 0);
  const together = drainTimeMs(inHigherBands + inBand, perSecond);
  return together === undefined ? own : Math.max(together, own ?? 0);
}

/** Requests of other active flows before one that needs `turns` turns. O(flows), beyond `most` of them O(1). */
function othersBefore(turns: number, flow: Flow, band: PriorityBand, most: number): number {
  const others = band.waiting - flow.waiting;
  if (band.active.size > most) return Math.min(others, turns * (band.active.size - 1));
  let before = 0;
  for (const other of band.active)
    if (other !== flow) before += Math.min(other.waiting, Math.ceil((turns * other.weight) / flow.weight));
  return before;
}
