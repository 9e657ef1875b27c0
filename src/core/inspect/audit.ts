/** Checks every invariant of a controller, for tests. The controller does not import it. O(waiting + flows). */
import { sum } from '../../base/sum.js';
import type { Flow, WaitingItem } from '../../tiers/flow.js';
import { type LongestQueues, loadPerWeight } from '../../tiers/longest-queues.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Engine } from '../engine/engine.js';
import type { QueueItem } from '../engine/queue-item.js';
import type { FlowController } from '../flow-controller.js';
import { engineOf } from './engine-of.js';

/** Counts, taken from the requests up and not from the controller's totals. */
export interface AuditFigures {
  readonly waiting: number;
  readonly waitingBytes: number;
  readonly waitingTokens: number;
  /** Unreleased leases. */
  readonly inFlight: number;
  readonly bands: number;
  readonly flows: number;
  /** Signals that are listened to. */
  readonly signals: number;
}

export interface FlowAudit {
  /** A sentence for each invariant that does not hold; empty when all do. */
  readonly violations: readonly string[];
  readonly figures: AuditFigures;
}

/** A sentence for each invariant that does not hold. */
type Violations = Generator<string, void, undefined>;

/** Undefined for anything but a controller. */
export function auditOf(flow: FlowController<never>): FlowAudit | undefined {
  const engine = engineOf(flow);
  if (engine === undefined) return undefined;
  const bands = engine.backlog.bands.all();
  const items = bands.flatMap((band) => band.waitingItems() as QueueItem[]);
  const figures: AuditFigures = {
    waiting: items.length,
    waitingBytes: sum(items, (item) => item.byteSize),
    waitingTokens: sum(items, (item) => item.tokens),
    inFlight: engine.seats.inFlight,
    bands: bands.length,
    flows: sum(bands, (band) => band.flows.size),
    signals: new Set(items.flatMap(({ abortGroup }) => abortGroup ?? [])).size,
  };
  return { violations: [...violationsOf(engine, bands, items)], figures };
}

function* violationsOf(engine: Engine, bands: readonly PriorityBand[], items: readonly QueueItem[]): Violations {
  for (const band of bands) yield* ofBand(band);
  yield* ofTotals(engine, bands);
  yield* ofBandLists(engine, bands);
  yield* ofIdleFlows(engine, bands);
  yield* ofWaits(engine, items);
  yield* ofSeats(engine);
  yield* ofCaps(engine, bands);
  yield* ofWakeUps(engine);
  yield* ofEnd(engine);
}

/** Global = Σ bands. */
function* ofTotals({ backlog }: Engine, bands: readonly PriorityBand[]): Violations {
  const { waiting, waitingBytes } = backlog;
  const [requests, bytes] = [sum(bands, (band) => band.waiting), sum(bands, (band) => band.waitingBytes)];
  if (waiting !== requests) yield `${waiting} requests wait, the bands hold ${requests}`;
  if (waitingBytes !== bytes) yield `${waitingBytes} bytes wait, the bands hold ${bytes}`;
  if (waiting < 0 || waitingBytes < 0) yield `${waiting} requests of ${waitingBytes} bytes wait: below 0`;
}

/** Band = Σ flows = the requests in its queues; and each flow stands in one place. */
function* ofBand(band: PriorityBand): Violations {
  const name = `band ${band.priority}`;
  const items = band.waitingItems();
  yield* ofCounts(name, band, items);
  if (band.waitingTokens !== sum(items, (item) => item.tokens)) yield `${name} miscounts tokens`;
  const flows = [...band.flows.values()];
  const itemsOf = new Map<Flow | undefined, WaitingItem[]>(flows.map((flow) => [flow, []]));
  for (const item of items) itemsOf.get(item.flow)?.push(item);
  const { active, aside } = band;
  const [actives, held, parked] = [new Set(active), new Set(aside.of('held')), new Set(aside.of('parked'))];
  for (const [key, flow] of band.flows) {
    const places = { isActive: actives.has(flow), isHeld: held.has(flow), isParked: parked.has(flow) };
    yield* ofFlow(key, flow, band, places);
    yield* ofCounts(flowName(key, band), flow, itemsOf.get(flow) ?? []);
  }
  if (sum(flows, (flow) => flow.waiting) !== band.waiting) yield `${name} and its flows disagree`;
  const did = { held: 'holds back', parked: 'has parked' } as const;
  for (const kind of ['held', 'parked'] as const) {
    const waiting = sum(band.aside.of(kind), (flow) => flow.waiting);
    const counted = band.aside.waiting[kind];
    if (waiting !== counted) yield `${name} ${did[kind]} ${counted} requests, its flows ${waiting}`;
  }
  if (band.longestQueues !== undefined) yield* ofLongestQueues(name, band, band.longestQueues);
  yield* ofQueues(name, band);
  const tracked = sum(flows, (flow) => flow.trackedInFlight);
  if (tracked !== band.trackedInFlight) yield `${name} has ${band.trackedInFlight} leases, its flows ${tracked}`;
}

