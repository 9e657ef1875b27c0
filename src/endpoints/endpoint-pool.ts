/**
 * The model servers, their last reported load, and the seats taken on each.
 *
 * Invariant: the pool's sums are the sums over its members. A removed endpoint keeps the seats that were booked on it,
 * and an endpoint added again under the same name starts from zero.
 *
 * Longer than most files, because an endpoint and the pool that counts its seats are one structure.
 */

import type { Clock } from '../base/clock.js';
import { describeValue, FlowConfigError } from '../base/faults/flow-config-error.js';
import { GuardedEvents, type ListenerErrors } from '../base/faults/guarded-events.js';
import { type Linked, LinkedList } from '../base/queues/linked-list.js';
import { object } from '../base/schema/containers.js';
import { element, optional, type Schema } from '../base/schema/element.js';
import { parse } from '../base/schema/parse.js';
import { aboveZero, oneOf } from '../base/schema/types.js';
import type { EndpointMetrics, EndpointState, EndpointView, PoolView } from './endpoint.js';
import { checkReport, type MetricsReport, mergeReport } from './metrics-report.js';

/** The options of `add`. */
export interface EndpointOptions {
  /** Free-form, for pickers, filters and scrapers. @default {} */
  labels?: Record<string, string> | undefined;
  /** Its capacity compared with endpoints of weight 1; above 0. @default 1 */
  weight?: number | undefined;
  /**
   * Endpoints that are `draining` or `ill` get no requests and give no capacity. Requests that run on them keep their
   * seats. A pool in which no endpoint is available counts as empty. @default 'ready'
   */
  state?: EndpointState | undefined;
}

const endpointOptions: Schema<EndpointOptions> = object({
  labels: optional(
    element((candidate, report) => {
      if (typeof candidate !== 'object' || candidate === null) report('an object of texts');
      else for (const [name, text] of Object.entries(candidate)) if (typeof text !== 'string') report('text', [name]);
      return candidate as Record<string, string>;
    }),
  ),
  weight: optional(aboveZero()),
  state: optional(oneOf('ready', 'draining', 'ill')),
});

/** The events of a pool. They are emitted after the controllers that use the pool have acted on the change. */
export interface PoolEvents extends ListenerErrors {
  added: EndpointView;
  /** It is not a member any more; requests in flight on it keep their leases. */
  removed: EndpointView;
  /** Its labels, its weight or its state changed. */
  updated: EndpointView;
  /** Its metrics changed. */
  reported: EndpointView;
  /** It was marked, its mark was extended, or the mark was taken off: see `overloadedUntilMs`. */
  overloaded: EndpointView;
}

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
  state: EndpointState = 'ready';
  overloadedUntilMs = 0;
  /** @internal Seats newer than the metrics, oldest first; kept only for endpoints that report. */
  readonly unsampled: LinkedList<UnsampledSeat> = new LinkedList();
  readonly id: string;
  labels: Readonly<Record<string, string>>;
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

/**
 * The pool of model servers behind one or several controllers. Changes wake the controllers that use it.
 *
 * Name a server by its `id`, or by the view that `add` returned. The view means that very server, and not one that was
 * added later under the same name. Methods that change one server return false when it is not in the pool.
 */
export class EndpointPool implements PoolView {
  /** Members in the order in which they were added; replaced, never changed. Written by the pool alone. */
  endpoints: readonly Endpoint[] = [];
  inFlightRequests = 0;
  inFlightTokens = 0;
  private readonly members = new Map<string, Endpoint>();
  /** @internal The controllers that use it. */
  controllers: readonly PoolUser[] = [];
  private readonly events = new GuardedEvents<PoolEvents>('added', 'removed', 'updated', 'reported', 'overloaded');
  private changes = 0;
  /** Says which controller is woken first. */
  private wakes = 0;
  private clock: Pick<Clock, 'now'> = performance;
  /** @internal The one endpoint of a controller that has no pool. */
  implicitEndpoint: Endpoint | undefined = undefined;
  /**
   * @internal Called when the first request runs or waits after a rest, in the middle of the operation. Written by
   * `onceActive`.
   */
  onDemand: (() => void) | undefined = undefined;

  /**
   * Rises with every change of members, labels, weights, states and overload marks; not with metrics and seats, nor
   * when a mark runs out.
   */
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

  /** Calls `listener` after each change; its failure is a `listenerError`. Returns a function that stops it. */
  on<E extends keyof PoolEvents>(event: E, listener: (payload: PoolEvents[E]) => unknown): () => void {
    return this.events.on(event, listener);
  }

  /**
   * Adds a model server.
   * @throws FlowConfigError when `id` is empty or a member already, or an option is wrong.
   */
  add(id: string, options: EndpointOptions = {}): EndpointView {
    if (typeof id !== 'string' || id === '' || this.members.has(id)) {
      throw new FlowConfigError('EndpointPool.add', [
        { path: 'id', expected: 'a name that is not in the pool yet', got: describeValue(id) },
      ]);
    }
    const { labels, weight = 1, state = 'ready' } = parse(endpointOptions, options, `EndpointPool.add(${id})`);
    const endpoint = new Endpoint(id, Object.freeze({ ...labels }), weight, false);
    endpoint.state = state;
    return this.join(endpoint);
  }

