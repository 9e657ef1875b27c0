/** One controller, and the books that its host keeps of it by its own reckoning. */
import {
  type Drop,
  type EndpointPool,
  type EndpointView,
  FlowConfigError,
  FlowControlError,
  FlowController,
  type FlowControllerOptions,
  type FlowKey,
  type FlowRequest,
  type ItemView,
  type Lease,
  type Outcome,
  overviewOf,
  type SaturationDetector,
} from '../../src/index.js';
import { audit } from '../../src/testing/index.js';
import { strictOrder } from '../../src/tiers/1-priority/band-order.js';
import type { Flow, InFlightCap } from '../../src/tiers/flow.js';
import type { FlowView } from '../../src/types/index.js';
import type { CountedSignal } from './counted-signal.js';
import { constraintsOf, engineOf, isPaused, isSilent, itemInside, optionsOf, ownDetectorOf } from './inside.js';
import { pairs } from './pairs.js';
import { reached } from './reached.js';
import { flowName, groupsOf, mayServe, room } from './room.js';
import { TurnsTaken } from './turns-taken.js';
import type { WorldClock } from './world-clock.js';

export interface TestRequest extends FlowRequest {
  readonly id: number;
  readonly sessionId?: string;
  readonly affinityKey?: string;
  readonly inputTokens?: number;
  readonly maxOutputTokens?: number;
  /** Which endpoints it may go to, where the filter `byModel` is in force; undefined: all. */
  readonly model?: string | undefined;
  readonly source?: CountedSignal | undefined;
}

/** One call of `enqueue`, `tryEnqueue`, `run` or `requeue`. */
export interface Ticket {
  readonly request: TestRequest;
  readonly key: { readonly fairnessId: string; readonly priority: number };
  readonly isRun: boolean;
  /** It waits for the second time, after an eviction. */
  readonly isRequeued: boolean;
  isWorking: boolean;
  state: 'handed in' | 'waiting' | 'dispatched' | 'dropped' | 'turned away';
  item: ItemView | undefined;
  waitingSinceMs: number;
  /** By the event. */
  lease: Lease | undefined;
  drop: Drop | undefined;
  /** How often the caller got an answer, and the last one. */
  answers: number;
  answer: Outcome | undefined;
}

/** How the gate of a host decides, in terms that the books can follow. */
export interface GateRules {
  /** Undefined where the gate's own reading has to do. */
  saturation: (() => number) | undefined;
  ceilings: ((saturation: number, priorities: readonly number[]) => number[]) | undefined;
  /** Nothing announces a fall of the saturation. */
  isSilent: boolean;
  /** It may open by time alone, between two looks at it. */
  opensByTime?: boolean;
}

interface Seat {
  seatedAtMs: number;
  /** No report of its endpoint can have counted it. */
  isUnsampled: boolean;
}

/** The built-in orders once more, in plain words. */
const orders: Readonly<Record<string, (a: ItemView, b: ItemView) => number>> = {
  'fcfs-ordering-policy': () => 0,
  'edf-ordering-policy': (a, b) =>
    less(a.enqueuedAtMs + a.ttlMs, b.enqueuedAtMs + b.ttlMs) || less(a.enqueuedAtMs, b.enqueuedAtMs),
  'slo-deadline-ordering-policy': (a, b) =>
    less(a.ttftDeadlineAtMs, b.ttftDeadlineAtMs) || less(a.receivedAtMs, b.receivedAtMs),
};

