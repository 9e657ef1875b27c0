/** Whom to evict for a more important request. Invariant: of strictly lower priority than its band; nobody twice. */
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import { PluginGuard, question, wrong, yesOrNo } from '../base/faults/plugin-guard.js';
import { type Linked, LinkedList } from '../base/queues/linked-list.js';
import type { SeatReserve } from '../gate/seat-reserve.js';
import type { PriorityBand } from '../tiers/priority-band.js';
import type { EvictorSettings, InFlightView } from './eviction-policy.js';
import { Reclamation } from './reclamation.js';

export interface ReclaimFigures {
  /** How far the saturation is above the ceiling of the band that lacks most room. */
  readonly target: number;
  /** Saturation that the victims still leaving will free. */
  readonly pending: number;
}

/** The source of a band's saturation. */
export interface Gauge {
  /** The last reading for a band. One that failed is no reason to evict a request. */
  readingFor(band: PriorityBand): { readonly saturation: number; readonly isFailing: boolean };
  /** Keeps free for a band what was evicted for it. */
  readonly reserve: Pick<SeatReserve, 'add'> | undefined;
}

/** A request that may be evicted, in the list of those of its priority. */
export class Candidate<L> implements Linked<Candidate<L>> {
  previous: Candidate<L> | undefined = undefined;
  next: Candidate<L> | undefined = undefined;
  readonly lease: L;
  readonly peers: LinkedList<Candidate<L>>;

  constructor(lease: L, peers: LinkedList<Candidate<L>>) {
    this.lease = lease;
    this.peers = peers;
  }
}

/** The evictor's notes on a lease. */
export interface Tracked<L> extends InFlightView {
  /** Written by the evictor alone; undefined while the request may not be evicted, or not any more. */
  candidacy: Candidate<L> | undefined;
}

const accepts = yesOrNo('accepts');
const stillAccepts = yesOrNo('stillAccepts');
const compare = question('compare', 'a number', (order) =>
  typeof order === 'number' && !Number.isNaN(order) ? order : wrong,
);

/** If there are more priorities, those without a request are removed. */
const mostPriorities = 64;

export class InFlightEvictor<L extends Tracked<L>> {
  /** Requests that may be evicted, by priority, in the order of their dispatch. */
  readonly evictable: Map<number, LinkedList<Candidate<L>>> = new Map();
  private settings: EvictorSettings;
  private filter: PluginGuard;
  private ordering: PluginGuard;
  private readonly errors: PluginErrorSink;
  private readonly reclamation: Reclamation<L>;

  constructor(settings: EvictorSettings, errors: PluginErrorSink) {
    this.settings = settings;
    this.filter = new PluginGuard('evictionFilter', settings.filter, errors);
    this.ordering = new PluginGuard('evictionOrdering', settings.ordering, errors);
    this.errors = errors;
    this.reclamation = new Reclamation<L>(() => this.settings);
  }

  /** Takes new settings; requests in flight stay as their dispatch found them. */
  configure(settings: EvictorSettings): void {
    this.settings = settings;
    this.filter = new PluginGuard('evictionFilter', settings.filter, this.errors);
    this.ordering = new PluginGuard('evictionOrdering', settings.ordering, this.errors);
  }

  /** The instant of the next decision if nothing else happens; Infinity while none is pending. */
  get settlesAtMs(): number {
    return this.reclamation.settlesAtMs;
  }

  /** The saturation that waiting bands lack, and the saturation that leaving victims will free. O(waiting bands). */
  figures(waiting: readonly PriorityBand[], gauge: Gauge): ReclaimFigures {
    let target = 0;
    for (const band of waiting) target = Math.max(target, measured(band, gauge) - band.ceiling);
    return { target, pending: this.reclamation.pending };
  }

  /** A request was dispatched. Returns whether it may be evicted. */
  track(lease: L): boolean {
    if (this.filter.ask(this.settings.filter, accepts, lease) !== true) return false;
    let peers = this.evictable.get(lease.priority);
    if (peers === undefined) {
      if (this.evictable.size >= mostPriorities)
        for (const [priority, { size }] of this.evictable) if (size === 0) this.evictable.delete(priority);
      peers = new LinkedList();
      this.evictable.set(lease.priority, peers);
    }
    lease.candidacy = new Candidate(lease, peers);
    peers.push(lease.candidacy);
    return true;
  }

  /** It ended. Returns whether it had been evicted. */
  untrack(lease: L, nowMs: number): boolean {
    this.forget(lease);
    return this.reclamation.confirmed(lease, nowMs);
  }

  /**
   * Victims for the highest of `waiting` that saturation holds back, the most dispensable first; tracked as leaving
   * from now on. O(priorities) when none may be, else O(evictable · log).
   */
  victims(waiting: readonly PriorityBand[], gauge: Gauge, inFlight: number, nowMs: number): L[] {
    if (!this.reclamation.isSettled(nowMs)) return [];
    const lowest = this.lowestPriority();
    if (lowest === undefined) return [];
    for (const band of waiting) {
      if (band.priority <= lowest) return [];
      const saturation = measured(band, gauge);
      if (band.ceiling <= 0 || saturation < band.ceiling) continue;
      return this.decide(band, saturation, gauge, inFlight, nowMs);
    }
    return [];
  }

  private decide(band: PriorityBand, saturation: number, gauge: Gauge, inFlight: number, nowMs: number): L[] {
    const below: L[] = [];
    for (const [priority, peers] of this.evictable)
      if (priority < band.priority) for (const { lease } of peers) below.push(lease);
    const candidates = this.filter.has(this.settings.filter, 'stillAccepts') ? this.stillAccepted(below) : below;
    const size = this.reclamation.size({ inFlight, evictable: candidates.length, saturation, ceiling: band.ceiling });
    if (size === 0) return [];
    // So that a stable sort leaves ties to the newest.
    const newestFirst = candidates.reverse();
    const chosen = newestFirst.sort((a, b) => this.compare(a, b)).slice(0, size);
    for (const lease of chosen) {
      this.forget(lease);
      this.reclamation.issued(lease, saturation / inFlight, nowMs);
      gauge.reserve?.add(band.priority, saturation / inFlight, nowMs);
    }
    return chosen;
  }

  /** The others are forgotten, so that each costs one question more at most. */
  private stillAccepted(candidates: readonly L[]): L[] {
    return candidates.filter((lease) => {
      const isAccepted = this.filter.ask(this.settings.filter, stillAccepts, lease) === true;
      if (!isAccepted) this.forget(lease);
      return isAccepted;
    });
  }

  private lowestPriority(): number | undefined {
    let lowest: number | undefined;
    for (const [priority, { size }] of this.evictable)
      if (size > 0 && (lowest === undefined || priority < lowest)) lowest = priority;
    return lowest;
  }

  private forget(lease: L): void {
    const { candidacy } = lease;
    lease.candidacy = undefined;
    candidacy?.peers.remove(candidacy);
  }

  private compare(a: L, b: L): number {
    return this.ordering.ask(this.settings.ordering, compare, a, b) ?? 0;
  }
}

function measured(band: PriorityBand, gauge: Gauge): number {
  const { saturation, isFailing } = gauge.readingFor(band);
  return isFailing ? 0 : saturation;
}
