/**
 * Where may a request go, and where does it go? The filters for the request's class come first, then availability, then
 * headroom, then the picker.
 *
 *     pool ── filters (class) ──► served by ── available ──► reachable ── detector's filter ──► with room ── picker ──► endpoint
 *                                                               └─ group after group, where the band names some
 *
 * Invariant: the endpoints that serve a class are computed once for each version of the pool.
 */
import type { PluginErrorSink } from '../../base/faults/plugin-errors.js';
import { PluginGuard, question, wrong } from '../../base/faults/plugin-guard.js';
import { seededRandom } from '../../base/seeded-random.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import { leastLoaded } from '../../endpoints/pickers/least-loaded.js';
import type { Endpoint, SeatPool } from '../../endpoints/seat-pool.js';
import type { RequestWait } from '../../gate/constraint.js';
import type { Gate } from '../../gate/gate.js';
import type { WaitingItem } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { FlowRequest } from '../flow-request.js';
import type { ResolvedOptions } from '../options.js';
import { ofGroups, openGroups } from './endpoint-groups.js';
import type { QueueItem } from './queue-item.js';

/** Up to here every endpoint is looked at; of more, so many are drawn for a picker that takes samples. */
const mostLookedAt = 64;
const drawn = 8;
const fallbackPicker = /* @__PURE__ */ leastLoaded();
/** Classes whose endpoints are remembered; for more classes they are computed again. */
const rememberedClasses = 1000;

const classOf = question('classOf', 'a text, or undefined', (answer) =>
  answer === undefined || typeof answer === 'string' ? answer : wrong,
);
const keep = question('keep', 'an array', (answer) => (Array.isArray(answer) ? new Set<unknown>(answer) : wrong));

type PlacementOptions = Pick<ResolvedOptions, 'endpointFilters' | 'endpointPicker' | 'headroom'>;

type Obstacle = 'overloaded' | 'absent' | 'full';
type Band = PriorityBand | undefined;

export class Placement {
  /** The one endpoint of a controller without a pool, where every request goes. */
  readonly implicitEndpoint: Endpoint | undefined;
  /** The same, where nothing is asked about single requests: then every request goes there without a question. */
  direct: Endpoint | undefined = undefined;
  /** False while every request may go to every endpoint. */
  tellsClasses = false;
  private readonly pool: SeatPool;
  private readonly implicit: readonly Endpoint[] | undefined;
  private readonly gate: Gate;
  private readonly errors: PluginErrorSink;
  private options: PlacementOptions;
  private picker: PluginGuard;
  private filters: readonly PluginGuard[] = [];
  private poolVersion = -1;
  private readonly served = new Map<string, readonly Endpoint[]>();
  private readonly random = seededRandom(1);

  constructor(pool: SeatPool, gate: Gate, errors: PluginErrorSink, options: PlacementOptions) {
    this.pool = pool;
    this.implicitEndpoint = pool.implicitEndpoint;
    this.implicit = pool.implicitEndpoint === undefined ? undefined : [pool.implicitEndpoint];
    this.gate = gate;
    this.errors = errors;
    this.options = options;
    this.picker = new PluginGuard('endpointPicker', options.endpointPicker, errors);
    this.configure(options);
  }

  configure(options: PlacementOptions): void {
    this.options = options;
    this.direct = this.gate.constraints.areAny ? undefined : this.implicitEndpoint;
    this.picker = new PluginGuard('endpointPicker', options.endpointPicker, this.errors);
    this.filters = options.endpointFilters.map((filter) => new PluginGuard('endpointFilter', filter, this.errors));
    this.tellsClasses = options.endpointFilters.length > 0;
    this.poolVersion = -1;
  }

  /** Sets the class of a request: those of one class may go to the same endpoints; undefined: to all. */
  classify(item: QueueItem): void {
    const parts = this.options.endpointFilters.map((filter, i) => this.filters[i]?.ask(filter, classOf, item));
    item.requestClass = parts.every((part) => part === undefined) ? undefined : JSON.stringify(parts);
  }

  /** False when the pool has endpoints, but none that may ever take a request of this class. */
  isServed(requestClass: string | undefined): boolean {
    return this.pool.endpoints.length === 0 || this.endpointsFor(requestClass).length > 0;
  }

