/** A controller's endpoints and their seats. Invariant: sums are over members; a removed one keeps its booked seats. */
import type { Clock } from '../base/clock.js';
import { type Linked, LinkedList } from '../base/queues/linked-list.js';
import type { EndpointMetrics, EndpointState, EndpointView, PoolView } from './endpoint.js';

/** @internal A seat that the endpoint's metrics do not know of yet. */
export class UnsampledSeat implements Linked<UnsampledSeat> {
  previous: UnsampledSeat | undefined = undefined;
  next: UnsampledSeat | undefined = undefined;
  isUnsampled = true;
  readonly takenAtMs: number;

  constructor(takenAtMs: number) {
    this.takenAtMs = takenAtMs;
  }
}

/** @internal A controller as its pool sees it. */
export interface PoolUser {
  /** Something has changed. */
  readonly onPoolChange: () => void;
  readonly backlog: { readonly waiting: number };
}

export class Endpoint implements EndpointView {
  metrics: EndpointMetrics | undefined = undefined;
  /** When its next report is due, ms; undefined where nobody scrapes it. Written by Scraper. */
  reportDueAtMs: number | undefined = undefined;
  inFlightRequests = 0;
  inFlightTokens = 0;
  dispatchedRequests = 0;
  endedSinceReport = 0;
  isMember = true;
  /** Written by EndpointPool. */
  state: EndpointState = 'ready';
  /** Written by EndpointPool. */
  overloadedUntilMs = 0;
  /** @internal Seats newer than the metrics, oldest first; kept only for endpoints that report. */
  readonly unsampled: LinkedList<UnsampledSeat> = new LinkedList();
  readonly id: string;
  /** Written by EndpointPool. */
  labels: Readonly<Record<string, string>>;
  /** Written by EndpointPool. */
  weight: number;
  /** True for the one endpoint of a controller without a pool. */
  readonly isImplicit: boolean;

  constructor(id: string, labels: Readonly<Record<string, string>>, weight: number, isImplicit: boolean) {
    this.id = id;
    this.labels = labels;
    this.weight = weight;
    this.isImplicit = isImplicit;
  }

  get unsampledRequests(): number {
    return this.unsampled.size;
  }

  /** @internal */
  report(metrics: EndpointMetrics, travelMs: number): void {
    this.metrics = metrics;
    this.endedSinceReport = 0;
    for (let seat = this.unsampled.first; seat !== undefined; seat = this.unsampled.first) {
      if (seat.takenAtMs > metrics.sampledAtMs - travelMs) break;
      this.seen(seat);
    }
  }

  /** @internal The metrics know of the seat by now, or it was given back before. */
  seen(seat: UnsampledSeat): void {
    seat.isUnsampled = false;
    this.unsampled.remove(seat);
  }
}

/** Members and seats, without what hosts tell of the members: an EndpointPool adds that. */
export class SeatPool implements PoolView {
  /** Members in the order in which they were added; replaced, never changed. Written by the pool alone. */
  endpoints: readonly Endpoint[] = [];
  inFlightRequests = 0;
  inFlightTokens = 0;
  /** @internal By name. */
  protected readonly members: Map<string, Endpoint> = new Map();
  /** @internal The controllers that use it. */
  controllers: readonly PoolUser[] = [];
  private changes = 0;
  /** Says which controller is woken first. */
  private wakes = 0;
  private clock: Pick<Clock, 'now'> = performance;
  /** @internal The one endpoint of a controller that has no pool. */
  implicitEndpoint: Endpoint | undefined = undefined;
  /** @internal Called when requests begin after a rest, within the operation. Written by `onceActive`. */
  onDemand: (() => void) | undefined = undefined;

  /** Rises when members, labels, weights, states or overload marks change; not when a mark runs out. */
  get version(): number {
    return this.changes;
  }

  /** The instant on the clock of the controller that was made last, or of the platform before there is one; ms. */
  now(): number {
    return this.clock.now();
  }

  /** The member of that name. */
  get(id: string): Endpoint | undefined {
    return this.members.get(id);
  }

  /** @internal The endpoint behind a view; undefined for anything that is no member of the pool. */
  member(view: EndpointView | undefined): Endpoint | undefined {
    if (view === undefined) return undefined;
    const endpoint = this.members.get(view.id);
    return endpoint === view ? endpoint : undefined;
  }

  /** @internal Lets a controller hear of changes, on the controller's clock. */
  attach(controller: PoolUser, clock: Pick<Clock, 'now'>): () => void {
    this.clock = clock;
    this.controllers = [...this.controllers, controller];
    return () => {
      this.controllers = this.controllers.filter((other) => other !== controller);
    };
  }

  /** @internal The pool of a controller that has none. */
  static implicit(): SeatPool {
    const pool = new SeatPool();
    const endpoint = new Endpoint('default', {}, 1, true);
    pool.join(endpoint);
    pool.implicitEndpoint = endpoint;
    return pool;
  }

  /** @internal Takes a seat. Returns what `unbook` wants to have of it. */
  book(endpoint: Endpoint, tokens: number, nowMs: number): UnsampledSeat | undefined {
    endpoint.inFlightRequests++;
    endpoint.inFlightTokens += tokens;
    endpoint.dispatchedRequests++;
    let seat: UnsampledSeat | undefined;
    if (endpoint.metrics !== undefined) {
      seat = new UnsampledSeat(nowMs);
      endpoint.unsampled.push(seat);
    }
    if (!endpoint.isMember) return seat;
    if (this.inFlightRequests++ === 0) this.onDemand?.();
    this.inFlightTokens += tokens;
    return seat;
  }

  /** @internal Gives a seat back, and wakes every controller that may wait for it, `except` the one that knows. */
  unbook(endpoint: Endpoint, seat: UnsampledSeat | undefined, tokens: number, except?: () => void): void {
    endpoint.inFlightRequests--;
    endpoint.inFlightTokens -= tokens;
    if (seat?.isUnsampled === true) endpoint.seen(seat);
    else if (endpoint.metrics !== undefined) endpoint.endedSinceReport++;
    if (!endpoint.isMember) return;
    this.inFlightRequests--;
    this.inFlightTokens -= tokens;
    if (this.controllers.length > 1 || this.controllers[0]?.onPoolChange !== except) this.changed(except);
  }

  /** @internal Takes a member in. */
  protected join(endpoint: Endpoint): void {
    this.members.set(endpoint.id, endpoint);
    this.endpoints = Object.freeze([...this.members.values()]);
  }

  /** @internal Lets a member go, with the seats that were booked on it. */
  protected part(endpoint: Endpoint): void {
    endpoint.isMember = false;
    this.members.delete(endpoint.id);
    this.endpoints = Object.freeze([...this.members.values()]);
    this.inFlightRequests -= endpoint.inFlightRequests;
    this.inFlightTokens -= endpoint.inFlightTokens;
  }

  /** @internal Members, labels, weights, states or marks changed. */
  protected changedMember(): void {
    this.changes++;
    this.changed();
  }

  /** @internal Wakes the controllers, another one first each time: the first takes the seat that came free. */
  protected changed(except?: () => void): void {
    const { controllers } = this;
    const first = this.wakes++;
    for (let i = 0; i < controllers.length; i++) {
      const { onPoolChange } = controllers[(first + i) % controllers.length] as PoolUser;
      if (onPoolChange !== except) onPoolChange();
    }
  }
}