  /** Takes a model server out; requests in flight on it keep their leases. */
  remove(server: string | EndpointView): boolean {
    const endpoint = this.member(server);
    if (endpoint === undefined) return false;
    endpoint.isMember = false;
    this.members.delete(endpoint.id);
    this.endpoints = Object.freeze([...this.members.values()]);
    this.inFlightRequests -= endpoint.inFlightRequests;
    this.inFlightTokens -= endpoint.inFlightTokens;
    this.changedFor(endpoint, 'removed');
    return true;
  }

  /**
   * Changes the options of `add`: `labels` replaces all labels; options that are left out stay.
   * @throws FlowConfigError when an option is wrong.
   */
  update(server: string | EndpointView, change: EndpointOptions): boolean {
    const parsed = parse(endpointOptions, change, `EndpointPool.update(${idOf(server)})`);
    const endpoint = this.member(server);
    if (endpoint === undefined) return false;
    const { labels = endpoint.labels, weight = endpoint.weight, state = endpoint.state } = parsed;
    if (weight === endpoint.weight && state === endpoint.state && hasSameEntries(labels, endpoint.labels)) return true;
    endpoint.labels = Object.freeze({ ...labels });
    endpoint.weight = weight;
    endpoint.state = state;
    this.changedFor(endpoint, 'updated');
    return true;
  }

  /**
   * Takes the load that a model server reported. A report older than the last one is ignored; one from the future
   * counts as taken now. `ranks` says how many ranks there are; a figure that a rank leaves out stays as last reported,
   * one that is null is not known any more. All of them stay when `ranks` is left out, and so does `loraAdapters`.
   * @throws FlowConfigError when a figure is negative or no number.
   */
  report(server: string | EndpointView, report: MetricsReport): boolean {
    checkReport(report, `EndpointPool.report(${idOf(server)})`);
    const endpoint = this.member(server);
    if (endpoint === undefined) return false;
    const metrics = mergeReport(report, endpoint.metrics, this.now());
    if (metrics === undefined) return true;
    endpoint.report(metrics, report.travelMs ?? 0);
    this.changed();
    this.events.emit('reported', endpoint);
    return true;
  }

  /**
   * Marks a model server that rejected work: it gets none for `forMs`. A further mark may extend the time, and never
   * shortens it. The pool sets no timer: the mark lies in the past when it has run out. Source: Dynamo's client, which
   * inhibits a worker whose reply begins with `Server overloaded:`.
   * @throws FlowConfigError when `forMs` is not above 0 and finite.
   */
  markOverloaded(server: string | EndpointView, forMs: number): boolean {
    if (!(Number.isFinite(forMs) && forMs > 0)) {
      const issue = { path: 'forMs', expected: 'ms above 0', got: describeValue(forMs) };
      throw new FlowConfigError(`EndpointPool.markOverloaded(${idOf(server)})`, [issue]);
    }
    const endpoint = this.member(server);
    if (endpoint === undefined) return false;
    const untilMs = this.now() + forMs;
    if (untilMs > endpoint.overloadedUntilMs) this.mark(endpoint, untilMs);
    return true;
  }

  /** Removes the overload mark before its time is over. */
  clearOverloaded(server: string | EndpointView): boolean {
    const endpoint = this.member(server);
    if (endpoint === undefined) return false;
    if (endpoint.overloadedUntilMs > 0) this.mark(endpoint, 0);
    return true;
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
  static implicit(): EndpointPool {
    const pool = new EndpointPool();
    pool.implicitEndpoint = pool.join(new Endpoint('default', {}, 1, true));
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

  private member(server: string | EndpointView): Endpoint | undefined {
    const endpoint = this.members.get(idOf(server));
    return typeof server === 'string' || endpoint === server ? endpoint : undefined;
  }

  private join(endpoint: Endpoint): Endpoint {
    this.members.set(endpoint.id, endpoint);
    this.endpoints = Object.freeze([...this.members.values()]);
    this.changedFor(endpoint, 'added');
    return endpoint;
  }

  private mark(endpoint: Endpoint, untilMs: number): void {
    endpoint.overloadedUntilMs = untilMs;
    this.changedFor(endpoint, 'overloaded');
  }

  private changedFor(endpoint: Endpoint, event: 'added' | 'removed' | 'updated' | 'overloaded'): void {
    this.changes++;
    this.changed();
    this.events.emit(event, endpoint);
  }

  /** Wakes the controllers, another one first each time: the first to be woken takes the seat that came free. */
  private changed(except?: () => void): void {
    const { controllers } = this;
    const first = this.wakes++;
    for (let i = 0; i < controllers.length; i++) {
      const { onPoolChange } = controllers[(first + i) % controllers.length] as PoolUser;
      if (onPoolChange !== except) onPoolChange();
    }
  }
}

function idOf(server: string | EndpointView): string {
  return typeof server === 'string' ? server : server.id;
}

function hasSameEntries(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