function less(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

export class Host {
  readonly flow: FlowController<TestRequest>;
  readonly tickets: Ticket[] = [];
  /** The newest of each request. */
  readonly ticketFor = new Map<TestRequest, Ticket>();
  readonly waiting = new Set<Ticket>();
  readonly leases: Lease[] = [];
  readonly seats = new Map<Lease, Seat>();
  readonly turns = new TurnsTaken();
  /** Requests that lost their places to newcomers. */
  private displaced = 0;
  readonly faults: string[];
  gate: GateRules;
  /** Rises with everything that happens. */
  activity = 0;
  /** What the admission policy admitted and was not given back; undefined when nobody counts. */
  admitted: (() => number) | undefined = undefined;
  reconfiguredAtMs = Number.NaN;
  /** Plugins and listeners change the pool in the middle of decisions. */
  isMeddledWith = false;
  closedAtMs = Number.POSITIVE_INFINITY;
  private closeCalledAtMs = Number.POSITIVE_INFINITY;
  private evictedAtMs = Number.NEGATIVE_INFINITY;
  isClosed = false;
  private isPoolEmpty: boolean;
  private wasReady: boolean;
  private flippedAtMs = Number.NEGATIVE_INFINITY;
  /** Since when a request waits that may go, while nothing happens. */
  private leftSince = { atMs: Number.NaN, activity: Number.NaN };
  private lastSequence = -1;
  private readonly overdue = new Set<Lease>();
  private readonly evicted = new Set<Lease>();
  /** Who was displaced since a request was queued last. */
  private readonly displacedLast: { victim: Ticket; flow: FlowView; isOwn: boolean }[] = [];
  private readonly clock: WorldClock;
  private readonly pool: EndpointPool | undefined;

  constructor(options: FlowControllerOptions<TestRequest>, gate: GateRules, clock: WorldClock, faults: string[]) {
    this.flow = new FlowController<TestRequest>({ ...options, clock });
    this.gate = gate;
    this.clock = clock;
    this.pool = options.pool;
    this.faults = faults;
    this.isPoolEmpty = engineOf(this.flow).backlog.isPoolEmpty;
    this.wasReady = !this.isPoolEmpty;
    this.keepBooks();
  }

  // What the host does.

  open(request: TestRequest, key: FlowKey, isRun = false, isRequeued = false): Ticket {
    const { fairnessId, priority = 0 } = key;
    const ticket: Ticket = {
      request,
      key: { fairnessId, priority },
      isRun,
      isRequeued,
      isWorking: false,
      state: 'handed in',
      item: undefined,
      waitingSinceMs: Number.NaN,
      lease: undefined,
      drop: undefined,
      answers: 0,
      answer: undefined,
    };
    this.tickets.push(ticket);
    this.ticketFor.set(request, ticket);
    return ticket;
  }

  enqueue(request: TestRequest, key: FlowKey): void {
    const ticket = this.open(request, key);
    const before = this.displaced;
    const arrived = this.arrivedAt(ticket);
    void this.flow.enqueue(request, key).then((outcome) => this.answered(ticket, outcome));
    this.expectNeeded(ticket, before);
    this.expectArrival(ticket, arrived, 1);
  }

  tryEnqueue(request: TestRequest, key: FlowKey): void {
    const ticket = this.open(request, key);
    const before = this.displaced;
    const arrived = this.arrivedAt(ticket);
    const outcome = this.flow.tryEnqueue(request, key);
    this.expectNeeded(ticket, before);
    this.expectArrival(ticket, arrived, outcome === undefined ? 0 : 1);
    if (outcome !== undefined) this.answered(ticket, outcome);
    else {
      this.expect(ticket.state === 'handed in', `tryEnqueue answered nothing to a request that was ${ticket.state}`);
      ticket.state = 'turned away';
      this.tickets.splice(this.tickets.indexOf(ticket), 1);
      this.ticketFor.delete(request);
    }
  }

  run(request: TestRequest, key: FlowKey, work: () => Promise<string> | string): void {
    const ticket = this.open(request, key, true);
    const watched = async (): Promise<string> => {
      ticket.isWorking = true;
      try {
        return await work();
      } finally {
        ticket.isWorking = false;
      }
    };
    void this.flow.run(request, key, watched).then(
      () => this.answered(ticket, undefined),
      (error: unknown) => this.answered(ticket, error instanceof FlowControlError ? error.drop : undefined),
    );
  }

  /** Nobody loses a place to a newcomer that gets none. */
  private expectNeeded({ state, drop }: Ticket, displacedBefore: number): void {
    // A request that got a place may lose it when its turn comes at once.
    const isGivenUp = drop?.type === 'EvictedOther' && drop.reason !== 'shutting-down';
    const isIn = state === 'waiting' || state === 'dispatched' || isGivenUp;
    this.expect(
      isIn || this.isMeddledWith || this.displaced === displacedBefore,
      `displaced for a newcomer that is ${state}`,
    );
  }

  private arrivedAt({ key }: Ticket): number {
    return engineOf(this.flow).backlog.bands.get(key.priority)?.traffic.arrived ?? 0;
  }

  /** An arrival counts once: a host that was told to wait hands the request in once more. Bands come and go meanwhile. */
  private expectArrival(ticket: Ticket, before: number, arrivals: number): void {
    const after = this.arrivedAt(ticket);
    const isRight = after === before + arrivals || after <= arrivals;
    this.expect(this.isMeddledWith || isRight, `${before} arrivals, and ${after} after ${arrivals} more`);
  }

  requeue(lease: Lease): void {
    const before = this.tickets.find((ticket) => ticket.lease === lease);
    if (before === undefined) return this.fail('nobody holds this lease');
    const mayRequeue = (lease.isEvicted || lease.isPutOff) && !lease.isReleased;
    const ticket = mayRequeue ? this.open(before.request, before.key, false, true) : undefined;
    void lease.requeue().then(
      (outcome) =>
        ticket === undefined ? this.fail('a lease was put back that must not be') : this.answered(ticket, outcome),
      (error: unknown) =>
        this.expect(ticket === undefined && error instanceof FlowConfigError, `requeue refused: ${String(error)}`),
    );
  }

  release(lease: Lease): void {
    lease.release();
  }

  bind(lease: Lease, endpoint: EndpointView): void {
    const before = lease.endpoint;
    lease.bind(endpoint);
    if (before !== endpoint)
      this.seats.set(lease, { seatedAtMs: this.clock.now(), isUnsampled: endpoint.metrics !== undefined });
  }

  close(drainMs: number): void {
    this.closedAtMs = Math.min(this.closedAtMs, this.clock.now() + drainMs);
    this.closeCalledAtMs = this.clock.now();
    void this.flow.close({ drainMs }).then(() => {
      this.activity++;
      this.isClosed = true;
    });
  }

  /** Of what waits of a fairness ID, flow by flow. */
  weightsOf(fairnessId: string): number[] {
    const bands = engineOf(this.flow).backlog.bands.all();
    const flows = bands.flatMap((band) =>
      (band.waitingFlows() as Flow[]).filter((each) => each.fairnessId === fairnessId),
    );
    return flows.map(({ weight }) => weight);
  }

  /** Seats taken at an endpoint, undefined being the implicit one. */
  seatsAt(endpoint: EndpointView | undefined): Lease[] {
    return this.leases.filter((lease) => !lease.isReleased && lease.endpoint === endpoint);
  }

  unsampledAt(endpoint: EndpointView): number {
    return this.seatsAt(endpoint).filter((lease) => this.seats.get(lease)?.isUnsampled).length;
  }

  /** The endpoint is about to report what it saw at `sampledAtMs`. */
  sampled(endpoint: EndpointView, sampledAtMs: number): void {
    for (const lease of this.seatsAt(endpoint)) {
      const seat = this.seats.get(lease);
      if (seat !== undefined && seat.seatedAtMs <= sampledAtMs) seat.isUnsampled = false;
    }
  }

  // The books.

  private answered(ticket: Ticket, outcome: Outcome | undefined): void {
    this.activity++;
    ticket.answers++;
    ticket.answer = outcome;
  }

  private keepBooks(): void {
    const { flow } = this;
    flow.on('queued', ({ item, waitingInBand }) => {
      this.activity++;
      const ticket = this.ticketOf(item.request, 'queued', 'handed in');
      if (ticket === undefined) return;
      if (!ticket.isRequeued) {
        this.expectRoomFor(ticket, item);
        this.expectFairExchange(ticket, item);
        this.expect(item.sequence > this.lastSequence, `sequence ${item.sequence} after ${this.lastSequence}`);
        this.lastSequence = item.sequence;
      }
      ticket.state = 'waiting';
      ticket.item = item;
      ticket.waitingSinceMs = this.clock.now();
      this.waiting.add(ticket);
      const flowOfItem = itemInside(item).flow as Flow;
      if (flowOfItem.waiting === 1) this.turns.beganToWait(flowOfItem);
      const inBand = [...this.waiting].filter((other) => other.key.priority === ticket.key.priority).length;
      this.expect(waitingInBand === inBand, `queued: ${waitingInBand} announced to wait in the band, ${inBand} do`);
    });
    flow.on('dispatched', ({ item, lease, endpoint, queuedMs }) => {
      this.activity++;
      const ticket = this.ticketOf(item.request, 'dispatched', 'handed in', 'waiting');
      if (ticket === undefined) return;
      this.expectTurnOf(ticket, item);
      this.expectBelowCap(item);
      if (ticket.state === 'waiting') this.expectRounds(item);
      if (ticket.state === 'handed in') this.expectFit(ticket);
      this.expect(
        this.isTimeOdd || queuedMs === this.clock.now() - item.enqueuedAtMs,
        `dispatched after ${queuedMs} ms`,
      );
      this.expect(
        lease.endpoint === endpoint && (this.pool === undefined) === (endpoint === undefined),
        'the wrong endpoint was announced',
      );
      const groups = groupsOf(this.flow, item.priority)?.map(({ group }) => group);
      const place = groups?.indexOf(endpoint?.labels.group ?? '') ?? 0;
      // From inside a plugin the label may have changed since the choice.
      this.expect(place >= 0 || this.isMeddledWith, `went to an endpoint outside ${groups?.join(', ')}`);
      if (place > 0) reached.saw('a request goes to the second group of its band');
      this.noteDispatched(ticket);
      ticket.state = 'dispatched';
      ticket.lease = lease;
      this.waiting.delete(ticket);
      this.leases.push(lease);
      this.seats.set(lease, { seatedAtMs: lease.dispatchedAtMs, isUnsampled: endpoint?.metrics !== undefined });
    });
    flow.on('dropped', ({ request, outcome }) => {
      this.activity++;
      const hasWaited = outcome.type.startsWith('Evicted') && outcome.reason !== 'evicted';
      const ticket = this.ticketOf(request, outcome.type, hasWaited ? 'waiting' : 'handed in');
      if (ticket === undefined) return;
      this.expectGround(ticket, outcome);
      reached.saw(`dropped: ${outcome.reason}`);
      if (ticket.isRequeued) reached.saw('a request that was put back is dropped');
      if (
        outcome.type === 'EvictedOther' &&
        outcome.reason === 'shutting-down' &&
        this.clock.now() > this.closeCalledAtMs
      )
        reached.saw('a drain ends while requests wait');
      if (outcome.reason === 'revoked') this.turns.forget();
      ticket.state = 'dropped';
      ticket.drop = outcome;
      if (outcome.reason === 'displaced') this.displaced++;
      this.waiting.delete(ticket);
    });
    const released = new Set<Lease>();
    flow.on('released', ({ lease }) => {
      this.activity++;
      this.expect(
        lease.isReleased && !released.has(lease) && this.leases.includes(lease),
        'a lease was released twice, or never given out',
      );
      released.add(lease);
    });
    flow.on('evicted', ({ lease }) => {
      this.evictedAtMs = this.clock.now();
      this.activity++;
      this.expect(!this.evicted.has(lease) && lease.isEvicted && lease.priority < 0, 'evicted twice, or not sheddable');
      this.expect(lease.signal.aborted, 'evicted without a signal');
      const isWanted = [...this.waiting].some(({ key }) => key.priority > lease.priority);
      this.expect(isWanted, 'evicted for nobody');
      this.evicted.add(lease);
      reached.saw('a running request is evicted');
      if (this.reconfiguredAtMs === this.evictedAtMs)
        reached.saw('a running request is evicted in the turn of a reload');
      if (this.isClosing) reached.saw('a running request is evicted during a drain');
    });
    flow.on('leaseOverdue', ({ lease, heldMs, isTakenBack }) => {
      this.activity++;
      const { maxLeaseMs, overdueLeases } = optionsOf(flow);
      this.expect(
        !this.overdue.has(lease) && this.leases.includes(lease),
        'a lease was overdue twice, or never given out',
      );
      this.expect(this.isTimeOdd || heldMs >= maxLeaseMs, `overdue after ${heldMs} ms of ${maxLeaseMs}`);
      this.expect(isTakenBack === (overdueLeases === 'release'), 'an overdue lease was taken back, or kept, wrongly');
      this.overdue.add(lease);
      reached.saw(isTakenBack ? 'an overdue lease is taken back' : 'a lease is overdue');
    });
    flow.on('flowRemoved', () => reached.saw('a flow is removed'));
    flow.on('bandRemoved', () => reached.saw('a band is removed'));
    flow.on('regime', ({ isPoolEmpty }) => {
      this.activity++;
      this.expect(isPoolEmpty !== this.isPoolEmpty, 'a regime began anew without an end');
      this.isPoolEmpty = isPoolEmpty;
      this.wasReady ||= !isPoolEmpty;
      if (this.waiting.size > 0)
        reached.saw(`the pool ${isPoolEmpty ? 'empties' : 'has a server again'} while requests wait`);
      this.flippedAtMs = this.clock.now();
    });
  }

  private noteDispatched({ state, isRequeued, request }: Ticket): void {
    const { flow } = this;
    pairs.dispatchedUnder(optionsOf(flow));
    if (this.isClosing) reached.saw('a request is dispatched during a drain');
    if (this.reconfiguredAtMs === this.clock.now()) reached.saw('a request is dispatched in the turn of a reload');
    if (
      optionsOf(flow).holBlocking !== 'band' &&
      [...this.waiting].some((other) => other.request.model !== request.model)
    )
      reached.saw('a request goes to a server that another one could not go to');
    if (!isRequeued || state !== 'waiting') return;
    const before = this.tickets.find((ticket) => ticket.request === request)?.lease;
    reached.saw(
      before?.isPutOff === true
        ? 'a request that its server put off is put back, waits and runs again'
        : 'an evicted request is put back, waits and runs again',
    );
  }

  /** The host is about to bring new options. */
  noteReload(changes: Readonly<Record<string, unknown>>): void {
    if (this.waiting.size === 0) return;
    reached.saw('a reload while requests wait');
    const had = optionsOf(this.flow).constraints.length > 0;
    if (had && 'constraints' in changes) reached.saw('a reload takes a constraint while requests wait');
    if (this.leases.some((lease) => lease.isEvicted && !lease.isReleased))
      reached.saw('a reload while an evicted request holds its seat');
    if ([...this.waiting].some(({ isRequeued }) => isRequeued))
      reached.saw('a reload while a request that was put back waits');
  }

  private ticketOf(request: unknown, event: string, ...states: Ticket['state'][]): Ticket | undefined {
    const ticket = this.ticketFor.get(request as TestRequest);
    this.expect(
      ticket !== undefined && states.includes(ticket.state),
      `${event} came to a request that is ${ticket?.state ?? 'unknown'}`,
    );
    return ticket;
  }

  /** Dispatched without a wait: it took no place in the queue, but must be one that the queue could ever take. */
  private expectFit({ key, request }: Ticket): void {
    const { limits, flows } = optionsOf(this.flow);
    const band = engineOf(this.flow).backlog.bands.get(key.priority);
    const all = [limits, band?.settings.limits, flows.get(key.fairnessId)?.limits ?? band?.settings.flowLimits];
    const fits = all.every((each) => each === undefined || (each.maxRequests > 0 && request.byteSize <= each.maxBytes));
    this.expect(fits, 'a request larger than a limit was let through');
  }

  /** Those who left for the request had more waiting than it has now, or stood in lower bands. */
  private expectFairExchange({ key }: Ticket, item: ItemView): void {
    const mine = itemInside(item).flow;
    const gone = this.displacedLast.splice(0);
    for (const { victim, isOwn } of gone) {
      const { priority } = victim.key;
      this.expect(
        isOwn ? priority === key.priority : priority < key.priority,
        `priority ${priority} left for ${key.priority}`,
      );
    }
    const last = gone.filter(({ isOwn }) => isOwn).at(-1);
    if (last === undefined || mine === undefined) return;
    // By then the newcomer's flow counts it, and the victim's flow has lost the last one only: before, it must have
    // stood higher.
    const { flow, victim } = last;
    const before = (flow.waiting + 1) / flow.weight;
    const bytesBefore = (flow.waitingBytes + victim.request.byteSize) / flow.weight;
    const isFair = mine.waiting / mine.weight < before || mine.waitingBytes / mine.weight < bytesBefore + 1e-9;
    this.expect(mine !== flow && isFair, `a flow of ${before} gave way to one that has ${mine.waiting / mine.weight}`);
  }

  /** Dispatched: its fairness ID ran less than its cap allows, or nothing. */
  private expectBelowCap(item: ItemView): void {
    const { fairnessId, priority, tokens } = item;
    if (this.capOf(item) === undefined || this.isMeddledWith) return;
    this.expect(this.isBelowCap(item), `${fairnessId} of priority ${priority} exceeds its cap with ${tokens} tokens`);
  }

  private capOf({ fairnessId, priority }: ItemView): { cap: InFlightCap; isOfBand: boolean } | undefined {
    const own = optionsOf(this.flow).flows.get(fairnessId)?.maxInFlight;
    if (own !== undefined) return { cap: own, isOfBand: false };
    const cap = engineOf(this.flow).backlog.bands.get(priority)?.settings.maxInFlightPerFlow;
    return cap && { cap, isOfBand: true };
  }

  private isBelowCap(item: ItemView): boolean {
    const state = this.capOf(item);
    if (state === undefined) return true;
    const { cap, isOfBand } = state;
    const running = this.leases.filter(
      ({ isReleased, fairnessId, priority }) =>
        !isReleased && fairnessId === item.fairnessId && (!isOfBand || priority === item.priority),
    );
    const tokens = sumOf(running, (lease) => lease.tokens);
    return running.length === 0 || (running.length < cap.maxRequests && tokens + item.tokens <= cap.maxTokens);
  }

  /** Accepted: it must have fitted. */
  private expectRoomFor({ key, request }: Ticket, item: ItemView): void {
    const band = engineOf(this.flow).backlog.bands.get(key.priority);
    if (band === undefined) return this.fail(`no band for priority ${key.priority}`);
    const inBand = [...this.waiting].filter((other) => other.key.priority === key.priority);
    const { flow } = itemInside(item);
    const inFlow = flow === undefined ? [] : inBand.filter((other) => itemInside(other.item as ItemView).flow === flow);
    const bytes = (tickets: Iterable<Ticket>): number =>
      [...tickets].reduce((sum, other) => sum + other.request.byteSize, 0);
    const { limits } = optionsOf(this.flow);
    for (const [scope, waiting, { maxRequests, maxBytes }] of [
      ['global', [...this.waiting], limits],
      ['band', inBand, band.settings.limits],
      ['flow', inFlow, optionsOf(this.flow).flows.get(key.fairnessId)?.limits ?? band.settings.flowLimits],
    ] as const) {
      this.expect(
        waiting.length + 1 <= maxRequests,
        `${scope}: let in as number ${waiting.length + 1} of ${maxRequests}`,
      );
      this.expect(
        bytes(waiting) + request.byteSize <= maxBytes,
        `${scope}: let in ${request.byteSize} B to ${bytes(waiting)} of ${maxBytes}`,
      );
    }
  }

  /** Dispatched: nothing else may have come before it. */
  private expectTurnOf(ticket: Ticket, item: ItemView): void {
    const { priority } = ticket.key;
    const waited = ticket.state === 'waiting';
    const isExact = optionsOf(this.flow).holBlocking === 'band';
    const hasCaps = engineOf(this.flow).parking.caps !== undefined;
    for (const other of this.isStrict && isExact && !hasCaps ? this.waiting : []) {
      const overtaken = waited ? other.key.priority > priority : other.key.priority >= priority;
      if (overtaken)
        this.fail(`priority ${priority}${waited ? '' : ' (never waited)'} overtook priority ${other.key.priority}`);
    }
    const settings = engineOf(this.flow).backlog.bands.get(priority)?.settings;
    const order = orders[settings?.ordering.type ?? ''];
    // Deadlines of requests that are given up are others.
    const isPlain = settings?.ordering.isInfeasible === undefined;
    if (settings === undefined || order === undefined || !isPlain || !waited) return;
    const isShared = 'sharedQueue' in settings.fairness;
    for (const { key, item: other } of this.waiting) {
      if (other === undefined || other === item || key.priority !== priority) continue;
      const otherFlow = itemInside(other).flow as Flow;
      const isOwn = otherFlow === itemInside(item).flow;
      if (!isShared && !isOwn) continue;
      // Where flows are held back, first requests of one class keep their order.
      if (!isOwn && hasCaps) continue;
      const isFree = !isExact && !isOwn;
      if (
        isFree &&
        (this.gate.saturation === undefined || otherFlow.head !== other || classOf(other) !== classOf(item))
      )
        continue;
      const before = order(other, item) || other.sequence - item.sequence;
      if (before < 0) this.fail(`${settings.ordering.type}: ${item.sequence} overtook ${other.sequence}`);
    }
  }

  /** Where flows take turns, none takes more than its own while another waits. */
  private expectRounds(item: ItemView): void {
    const band = engineOf(this.flow).backlog.bands.get(item.priority);
    const hasCaps = engineOf(this.flow).parking.caps !== undefined;
    const isExact = optionsOf(this.flow).holBlocking === 'band' && !this.isMeddledWith && !hasCaps;
    if (band === undefined || !isExact || band.settings.fairness.type !== 'round-robin-fairness-policy') return;
    const fault = this.turns.served(itemInside(item).flow as Flow, band.waitingFlows() as readonly Flow[]);
    if (fault !== undefined) this.fail(fault);
  }

  /**
   * How late a request may end at most: where a turn shares a reading of the clock, its deadline lies up to 1 ms after
   * it.
   */
  private get latestMs(): number {
    return this.clock.nextTurn === undefined ? 0 : 1;
  }

  /** Instants and durations are not to be trusted. */
  private get isTimeOdd(): boolean {
    return this.clock.runsBackwards;
  }

  /** Bands go strictly by priority. A share of a template counts before any band is made from it. */
  private get isStrict(): boolean {
    const { bandOrder, bands, defaultBand, defaultNegativeBand } = optionsOf(this.flow);
    return (
      bandOrder === strictOrder && [...bands, defaultBand, defaultNegativeBand].every(({ minShare }) => minShare === 0)
    );
  }

  /** Dropped: there must have been a reason, the one that is told. */
  private expectGround(ticket: Ticket, drop: Drop): void {
    const { key, request, item } = ticket;
    const nowMs = this.clock.now();
    this.expect(drop.fairnessId === key.fairnessId && drop.priority === key.priority, 'a drop names another flow');
    const waitedMs = item === undefined ? 0 : nowMs - item.enqueuedAtMs;
    this.expect(ticket.isRequeued || this.isTimeOdd || drop.queuedMs === waitedMs, `dropped after ${drop.queuedMs} ms`);
    switch (drop.type) {
      case 'RejectedCapacity':
      case 'RejectedNoEndpoints': {
        const { limit } = drop;
        if (drop.reason === 'refused' || drop.reason === 'overloaded' || drop.reason === 'over-budget')
          return this.expect(drop.policy !== undefined, `${drop.reason} by nobody`);
        if (drop.reason === 'no-endpoints') return this.expectUnserved(request);
        if (drop.reason === 'over-quota') return this.expectJudged(drop);
        this.expect(
          (drop.type === 'RejectedNoEndpoints') === this.isPoolEmpty,
          `${drop.type} while isPoolEmpty is ${this.isPoolEmpty}`,
        );
        if (limit === undefined) return this.expect(drop.reason === 'max-bands', `${drop.reason} names no limit`);
        const add = limit.resource === 'bytes' ? request.byteSize : 1;
        this.expect(
          drop.reason === `${limit.scope}-max-${limit.resource}`,
          `${drop.reason} tells of ${limit.scope} ${limit.resource}`,
        );
        return this.expect(
          limit.used + add > limit.max,
          `${drop.reason}: ${limit.used} + ${add} fits into ${limit.max}`,
        );
      }
      case 'EvictedTTL':
      case 'EvictedNoEndpoints': {
        // A request that no member serves goes at once, also while no member can be had.
        const hasMembers = (this.pool?.endpoints.length ?? 0) > 0;
        if (
          drop.type === 'EvictedNoEndpoints' &&
          (!this.isPoolEmpty || (hasMembers && (this.isMeddledWith || !this.isServed(request))))
        ) {
          return this.expectUnserved(request);
        }
        // Timers are set in whole ms.
        const lateMs = Math.floor(nowMs - this.deadlineOf(ticket));
        const isDue =
          (lateMs >= 0 && lateMs <= this.latestMs) ||
          (this.reconfiguredAtMs === nowMs && this.deadlineOf(ticket) < nowMs);
        // A server that does not serve it may have come and gone in the same turn.
        const mayBeUnserved = this.isMeddledWith && drop.type === 'EvictedNoEndpoints';
        const isTold = isDue || mayBeUnserved || this.isTimeOdd;
        this.expect(isTold, `${drop.type} at ${nowMs}, due at ${this.deadlineOf(ticket)}`);
        return this.expect(
          (drop.type === 'EvictedNoEndpoints') === this.isPoolEmpty,
          `${drop.type} in the wrong regime`,
        );
      }
      case 'EvictedContextCancelled':
        return this.expect(request.signal?.aborted === true, 'cancelled without an abort');
      case 'EvictedOther':
        if (drop.reason === 'displaced') return this.expectDisplaced(ticket, drop);
        if (drop.reason === 'over-quota') return this.expectJudged(drop);
        if (drop.reason === 'revoked')
          return this.expect(optionsOf(this.flow).onDispatch !== undefined, 'revoked by nobody');
        if (drop.reason === 'infeasible')
          return this.expect(
            engineOf(this.flow).backlog.bands.get(key.priority)?.policies.ordering.dropsInfeasible === true,
            'given up by no policy',
          );
        if (drop.reason === 'evicted') return this.expect(ticket.isRequeued, 'dropped as evicted, and never ran');
        return this.expect(
          this.closedAtMs <= nowMs || (this.isTimeOdd && this.isClosing),
          'evicted although nobody closed',
        );
      case 'RejectedOther':
        return this.expect(
          drop.reason === 'cancelled' ? request.signal?.aborted === true : this.closedAtMs < Number.POSITIVE_INFINITY,
          `rejected: ${drop.reason}`,
        );
    }
  }

  /** Some quota says when there is room, and that is too late. */
  private expectJudged({ retryAfterMs }: Drop): void {
    const { areAny: judgesRequests } = engineOf(this.flow).gate.constraints;
    this.expect(judgesRequests && (retryAfterMs ?? 0) > 0, `over a quota for ${retryAfterMs} ms`);
  }

  /** Nobody in the pool may take it. */
  private expectUnserved(request: TestRequest): void {
    const hasMembers = (this.pool?.endpoints.length ?? 0) > 0;
    this.expect(
      this.isMeddledWith || (hasMembers && !this.isServed(request)),
      'dropped for want of endpoints, and there are some',
    );
  }

  /** A member of the pool may take it, be it available or not. */
  private isServed(request: TestRequest): boolean {
    return this.pool?.endpoints.some((endpoint) => mayServe(this.flow, endpoint, request) === true) ?? false;
  }

  /** Displaced: the newest of the lowest band, or of its flow. */
  private expectDisplaced(victim: Ticket, { limit }: Drop): void {
    if (optionsOf(this.flow).overflow === 'fair') {
      const flow = itemInside(victim.item as ItemView).flow as Flow;
      for (const { item, request } of this.waiting) {
        const isNewer =
          item !== undefined && itemInside(item).flow === flow && item.sequence > (victim.item?.sequence ?? 0);
        if (isNewer && request.byteSize > 0) this.fail('displaced an older request of a flow than it must');
      }
      this.displacedLast.push({ victim, flow, isOwn: limit !== undefined });
      return;
    }
    this.expect(
      optionsOf(this.flow).overflow === 'displace' && victim.key.priority < 0,
      'displaced though it need not leave',
    );
    for (const { key, item } of this.waiting) {
      if (key.priority < victim.key.priority) this.fail(`displaced ${victim.key.priority} before ${key.priority}`);
      const isNewer = key.priority === victim.key.priority && (item?.sequence ?? 0) > (victim.item?.sequence ?? 0);
      if (isNewer) this.fail('displaced an older request than it must');
    }
  }

  private deadlineOf({ item, waitingSinceMs }: Ticket): number {
    if (item === undefined) return Number.NaN;
    const { noEndpointRequestTtlMs, hasOwnNoEndpointTtl } = optionsOf(this.flow);
    const unnamed = Math.min(noEndpointRequestTtlMs, item.ttlMs, this.wasReady ? Number.POSITIVE_INFINITY : 5000);
    const ofEmpty = hasOwnNoEndpointTtl ? noEndpointRequestTtlMs : unnamed;
    const budget = this.isPoolEmpty ? ofEmpty : item.ttlMs;
    const longest = hasOwnNoEndpointTtl ? Math.max(noEndpointRequestTtlMs, item.ttlMs) : item.ttlMs;
    const most = waitingSinceMs < this.flippedAtMs ? waitingSinceMs + longest : Number.POSITIVE_INFINITY;
    return Math.min(Math.max(waitingSinceMs, this.flippedAtMs) + budget, most);
  }

  // The comparison.

  /**
   * Timers that the controller must have set, no more and no less; there may be one more that looks again: for victims
   * of eviction, and for what time gives room to or gives up.
   */
  get expectedTimers(): [least: number, most: number] {
    const [least, most] = this.timersOfWaiting;
    if (!Number.isFinite(optionsOf(this.flow).maxLeaseMs)) return [least, most];
    const isWatched = this.leases.some((lease) => !lease.isReleased && !this.overdue.has(lease));
    return [least + (isWatched && !this.isClosing ? 1 : 0), most + 1];
  }

  private get timersOfWaiting(): [least: number, most: number] {
    if (this.waiting.size === 0) return [0, 0];
    const isDraining = this.closedAtMs < Number.POSITIVE_INFINITY;
    // What is parked waits for leases, and no gate is looked at for it.
    const { waiting, bands } = engineOf(this.flow).backlog;
    const looksAgain = isPaused(this.flow) || (this.isSilent && !this.isPoolEmpty && waiting > bands.parked);
    const least = 1 + (looksAgain ? 1 : 0) + (isDraining ? 1 : 0);
    const hasVictims = optionsOf(this.flow).eviction !== undefined && !this.isPoolEmpty && !looksAgain;
    const hasMarks = (this.pool?.endpoints ?? []).some(({ overloadedUntilMs }) => overloadedUntilMs > this.clock.now());
    const { areAny: judgesRequests } = engineOf(this.flow).gate.constraints;
    const mayGiveUp = bands.allWaiting().some((band) => band.policies.ordering.dropsInfeasible);
    return [least, (hasVictims || hasMarks || judgesRequests || mayGiveUp) && !looksAgain ? least + 1 : least];
  }

  /**
   * After a step: the books against what the controller says. Every promise that is settled has been answered by now.
   */
  compare(): void {
    const { flow, waiting } = this;
    const { stats, bands, endpoints } = overviewOf(flow, { flows: 'all' });
    const states = this.tickets;
    const count = (state: Ticket['state']): number => states.filter((ticket) => ticket.state === state).length;
    const held = this.leases.filter((lease) => !lease.isReleased);
    this.same('enqueued', stats.enqueued, states.length);
    this.same(
      'enqueued = dispatched + rejected + evicted + waiting',
      stats.dispatched + stats.rejected + stats.evicted + stats.waiting,
      stats.enqueued,
    );
    this.same('waiting', stats.waiting, waiting.size);
    this.same('undecided', count('handed in'), 0);
    this.same('dispatched', stats.dispatched, count('dispatched'));
    this.same('dropped', stats.rejected + stats.evicted, count('dropped'));
    this.same(
      'waiting bytes',
      stats.waitingBytes,
      sumOf([...waiting], ({ request }) => request.byteSize),
    );
    this.same(
      'Σ bands',
      sumOf(bands, (band) => band.waiting),
      stats.waiting,
    );
    this.same(
      'Σ bands, bytes',
      sumOf(bands, (band) => band.waitingBytes),
      stats.waitingBytes,
    );
    for (const band of bands) {
      this.same(
        `Σ flows of ${band.priority}`,
        sumOf(band.flows, (active) => active.waiting),
        band.waiting,
      );
      this.same(
        `Σ flows of ${band.priority}, bytes`,
        sumOf(band.flows, (active) => active.waitingBytes),
        band.waitingBytes,
      );
      const mine = [...waiting].filter(({ key }) => key.priority === band.priority);
      this.same(`waiting in ${band.priority}`, band.waiting, mine.length);
      this.expect(
        band.waiting >= 0 && band.flows.every((active) => active.waiting > 0),
        `band ${band.priority} lists an idle flow`,
      );
    }
    this.same('in flight', stats.inFlight, held.length);
    this.same(
      'tokens in flight',
      stats.inFlightTokens,
      sumOf(held, (lease) => lease.tokens),
    );
    this.same('evicted in flight', stats.evictedInFlight, this.evicted.size);
    if (this.admitted !== undefined) this.same('admitted', this.admitted(), waiting.size + held.length);
    this.same('released', stats.released, this.leases.length - held.length);
    this.same('endpoints', endpoints.length, this.pool?.endpoints.length ?? 0);
    this.expect(!stats.isGateClosed || waiting.size > 0, 'the gate is said to hold requests back, and none waits');
    // A function that fails when it is asked again for what was forgotten tells of no cap.
    const hasFickleCaps = this.isMeddledWith && optionsOf(flow).flows.size === Number.POSITIVE_INFINITY;
    const isExcused = (fault: string): boolean => hasFickleCaps && fault.endsWith('is parked without need');
    this.faults.push(...audit(flow).violations.filter((fault) => !isExcused(fault)));
    if (engineOf(flow).backlog.bands.parked > 0) reached.saw('a flow waits at its cap');
    this.compareAnswers(states);
    for (const ticket of waiting) {
      const mayBeLate = this.reconfiguredAtMs === this.clock.now() || this.isTimeOdd;
      if (!(this.deadlineOf(ticket) + this.latestMs > Math.floor(this.clock.now())) && !mayBeLate)
        this.fail(`overdue since ${this.deadlineOf(ticket)} at ${this.clock.now()}`);
      if (ticket.request.signal?.aborted === true) this.fail('an aborted request still waits');
      const { item } = ticket;
      if (item === undefined) continue;
      const { name = '' } = itemInside(item).flow ?? {};
      const isShared = name.startsWith('\u0000');
      if (!isShared) this.same('its flow', name, flowName(flow, item, classOf(item)));
    }
    this.expect(
      this.closedAtMs > this.clock.now() || this.isTimeOdd || waiting.size === 0,
      'requests wait beyond the end',
    );
    this.same('closed', this.isClosed, this.isClosing && waiting.size === 0);
  }

  private get isClosing(): boolean {
    return this.closedAtMs < Number.POSITIVE_INFINITY;
  }

  private compareAnswers(tickets: readonly Ticket[]): void {
    for (const { state, answers, answer, isRun, isWorking, lease, drop } of tickets) {
      const isAnswered = state === 'dropped' || (state === 'dispatched' && !isWorking);
      if (answers !== (isAnswered ? 1 : 0)) this.fail(`${answers} answers to a request that is ${state}`);
      if (state === 'dropped' && answer !== drop)
        this.fail('the drop that was announced is not the one that was answered');
      if (state === 'dispatched' && !isRun && (answer?.type !== 'Dispatched' || answer.lease !== lease))
        this.fail('the lease is another');
    }
  }

  /** Walks once more. Nothing may come of it, because everything that may go has gone. */
  expectNothingLeft(): void {
    const isExcused = this.isMeddledWith || this.isTimeOdd || this.gate.opensByTime === true || this.fades;
    if (isExcused || isPaused(this.flow)) return;
    const before = [...this.waiting];
    engineOf(this.flow).operation.wake();
    for (const { state, request, key, waitingSinceMs } of before) {
      const name = `request ${request.id} of ${key.fairnessId.slice(0, 9)} and priority ${key.priority}`;
      if (state === 'dispatched') this.fail(`a wake-up was lost: ${name} waited since ${waitingSinceMs}, and may go`);
    }
  }

  /** After the end: constraints hold nothing for requests that are over. */
  expectNothingReserved(): void {
    const nowMs = this.clock.now();
    for (const constraint of constraintsOf(this.flow)) {
      for (const { group, unit, reserved } of constraint.quotas?.(nowMs).quotas ?? [])
        this.same(`${unit} reserved in ${group}`, reserved, 0);
      const sessions = constraint.sessions?.([], nowMs);
      if (sessions !== undefined) this.same('sessions at work', sessions.resident, sessions.idle);
    }
  }

  /** True when a detector in force announces nothing. */
  get isSilent(): boolean {
    return this.gate.isSilent || this.ownDetectors.some(isSilent);
  }

  /** True when a request may be able to go before anybody has said so. */
  get mayLag(): boolean {
    return this.isSilent || this.fades;
  }

  /**
   * True when a reading that falls with time may just have fallen: the timer that asks again comes within `intervalMs`,
   * so that nobody may be left behind for that long while nothing else happens.
   */
  mayFadeSoon(intervalMs: number): boolean {
    if (!this.fades) return false;
    const { left, activity } = this;
    const isNew = left === undefined || activity !== this.leftSince.activity;
    if (isNew) this.leftSince = { atMs: this.clock.now(), activity: left === undefined ? Number.NaN : activity };
    return this.clock.now() < this.leftSince.atMs + intervalMs;
  }

  /** True when a reading falls with time: then a timer asks again, and the request goes at that. */
  private get fades(): boolean {
    return constraintsOf(this.flow).some(({ fullness }) => fullness !== undefined);
  }

  private get ownDetectors(): readonly SaturationDetector[] {
    const { bands, defaultBand, defaultNegativeBand } = optionsOf(this.flow);
    return [...bands, defaultBand, defaultNegativeBand].flatMap((band) => band.saturationDetector ?? []);
  }

  /**
   * A request that waits although it may go: by priority, by its gate, by its place, and for room; undefined when there
   * is none, or nobody can know.
   */
  get left(): string | undefined {
    if (this.waiting.size === 0 || this.isPoolEmpty || isPaused(this.flow)) return undefined;
    const options = optionsOf(this.flow);
    for (const priority of [...new Set([...this.waiting].map(({ key }) => key.priority))].sort((a, b) => b - a)) {
      const isOpen = this.gate.saturation === undefined ? this.isSaidOpenFor(priority) : this.isOpenFor(priority);
      if (isOpen === undefined) return undefined;
      const heads = isOpen ? this.headsOf(priority) : [];
      // Everything of it is at a cap: that none is without need, the audit sees.
      if (isOpen && heads.length === 0) continue;
      const rooms = heads.map((head) => room(this.flow, this.pool, head, this.clock.now()));
      if (rooms.includes(undefined)) return undefined;
      // Which of the flows the fairness policy would pick is its business: where one waits for another, all must have
      // room.
      const mayGo = options.holBlocking === 'band' ? isOpen && !rooms.includes(false) : rooms.includes(true);
      if (mayGo)
        return `of ${heads.length} first requests of priority ${priority} ${rooms.filter(Boolean).length} may go`;
      if (options.holBlocking === 'band' || (!isOpen && this.isStrict)) return undefined;
    }
    return undefined;
  }

  /**
   * The first request of each flow that is not at a cap; of the whole band where there is one queue. Where requests are
   * judged one by one, the held flows of a class wait for the first of them.
   */
  private headsOf(priority: number): ItemView[] {
    const { backlog, gate } = engineOf(this.flow);
    const { areAny: judgesRequests } = gate.constraints;
    const band = backlog.bands.get(priority);
    if (band === undefined) return [];
    const first = band.sharedQueue
      ? [band.next(this.clock.now())]
      : (band.waitingFlows() as Flow[]).flatMap((flow) => {
          const isBehind =
            judgesRequests && flow.isHeld && ![...(flow.contendsIn?.firsts(this.clock.now()) ?? [])].includes(flow);
          return !flow.isParked && !isBehind ? [flow.head] : [];
        });
    return first.filter((item) => item !== undefined).filter((item) => this.isBelowCap(item));
  }

  /** The same as `isOpenFor`, by what the gate read last. */
  private isSaidOpenFor(priority: number): boolean | undefined {
    const { gate, backlog } = engineOf(this.flow);
    const band = backlog.bands.get(priority);
    return band === undefined || this.isMeddledWith ? undefined : gate.isOpenFor(band);
  }

  /** Would the gate let a request of this band go? Undefined when nobody can know. */
  private isOpenFor(priority: number): boolean | undefined {
    const { closeAt, openAt } = optionsOf(this.flow).gate;
    const { ceilings, saturation: read } = this.gate;
    if (read === undefined || ceilings === undefined) return undefined;
    const own = ownDetectorOf(this.flow, priority);
    const shared = read() / closeAt;
    const saturation = own === undefined ? shared : Number(Reflect.get(own, 'value')) / closeAt;
    const isLatchable = (reading: number): boolean => openAt < closeAt && reading > openAt / closeAt;
    if (Number.isNaN(saturation) || isLatchable(shared) || isLatchable(saturation)) return undefined;
    const ranked = overviewOf(this.flow, { flows: 'all' }).bands.filter(
      (band) => band.isConfigured || band.waiting > 0,
    );
    const limits = ceilings(
      shared,
      ranked.map((band) => band.priority),
    );
    const rank = ranked.findIndex((band) => band.priority === priority);
    const limit = Math.min(...limits.slice(0, rank + 1));
    const { eviction } = optionsOf(this.flow);
    // A part of the seats, at most half, may be kept for bands above.
    const hasReserve = eviction !== undefined && this.clock.now() < this.evictedAtMs + eviction.reserveMs;
    return hasReserve && saturation >= limit / 2 && saturation < limit ? undefined : saturation < limit;
  }

  expect(isRight: boolean, fault: string): void {
    if (!isRight) this.fail(fault);
  }

  same(what: string, got: unknown, expected: unknown): void {
    if (!Object.is(got, expected)) this.fail(`${what}: got ${String(got)}, expected ${String(expected)}`);
  }

  fail(fault: string): void {
    this.faults.push(fault);
  }
}

function classOf(item: ItemView): unknown {
  return itemInside(item).requestClass;
}

function sumOf<T>(all: readonly T[], figure: (one: T) => number): number {
  return all.reduce((sum, one) => sum + figure(one), 0);
}