  /** True when each request is judged by itself, so that the class alone does not tell whether there is room. */
  get judgesRequests(): boolean {
    return this.gate.constraints.areAny;
  }

  /** True when an endpoint can take a request of this class now; with `item`, this very request. */
  hasRoom(requestClass: string | undefined, band: PriorityBand, nowMs: number, item?: WaitingItem): boolean {
    return this.candidates(requestClass, band, nowMs, item).length > 0;
  }

  /** The room that the request waits for, if it can go somewhere; undefined when single requests are not judged. */
  waitOf(item: QueueItem, nowMs: number): RequestWait | undefined {
    return this.gate.constraints.areAny
      ? this.gate.constraints.waitOf(this.reachable(item.requestClass, item.band, nowMs), item, item.band, nowMs)
      : undefined;
  }

  /** What the request waits for before it may use the next group, as words; undefined when it waits for none. */
  awaitedGroup(item: QueueItem, nowMs: number): string | undefined {
    const { band, requestClass } = item;
    const turns = band?.settings.endpoints;
    if (turns === undefined || this.candidates(requestClass, band, nowMs, item).length > 0) return undefined;
    const { wait } = openGroups(turns, this.reachable(requestClass, band, nowMs), item, nowMs);
    return wait && `waits for ${wait.before}; may use ${wait.next} in ${Math.ceil(wait.atMs - nowMs)} ms`;
  }

  /** The reason why no endpoint can take a request of this class now; undefined when one can. */
  obstacle(requestClass: string | undefined, band: PriorityBand, nowMs: number): Obstacle | undefined {
    if (this.hasRoom(requestClass, band, nowMs)) return undefined;
    if (this.reachable(requestClass, band, nowMs).length > 0) return 'full';
    const members = ofGroups(band.settings.endpoints, this.endpointsFor(requestClass));
    return members.every((endpoint) => endpoint.overloadedUntilMs > nowMs) ? 'overloaded' : 'absent';
  }

  /** The endpoint that gets the request; undefined when there is none now. */
  choose(item: QueueItem, nowMs: number): Endpoint | undefined {
    const candidates = this.sample(item, nowMs) ?? this.candidates(item.requestClass, item.band, nowMs, item);
    if (candidates.length === 0) return undefined;
    if (this.implicitEndpoint !== undefined) return this.implicitEndpoint;
    return this.pick(candidates, item, nowMs) ?? this.fallback(candidates, item, nowMs);
  }

  /** True while a healthy endpoint gets no work because it is marked as overloaded. */
  isOverloaded(nowMs: number): boolean {
    return this.pool.endpoints.some(({ state, overloadedUntilMs }) => state === 'ready' && overloadedUntilMs > nowMs);
  }

  /** Undefined when the picker, or the detector's filter, named no member of the pool. */
  private pick(candidates: readonly EndpointView[], item: QueueItem, nowMs: number): Endpoint | undefined {
    const { endpointPicker } = this.options;
    try {
      const answer = this.pool.endpoints.length === 1 ? candidates[0] : endpointPicker.pick(candidates, item, nowMs);
      const choice = this.pool.member(answer);
      if (choice !== undefined) return choice;
      this.picker.violated('pick must return one of the endpoints it was given', answer);
    } catch (error) {
      this.picker.failed(error);
    }
    return undefined;
  }

  /** Fallback for a picker that failed; the detector's filter still applies. */
  private fallback(candidates: readonly EndpointView[], item: QueueItem, nowMs: number): Endpoint | undefined {
    const members = candidates.filter((candidate) => this.pool.member(candidate) !== undefined);
    const others = members.length > 0 ? members : this.reachable(item.requestClass, item.band, nowMs);
    return this.pool.member(fallbackPicker.pick(others, item, nowMs));
  }

  /** The endpoints that may take the request, with room or without: the available ones, or else any that serve it. */
  eligible(item: QueueItem, request: FlowRequest, nowMs: number): readonly Endpoint[] {
    // A drop may know no class yet, and has released the payload that filters look at.
    if (this.tellsClasses && !item.isWaiting) {
      item.restorePayload(request);
      this.classify(item);
    }
    const reachable = this.reachable(item.requestClass, item.band, nowMs);
    return reachable.length > 0 ? reachable : this.endpointsFor(item.requestClass);
  }

