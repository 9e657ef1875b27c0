/**
 * Checks every invariant of a controller's state, where the state is kept. For tests and post-mortems; it imports
 * nothing at run time, and the controller does not import it, so that nobody else carries it. O(waiting + flows).
 *
 * Longer than most files, because it is one list of what must hold.
 */
import type { Flow } from '../../tiers/flow.js';
import { type LongestQueues, loadPerWeight } from '../../tiers/longest-queues.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { WaitingItem } from '../../tiers/waiting-item.js';
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

type Check = (holds: boolean, violation: string) => void;

/** Undefined for anything but a controller. */
export function auditOf(flow: FlowController<never>): FlowAudit | undefined {
  const engine = engineOf(flow);
  return engine && auditEngine(engine);
}

function auditEngine(engine: Engine): FlowAudit {
  const violations: string[] = [];
  const check: Check = (holds, violation) => {
    if (!holds) violations.push(violation);
  };
  const { backlog, seats } = engine;
  const bands = backlog.bands.all();
  const items = bands.flatMap((band) => band.waitingItems() as QueueItem[]);
  for (const band of bands) checkBand(band, check);
  checkTotals(engine, bands, check);
  checkBandLists(engine, bands, check);
  checkIdleFlows(engine, bands, check);
  checkWaits(engine, items, check);
  checkSeats(engine, check);
  checkCaps(engine, bands, check);
  checkWakeUp(engine, check);
  checkEnd(engine, check);
  const figures: AuditFigures = {
    waiting: items.length,
    waitingBytes: sum(items, (item) => item.byteSize),
    waitingTokens: sum(items, (item) => item.tokens),
    inFlight: seats.inFlight,
    bands: bands.length,
    flows: sum(bands, (band) => band.flows.size),
    signals: new Set(items.flatMap(({ abortGroup }) => abortGroup ?? [])).size,
  };
  return { violations, figures };
}

/** Global = Σ bands. */
function checkTotals({ backlog }: Engine, bands: readonly PriorityBand[], check: Check): void {
  const { waiting, waitingBytes } = backlog;
  const [requests, bytes] = [sum(bands, (band) => band.waiting), sum(bands, (band) => band.waitingBytes)];
  check(waiting === requests, `${waiting} requests wait, the bands hold ${requests}`);
  check(waitingBytes === bytes, `${waitingBytes} bytes wait, the bands hold ${bytes}`);
  check(waiting >= 0 && waitingBytes >= 0, `${waiting} requests of ${waitingBytes} bytes wait: below 0`);
}

/** Band = Σ flows = the requests in its queues; and each flow stands in one place. */
function checkBand(band: PriorityBand, check: Check): void {
  const name = `band ${band.priority}`;
  const items = band.waitingItems();
  const itemsOf = new Map<Flow | undefined, WaitingItem[]>();
  for (const item of items) {
    const others = itemsOf.get(item.flow);
    if (others === undefined) itemsOf.set(item.flow, [item]);
    else others.push(item);
  }
  checkCounts(name, band, items, check);
  check(band.waitingTokens === sum(items, (item) => item.tokens), `${name} miscounts tokens`);
  const places = {
    active: new Set(band.active),
    held: new Set(band.aside.of('held')),
    parked: new Set(band.aside.of('parked')),
  };
  for (const [key, flow] of band.flows) {
    const flowName = `flow ${JSON.stringify(key)} of ${name}`;
    check(flow.name === key && flow.band === band, `${flowName} is filed wrongly`);
    checkCounts(flowName, flow, itemsOf.get(flow) ?? [], check);
    check(places.held.has(flow) === flow.isHeld, `${flowName} is held back in one place and not in the other`);
    const { contendsIn } = flow;
    check(
      contendsIn === undefined ||
        (contendsIn.contenders.has(flow) &&
          flow.head?.requestClass === contendsIn.requestClass &&
          !places.parked.has(flow)),
      `${flowName} contends with flows that wait for something else`,
    );
    check(places.parked.has(flow) === flow.isParked, `${flowName} is parked in one place and not in the other`);
    check(flow.waitsFor?.flows.has(flow) !== false, `${flowName} waits for something that does not know of it`);
    const count = Number(places.active.has(flow)) + Number(places.held.has(flow)) + Number(places.parked.has(flow));
    check(
      count === Number(flow.waiting > 0),
      `${flowName} with ${flow.waiting} waiting requests stands in ${count} places`,
    );
    check(flow.trackedInFlight >= 0, `${flowName} has ${flow.trackedInFlight} leases`);
  }
  const flows = [...band.flows.values()];
  check(sum(flows, (flow) => flow.waiting) === band.waiting, `${name} and its flows disagree`);
  const held = sum([...places.held], (flow) => flow.waiting);
  check(held === band.aside.waiting.held, `${name} holds back ${band.aside.waiting.held} requests, its flows ${held}`);
  const parked = sum([...places.parked], (flow) => flow.waiting);
  check(
    parked === band.aside.waiting.parked,
    `${name} has parked ${band.aside.waiting.parked} requests, its flows ${parked}`,
  );
  if (band.longestQueues !== undefined) checkLongestQueues(name, band, band.longestQueues, check);
  checkQueues(name, band, check);
  const tracked = sum(flows, (flow) => flow.trackedInFlight);
  check(tracked === band.trackedInFlight, `${name} has ${band.trackedInFlight} leases, its flows ${tracked}`);
}

