/**
 * Mode `shadow`: the engine decides about every request as usual, and the caller gets a lease at once.
 *
 *     caller ──► ShadowMode ──► ShadowLease ──► caller          now, whatever the engine says
 *                   └─────► Engine ──► its own lease    the same request: dispatched, waiting or dropped as it would be
 *
 * The engine does not know of this mode. A request that the engine would have held takes a seat of the engine when its
 * turn comes, for as long as the real request ran. So the requests behind it wait as they would, if the servers take
 * the same time. Invariant: each request has one lease of the caller and at most one of the engine; the engine's ends,
 * at the latest when shadow mode does.
 */
import type { Clock } from '../../base/clock.js';
import { whenAborted } from '../../base/when-aborted.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { Endpoint } from '../../endpoints/seat-pool.js';
import type { ServerAnswer } from '../../gate/server-answer.js';
import { argumentError, wrongCall } from '../check-arguments.js';
import type { Engine, Standing } from '../engine/engine.js';
import type { QueueItem, Settle } from '../engine/queue-item.js';
import { destination, type LeaseOwner, moveTo, SeatLease } from '../engine/seats.js';
import type { FlowKey, FlowRequest } from '../flow-request.js';
import type { Shadow } from '../options.js';
import type { Lease } from '../outcome/lease.js';
import type { Drop, Outcome } from '../outcome/outcome.js';
import type { ShadowDrops, ShadowFigures } from '../outcome/shadow-figures.js';

/** The lease that a caller holds. It is never evicted and never put off. Its fields are written by ShadowMode. */
class ShadowLease extends SeatLease {
  /** The engine's lease, once it gave one. */
  inner: Lease | undefined = undefined;
  /** True when the engine did not dispatch it at once: then neither its endpoint nor its time is the engine's. */
  isApart = false;
  heldMs = 0;
}

export class ShadowMode implements LeaseOwner, Standing {
  readonly hearsReports = true;
  private passed = 0;
  private refused = 0;
  private running = 0;
  private waited = 0;
  private evicted = 0;
  private readonly drops = new Map<string, ShadowDrops & { requests: number }>();
  /** True once it ends: nothing is counted or put off any more. */
  private isOver = false;
  /** Requests that wait in the engine while their callers go on. */
  private readonly held = new Set<QueueItem>();
  /** Callers' requests at endpoints that the engine did not choose. */
  private readonly extra = new Map<Endpoint, number>();
  /** Leases that callers gave back, with timers: the engine's lease began later, and ends later by as much. */
  private readonly ending = new Map<ShadowLease, unknown>();
  private readonly engine: Engine;
  private readonly clock: Clock;

  /** Lets requests that wait in earnest through at once, except where there is no endpoint to send it to. */
  constructor(engine: Engine, clock: Clock) {
    this.engine = engine;
    this.clock = clock;
    engine.shadow = this;
    const { backlog } = engine;
    for (const item of backlog.items()) {
      const request = item.request as FlowRequest;
      if (this.leastUsed(item, request) === undefined) continue;
      let lease: ShadowLease | undefined;
      const settle = backlog.redirect(item, (outcome) => this.settled(item, lease, outcome));
      lease = this.pass(item, request, undefined, settle);
    }
  }

  /** No request waits here; from inside an operation the outcome comes after that. */
  enter(request: FlowRequest, key: FlowKey): Outcome | Promise<Outcome> {
    let outcome: Outcome | undefined;
    const promise = new Promise<Outcome>((resolve, reject) => {
      outcome = this.admit(request, key, () => reject(argumentError('enqueue', request, key)), resolve);
    });
    return outcome ?? promise;
  }

  tryEnqueue(request: FlowRequest, key: FlowKey): Outcome | undefined {
    const wrong = wrongCall('tryEnqueue', request, key);
    if (wrong !== undefined) throw wrong;
    if (this.engine.operation.isBusy) return undefined;
    return this.admit(request, key, () => {
      throw argumentError('tryEnqueue', request, key);
    });
  }

  /** The controller closes: leases of the engine end with the callers' from here on. */
  endWithCallers(): void {
    this.isOver = true;
    for (const lease of this.ending.keys()) this.end(lease);
  }

  /** Ends shadow mode, and removes the requests that would wait. */
  stop(): void {
    this.engine.shadow = undefined;
    this.endWithCallers();
    this.engine.drops.cancelled([...this.held]);
  }

  get figures(): ShadowFigures {
    const { passed, refused, running, waited, evicted, drops } = this;
    const wouldHaveBeenDropped = [...drops.values()].map((each) => ({ ...each }));
    return { passed, refused, running, wouldHaveWaited: waited, wouldHaveBeenEvicted: evicted, wouldHaveBeenDropped };
  }

  // Calls of callers on their leases.

  release(lease: ShadowLease): void {
    this.running--;
    if (lease.isApart) this.count(lease.seat, -1);
    lease.heldMs = this.clock.now() - lease.dispatchedAtMs;
    if (lease.inner !== undefined) this.endLater(lease, lease.inner);
    // Adapters abort the lease when the client leaves; the request would then have left the queue.
    else if (lease.signal.aborted) this.engine.drops.cancelled([lease.item]);
  }

  bind(lease: ShadowLease, to: string | EndpointView): void {
    const endpoint = destination(this.engine.seats.pool, lease, to);
    if (lease.isApart) {
      this.count(lease.seat, -1);
      this.count(endpoint, 1);
    } else lease.inner?.bind(endpoint);
    moveTo(lease, endpoint);
  }

  consumed(lease: ShadowLease): void {
    if (!lease.isApart) lease.inner?.report(lease.usage);
  }

  answered(lease: ShadowLease, answer: ServerAnswer): boolean {
    lease.inner?.answered(answer);
    return false;
  }