function flowName(key: string, { priority }: PriorityBand): string {
  return `flow ${JSON.stringify(key)} of band ${priority}`;
}

function* ofFlow(
  key: string,
  flow: Flow,
  band: PriorityBand,
  { isActive, isHeld, isParked }: Readonly<Record<'isActive' | 'isHeld' | 'isParked', boolean>>,
): Violations {
  const name = flowName(key, band);
  const { contendsIn, waiting } = flow;
  if (flow.name !== key || flow.band !== band) yield `${name} is filed wrongly`;
  if (isHeld !== flow.isHeld) yield `${name} is held back in one place and not in the other`;
  if (isParked !== flow.isParked) yield `${name} is parked in one place and not in the other`;
  const isOfClass = flow.head?.requestClass === contendsIn?.requestClass;
  if (contendsIn !== undefined && !(contendsIn.contenders.has(flow) && isOfClass && !isParked))
    yield `${name} contends with flows that wait for something else`;
  if (flow.waitsFor?.flows.has(flow) === false) yield `${name} waits for something that does not know of it`;
  const places = Number(isActive) + Number(isHeld) + Number(isParked);
  if (places !== Number(waiting > 0)) yield `${name} with ${waiting} waiting requests stands in ${places} places`;
  if (flow.trackedInFlight < 0) yield `${name} has ${flow.trackedInFlight} leases`;
}

/** Every member of a queue waits, or is counted as a tombstone. */
function* ofQueues(name: string, band: PriorityBand): Violations {
  const queues = new Set([...band.flows.values()].flatMap((flow) => band.sharedQueue ?? flow.queue ?? []));
  const living = sum([...queues], ({ length, tombstones }) => length - tombstones);
  if (queues.size > 0 && living !== band.waiting)
    yield `the queues of ${name} keep ${living} requests that did not leave, and ${band.waiting} wait`;
}

/** The flow with most waiting for its weight is known. */
function* ofLongestQueues(name: string, band: PriorityBand, longest: LongestQueues<Flow, WaitingItem>): Violations {
  const waiting = band.waitingFlows();
  for (const resource of ['requests', 'bytes'] as const) {
    const levels = waiting.map((flow) => loadPerWeight(flow, resource));
    const most = longest.most(resource);
    const level = most === undefined ? undefined : loadPerWeight(most, resource);
    const isMost =
      waiting.length === 0 ? most === undefined : level === Math.max(...levels) && waiting.includes(most as Flow);
    if (!isMost) yield `${name} takes a flow for the one with most ${resource} waiting that is not`;
    const kept = most === undefined ? 0 : [...longest.newestFirst(most)].length;
    const expected = most?.waiting ?? 0;
    if (kept !== expected) yield `${name} knows ${kept} arrivals of a flow with ${expected} waiting requests`;
  }
}

function* ofCounts(
  name: string,
  { waiting, waitingBytes }: { waiting: number; waitingBytes: number },
  items: readonly WaitingItem[],
): Violations {
  if (waiting !== items.length) yield `${name} counts ${waiting} requests and holds ${items.length}`;
  if (waitingBytes !== sum(items, (item) => item.byteSize)) yield `${name} miscounts bytes`;
}

function* ofBandLists({ backlog }: Engine, bands: readonly PriorityBand[]): Violations {
  const priorities = bands.map(({ priority }) => priority);
  if (priorities.some((priority, index) => priority >= (priorities[index - 1] ?? Infinity)))
    yield 'bands are out of order, or two have one priority';
  const waiting = bands.filter((band) => band.waiting > 0);
  const listed = backlog.bands.allWaiting();
  if (listed.length !== waiting.length || waiting.some((band, index) => listed[index] !== band))
    yield 'the list of waiting bands is wrong';
  const highest = waiting.find((band) => band.waiting > band.aside.waiting.parked);
  if (backlog.bands.highestWaiting !== highest) yield 'the highest waiting band is another';
  const parked = sum(bands, (band) => band.aside.waiting.parked);
  if (parked !== backlog.bands.parked) yield `${backlog.bands.parked} requests are parked, the bands have ${parked}`;
}

/** A flow is listed as idle exactly while nothing of it waits or is tracked in flight. */
function* ofIdleFlows({ backlog }: Engine, bands: readonly PriorityBand[]): Violations {
  const { flows: table } = backlog.bands;
  const idle = new Set(table.idle);
  for (const flow of bands.flatMap((band) => [...band.flows.values()])) {
    const isIdle = flow.waiting === 0 && flow.trackedInFlight === 0;
    if (idle.delete(flow) !== isIdle || flow.isIdle !== isIdle)
      yield `flow ${JSON.stringify(flow.name)}: expected idle ${isIdle}`;
  }
  if (idle.size > 0) yield `${idle.size} forgotten flows are listed as idle`;
  const known = sum(bands, (band) => band.flows.size);
  if (known !== table.size) yield `${table.size} flows are counted, ${known} are known`;
}