/** Every member of a queue waits, or is counted as a tombstone. */
function checkQueues(name: string, band: PriorityBand, check: Check): void {
  const queues = new Set([...band.flows.values()].flatMap((flow) => band.sharedQueue ?? flow.queue ?? []));
  const living = sum([...queues], ({ length, tombstones }) => length - tombstones);
  const isRight = queues.size === 0 || living === band.waiting;
  check(isRight, `the queues of ${name} keep ${living} requests that did not leave, and ${band.waiting} wait`);
}

/** The flow with most waiting for its weight is known. */
function checkLongestQueues(
  name: string,
  band: PriorityBand,
  longestQueues: LongestQueues<Flow, WaitingItem>,
  check: Check,
): void {
  const waiting = band.waitingFlows();
  for (const resource of ['requests', 'bytes'] as const) {
    const levels = waiting.map((flow) => loadPerWeight(flow, resource));
    const most = longestQueues.most(resource);
    const level = most === undefined ? undefined : loadPerWeight(most, resource);
    const isMost =
      waiting.length === 0 ? most === undefined : level === Math.max(...levels) && waiting.includes(most as Flow);
    check(isMost, `${name} takes a flow for the one with most ${resource} waiting that is not`);
    const kept = most === undefined ? 0 : [...longestQueues.newestFirst(most)].length;
    check(
      kept === (most?.waiting ?? 0),
      `${name} knows ${kept} arrivals of a flow with ${most?.waiting ?? 0} waiting requests`,
    );
  }
}

function checkCounts(
  name: string,
  counts: { waiting: number; waitingBytes: number },
  items: readonly WaitingItem[],
  check: Check,
): void {
  check(counts.waiting === items.length, `${name} counts ${counts.waiting} requests and holds ${items.length}`);
  check(counts.waitingBytes === sum(items, (item) => item.byteSize), `${name} miscounts bytes`);
}

function checkBandLists({ backlog }: Engine, bands: readonly PriorityBand[], check: Check): void {
  const isDescending = bands.every(
    (band, index) => index === 0 || (bands[index - 1] as PriorityBand).priority > band.priority,
  );
  check(isDescending, 'bands are out of order, or two have one priority');
  const waiting = bands.filter((band) => band.waiting > 0);
  const listed = backlog.bands.allWaiting();
  check(
    listed.length === waiting.length && waiting.every((band, index) => listed[index] === band),
    'the list of waiting bands is wrong',
  );
  const highest = waiting.find((band) => band.waiting > band.aside.waiting.parked);
  check(backlog.bands.highestWaiting === highest, 'the highest waiting band is another');
  const parked = sum(bands, (band) => band.aside.waiting.parked);
  check(parked === backlog.bands.parked, `${backlog.bands.parked} requests are parked, the bands have ${parked}`);
}

/** A flow is listed as idle exactly while nothing of it waits or is tracked in flight. */
function checkIdleFlows({ backlog }: Engine, bands: readonly PriorityBand[], check: Check): void {
  const { flows: table } = backlog.bands;
  const idle = new Set(table.idle);
  for (const band of bands) {
    for (const flow of band.flows.values()) {
      const isIdle = flow.waiting === 0 && flow.trackedInFlight === 0;
      check(
        idle.delete(flow) === isIdle && flow.isIdle === isIdle,
        `flow ${JSON.stringify(flow.name)}: expected idle ${isIdle}`,
      );
    }
  }
  check(idle.size === 0, `${idle.size} forgotten flows are listed as idle`);
  const known = sum(bands, (band) => band.flows.size);
  check(known === table.size, `${table.size} flows are counted, ${known} are known`);
}

/** Every waiting request stands in one queue, can still be settled, and has its deadline and its signal watched. */
function checkWaits({ backlog }: Engine, items: readonly QueueItem[], check: Check): void {
  check(new Set(items).size === items.length, 'a request stands in two places');
  for (const item of items) {
    const name = `request ${item.sequence}`;
    check(item.isWaiting, `${name} is settled and still stands in a queue`);
    check(item.abortGroup?.signal === item.request?.signal, `${name}: its signal is not the one that is listened to`);
    const mayExpire = backlog.expiry.deadlineOf(item) < Number.POSITIVE_INFINITY;
    check(
      mayExpire === (item.deadlines !== undefined),
      `${name}: its deadline is not kept, or it has none and one is kept`,
    );
  }
}