  endSession(lease: ShadowLease): void {
    lease.inner?.endSession();
  }

  /** Never called, because a lease that is never evicted rejects the call by itself. */
  requeue({ item }: ShadowLease, request: FlowRequest = item.request as FlowRequest): Promise<Outcome> {
    return Promise.resolve(this.enter(request, item));
  }

  // Answers of the engine.

  /** Returns the outcome if it is known at once. `failed` is called for a call that cannot be right. */
  private admit(request: FlowRequest, key: FlowKey, failed: () => void, resolve?: Settle): Outcome | undefined {
    let told: Outcome | undefined;
    let lease: ShadowLease | undefined;
    let item: QueueItem | undefined;
    const tell = (outcome: Outcome): void => {
      told = outcome;
      resolve?.(outcome);
    };
    const decided = (read: QueueItem, outcome: Outcome | undefined): void => {
      item = read;
      lease = this.pass(read, request, outcome, tell);
    };
    const settle: Settle = (outcome) => this.settled(item as QueueItem, lease, outcome);
    this.engine.intake.watch(request, key, decided, settle, failed);
    return told;
  }

  /** Gives the caller a lease. `said`: the engine's outcome; undefined while the request waits there. */
  private pass(item: QueueItem, request: FlowRequest, said: Outcome | undefined, resolve: Settle) {
    const { seats } = this.engine;
    const inner = said?.type === 'Dispatched' ? said.lease : undefined;
    if (said === undefined) {
      this.waited++;
      this.held.add(item);
    } else if (said.type !== 'Dispatched') this.noteDrop(said);
    const chosen = inner && (seats.pool.member(inner.endpoint) ?? seats.pool.implicitEndpoint);
    const seat = inner === undefined ? this.leastUsed(item, request) : chosen;
    if (seat === undefined) {
      const { fairnessId, priority } = item;
      this.refused++;
      resolve({ type: 'RejectedNoEndpoints', reason: 'no-endpoints', fairnessId, priority, queuedMs: 0 });
      return undefined;
    }
    const nowMs = this.clock.now();
    const lease = new ShadowLease(this, item, undefined, seat, nowMs);
    this.passed++;
    this.running++;
    if (inner === undefined) {
      lease.isApart = true;
      this.count(seat, 1);
    } else this.attach(lease, inner);
    resolve({ type: 'Dispatched', lease, queuedMs: said === undefined ? Math.max(nowMs - item.enqueuedAtMs, 0) : 0 });
    return lease;
  }

  /** The end of a wait in the engine. */
  private settled(item: QueueItem, lease: ShadowLease | undefined, outcome: Outcome): void {
    this.held.delete(item);
    if (outcome.type !== 'Dispatched') this.noteDrop(outcome);
    else if (lease === undefined) {
      outcome.lease.unsent();
      outcome.lease.release();
    } else {
      this.attach(lease, outcome.lease);
      if (lease.isReleased) this.endLater(lease, outcome.lease);
    }
  }

  /** If the engine wants its seat back, it gets it, and the caller's request goes on. */
  private attach(lease: ShadowLease, inner: Lease): void {
    lease.inner = inner;
    if (!inner.isEvictable) return;
    whenAborted(inner.signal, () => {
      if (inner.isEvicted && !inner.isReleased) this.evicted++;
      inner.release();
    });
  }

  /** The engine's lease lasts as long as the caller's, from whenever it began. */
  private endLater(lease: ShadowLease, inner: Lease): void {
    const leftMs = lease.isApart ? inner.dispatchedAtMs + lease.heldMs - this.clock.now() : 0;
    if (this.isOver || leftMs <= 0) return void this.end(lease);
    const timer = this.clock.setTimeout(() => this.end(lease), leftMs);
    this.ending.set(lease, timer);
  }

  /** Gives the engine's seat back. A request that ran early reports its usage now, when all of it is known. */
  private end(lease: ShadowLease): void {
    const { inner } = lease;
    this.clock.clearTimeout(this.ending.get(lease));
    this.ending.delete(lease);
    if (lease.isApart && lease.isReported) inner?.report(lease.usage);
    if (lease.isUnsent) inner?.unsent();
    if (lease.ending === 'aborted') inner?.abort();
    inner?.release();
  }

  private noteDrop({ type, reason }: Drop): void {
    if (this.isOver) return;
    const of = `${type} ${reason}`;
    const row = this.drops.get(of) ?? { outcome: type, reason, requests: 0 };
    row.requests++;
    this.drops.set(of, row);
  }

  /** Of the endpoints that may take the request, the one with the fewest that the engine did not send there. */
  private leastUsed(item: QueueItem, request: FlowRequest): Endpoint | undefined {
    const used = (endpoint: Endpoint): number => this.extra.get(endpoint) ?? 0;
    const [first, ...others] = this.engine.placement.eligible(item, request, this.clock.now());
    return others.reduce((least, each) => (least !== undefined && used(each) < used(least) ? each : least), first);
  }

  private count(endpoint: Endpoint, by: number): void {
    const count = (this.extra.get(endpoint) ?? 0) + by;
    if (count > 0) this.extra.set(endpoint, count);
    else this.extra.delete(endpoint);
  }
}

/** Shadow mode with its code, which a controller without it has not in its bundle. */
export interface ShadowMaker extends Shadow {
  /** Stands before the engine from now on, until `stop`. */
  begin(engine: Engine, clock: Clock): ShadowMode;
}

/** Decides over every request, and holds and drops none: for `mode`. `stats().shadow` says what would be. */
export function shadow(): Shadow {
  const maker: ShadowMaker = { type: 'shadow', begin: (engine, clock) => new ShadowMode(engine, clock) };
  return maker;
}