/** Every waiting request stands in one queue, can still be settled, and has its deadline and its signal watched. */
function* ofWaits({ backlog }: Engine, items: readonly QueueItem[]): Violations {
  if (new Set(items).size !== items.length) yield 'a request stands in two places';
  for (const item of items) {
    const name = `request ${item.sequence}`;
    if (!item.isWaiting) yield `${name} is settled and still stands in a queue`;
    if (item.abortGroup?.signal !== item.request?.signal)
      yield `${name}: its signal is not the one that is listened to`;
    const mayExpire = backlog.expiry.deadlineOf(item) < Infinity;
    if (mayExpire !== (item.deadlines !== undefined))
      yield `${name}: its deadline is not kept, or it has none and one is kept`;
  }
}

/** In flight = leases handed out − leases that ended = seats at the endpoints. */
function* ofSeats({ seats, eviction }: Engine): Violations {
  const { inFlight, inFlightTokens, dispatched, released, pool, running } = seats;
  if (inFlight !== dispatched - released)
    yield `${inFlight} leases are in flight, ${dispatched} were handed out and ${released} ended`;
  if (inFlight < 0 || inFlightTokens < 0) yield `${inFlight} leases of ${inFlightTokens} tokens are in flight: below 0`;
  if (inFlight !== running.size) yield `${inFlight} leases are in flight, ${running.size} are listed`;
  if (inFlight === 0 && inFlightTokens !== 0) yield `${inFlightTokens} tokens are in flight without a lease`;
  const members = sum(pool.endpoints, (endpoint) => endpoint.inFlightRequests);
  if (members !== pool.inFlightRequests)
    yield `the endpoints have ${members} seats taken, the pool ${pool.inFlightRequests}`;
  const tokensOfMembers = sum(pool.endpoints, (endpoint) => endpoint.inFlightTokens);
  if (tokensOfMembers !== pool.inFlightTokens)
    yield `the endpoints have ${tokensOfMembers} tokens booked, the pool ${pool.inFlightTokens}`;
  for (const [priority, candidates] of eviction?.evictor.evictable ?? [])
    for (const candidate of candidates) {
      const { lease } = candidate;
      if (lease.candidacy !== candidate || lease.priority !== priority || lease.isReleased)
        yield `request ${lease.item.sequence} may be evicted from priority ${priority} and does not run there`;
    }
  // A pool may have other controllers, and an endpoint may have left it with seats taken.
  if (pool.implicitEndpoint !== undefined && inFlight !== pool.inFlightRequests)
    yield `${inFlight} leases hold ${pool.inFlightRequests} seats`;
  for (const { id, inFlightRequests, inFlightTokens: tokens } of pool.endpoints)
    if (inFlightRequests < 0 || tokens < 0)
      yield `endpoint ${id} has ${inFlightRequests} seats and ${tokens} tokens taken: below 0`;
}

/** A flow is parked only while something of its own is in the way of its first request; a cap counts what runs. */
function* ofCaps({ parking: { caps }, parts, seats }: Engine, bands: readonly PriorityBand[]): Violations {
  for (const band of bands)
    for (const { name, head, waitsFor } of band.aside.of('parked'))
      if (head === undefined || parts.obstacleTo(head as QueueItem, band) !== waitsFor)
        yield `${flowName(name, band)} is parked without need`;
  const running = [...seats.running];
  for (const lease of running) {
    const account = caps?.stateOf(lease, lease.band)?.account;
    if (account === undefined) continue;
    const mine = running.filter(({ fairnessId }) => fairnessId === lease.fairnessId);
    const inBand = mine.filter(({ priority }) => priority === lease.priority).length;
    if (account.requests !== inBand && account.requests !== mine.length)
      yield `${JSON.stringify(lease.fairnessId)} is booked with ${account.requests} requests and runs ${mine.length}`;
  }
}

/** No wake-up is lost: requests wait only before a closed gate or until the next turn, with a timer where needed. */
function* ofWakeUps({ backlog, gate, operation, dispatcher, wakeups }: Engine): Violations {
  if (operation.isBusy) return; // asked from inside an operation, which ends with a walk
  if (operation.isWorkWanted) yield 'the walk is due and did not run';
  if (backlog.waiting === backlog.bands.parked || wakeups.isPaused) return;
  if (!dispatcher.isGateClosed) yield 'requests wait, and the gate is not said to be closed';
  if (!wakeups.poller.isSet && !backlog.isPoolEmpty && gate.recheckMs !== Infinity)
    yield 'nothing looks at the closed gate again';
}

/** A closed controller holds nothing. */
function* ofEnd({ shutdown: { state }, backlog }: Engine): Violations {
  if (state !== 'closed') return;
  if (backlog.waiting > 0) yield `${backlog.waiting} requests wait in a closed controller`;
  if (backlog.expiry.isUsed) yield 'a closed controller has a timer';
}