/** In flight = leases handed out − leases that ended = seats at the endpoints. */
function checkSeats({ seats, eviction }: Engine, check: Check): void {
  const { inFlight, inFlightTokens, dispatched, released, pool } = seats;
  check(
    inFlight === dispatched - released,
    `${inFlight} leases are in flight, ${dispatched} were handed out and ${released} ended`,
  );
  check(inFlight >= 0 && inFlightTokens >= 0, `${inFlight} leases of ${inFlightTokens} tokens are in flight: below 0`);
  check(inFlight === seats.running.size, `${inFlight} leases are in flight, ${seats.running.size} are listed`);
  check(inFlight > 0 || inFlightTokens === 0, `${inFlightTokens} tokens are in flight without a lease`);
  const members = sum(pool.endpoints, (endpoint) => endpoint.inFlightRequests);
  check(
    members === pool.inFlightRequests,
    `the endpoints have ${members} seats taken, the pool ${pool.inFlightRequests}`,
  );
  const tokensOfMembers = sum(pool.endpoints, (endpoint) => endpoint.inFlightTokens);
  check(
    tokensOfMembers === pool.inFlightTokens,
    `the endpoints have ${tokensOfMembers} tokens booked, the pool ${pool.inFlightTokens}`,
  );
  for (const [priority, candidates] of eviction?.evictor.evictable ?? []) {
    for (const candidate of candidates) {
      const { lease } = candidate;
      const isRight = lease.candidacy === candidate && lease.priority === priority && !lease.isReleased;
      check(isRight, `request ${lease.item.sequence} may be evicted from priority ${priority} and does not run there`);
    }
  }
  // A pool may have other controllers, and an endpoint may have left it with seats taken.
  const isAlone = pool.implicitEndpoint !== undefined;
  check(!isAlone || inFlight === pool.inFlightRequests, `${inFlight} leases hold ${pool.inFlightRequests} seats`);
  for (const { id, inFlightRequests, inFlightTokens: tokens } of pool.endpoints) {
    check(
      inFlightRequests >= 0 && tokens >= 0,
      `endpoint ${id} has ${inFlightRequests} seats and ${tokens} tokens taken: below 0`,
    );
  }
}

/** A flow is parked only while its first request has no room under its cap; a cap counts what runs. */
function checkCaps({ parking: { caps }, seats }: Engine, bands: readonly PriorityBand[], check: Check): void {
  for (const band of bands) {
    for (const { name, head, waitsFor } of band.aside.of('parked')) {
      const isRight = head !== undefined && caps?.obstacle(head, band) === waitsFor;
      check(isRight, `flow ${JSON.stringify(name)} of band ${band.priority} is parked without need`);
    }
  }
  if (caps === undefined) return;
  const running = [...seats.running];
  for (const lease of running) {
    const account = caps.stateOf(lease, lease.band)?.account;
    if (account === undefined) continue;
    const mine = running.filter(({ fairnessId }) => fairnessId === lease.fairnessId);
    const [inBand, inAll] = [mine.filter(({ priority }) => priority === lease.priority).length, mine.length];
    const isRight = account.requests === inBand || account.requests === inAll;
    check(isRight, `${JSON.stringify(lease.fairnessId)} is booked with ${account.requests} requests and runs ${inAll}`);
  }
}

/**
 * No wake-up is lost. Requests wait only before a closed gate or until the next turn. A gate whose detector announces
 * nothing has a timer.
 */
function checkWakeUp(engine: Engine, check: Check): void {
  const { backlog, gate, operation, dispatcher, wakeups } = engine;
  if (operation.isBusy) return; // asked from inside an operation, which ends with a walk
  check(!operation.isWorkWanted, 'the walk is due and did not run');
  if (backlog.waiting === backlog.bands.parked || wakeups.isPaused) return;
  check(dispatcher.isGateClosed, 'requests wait, and the gate is not said to be closed');
  check(
    wakeups.poller.isSet || backlog.isPoolEmpty || gate.recheckMs === Number.POSITIVE_INFINITY,
    'nothing looks at the closed gate again',
  );
}

/** A closed controller holds nothing. */
function checkEnd({ shutdown: { state }, backlog }: Engine, check: Check): void {
  check(state !== 'closed' || backlog.waiting === 0, `${backlog.waiting} requests wait in a closed controller`);
  check(state !== 'closed' || !backlog.expiry.isUsed, 'a closed controller has a timer');
}

function sum<T>(all: readonly T[], figure: (one: T) => number): number {
  return all.reduce((total, one) => total + figure(one), 0);
}