  /** The endpoints of the band that serve the class and are available. */
  private reachable(requestClass: string | undefined, band: Band, nowMs: number): readonly Endpoint[] {
    if (this.implicit !== undefined) return this.implicit;
    const available = ofGroups(band?.settings.endpoints, this.gate.available(nowMs));
    if (requestClass === undefined) return available;
    const served = this.endpointsFor(requestClass);
    if (available.length === this.pool.endpoints.length) return served;
    return served.filter((endpoint) => available.includes(endpoint));
  }

  /** Some endpoints with room, of a pool that is too large to look at all; undefined where all must be looked at. */
  private sample(item: QueueItem, nowMs: number): readonly EndpointView[] | undefined {
    const { endpoints } = this.pool;
    const isLarge = endpoints.length > mostLookedAt && this.options.endpointPicker.takesSamples === true;
    if (!isLarge || this.gate.constraints.areAny) return undefined;
    const reachable = this.reachable(item.requestClass, item.band, nowMs);
    if (reachable.length <= mostLookedAt) return undefined;
    const some = Array.from({ length: drawn }, () => reachable[Math.floor(this.random() * reachable.length)]!);
    const roomy = this.gate.withRoom([...new Set(some)], item.band, nowMs);
    return roomy.length > 0 ? roomy : undefined;
  }

  private candidates(
    requestClass: string | undefined,
    band: Band,
    nowMs: number,
    item?: WaitingItem,
  ): readonly EndpointView[] {
    const all = this.reachable(requestClass, band, nowMs);
    const turns = band?.settings.endpoints;
    if (turns === undefined || item === undefined) return this.roomy(all, band, nowMs, item);
    const { groups, wait } = openGroups(turns, all, item, nowMs);
    for (const group of groups) {
      const roomy = this.roomy(group, band, nowMs, item);
      if (roomy.length > 0) return roomy;
    }
    if (wait !== undefined) this.gate.constraints.lookAt(wait.atMs);
    return [];
  }

  private roomy(all: readonly EndpointView[], band: Band, nowMs: number, item?: WaitingItem): readonly EndpointView[] {
    if (item === undefined || !this.gate.constraints.areAny) return this.withHeadroom(all, band, nowMs);
    const reachable = this.gate.constraints.withRoomFor(all, item, band, nowMs);
    const candidates = this.withHeadroom(reachable, band, nowMs);
    // The gate then notes when the endpoints without room will have some.
    if (candidates.length === 0 && reachable.length > 0) {
      const others = all.filter((endpoint) => !reachable.includes(endpoint));
      this.gate.constraints.withRoomFor(others, item, band, nowMs);
    }
    return candidates;
  }

  private withHeadroom(reachable: readonly EndpointView[], band: Band, nowMs: number) {
    const isRequired = this.options.headroom === 'required';
    if (this.implicit !== undefined || reachable.length === 0 || (reachable.length === 1 && !isRequired))
      return reachable;
    const roomy = this.gate.withRoom(reachable, band, nowMs);
    return roomy.length > 0 || isRequired ? roomy : reachable;
  }

  private endpointsFor(requestClass: string | undefined): readonly Endpoint[] {
    if (requestClass === undefined) return this.pool.endpoints;
    if (this.pool.version !== this.poolVersion) {
      this.poolVersion = this.pool.version;
      this.served.clear();
    }
    let endpoints = this.served.get(requestClass);
    if (endpoints === undefined) {
      endpoints = this.filtered(requestClass);
      if (this.served.size >= rememberedClasses) this.served.clear();
      this.served.set(requestClass, endpoints);
    }
    return endpoints;
  }

  private filtered(requestClass: string): readonly Endpoint[] {
    const parts: unknown[] = JSON.parse(requestClass);
    let left: readonly Endpoint[] = this.pool.endpoints;
    for (const [index, filter] of this.options.endpointFilters.entries()) {
      const kept = typeof parts[index] === 'string' && this.filters[index]?.ask(filter, keep, left, parts[index]);
      if (kept) left = left.filter((endpoint) => kept.has(endpoint));
    }
    return left;
  }
}
