/**
 * The last minutes, kept whether somebody looks or not: a reading every five seconds, and counts of what happens to
 * requests, in rings of fixed size.
 *
 *     [3, 5, 4, …]   one number for each span of five seconds; `current` is being filled
 *
 * Invariant: one timer, which does not keep the process; a reading costs what `stats()` costs. What counted nothing in
 * a whole ring is forgotten, and at most `mostFlows` flows are kept apart: later ones wait until another is forgotten.
 */
import { letProcessEnd } from '../../base/clock.js';
import { put } from '../../base/put.js';
import type { Clock, DropReason, FlowController, FlowStats } from '../../index.js';

export const spanMs = 5_000;
/** Of readings and drops: five minutes. */
const spans = 60;
/** Of flows: a minute. */
const spansOfFlows = 12;
const mostFlows = 1_000;

/** Counts of a span, and the state at its end. */
export type HistorySpan = Pick<FlowStats, 'dispatched' | 'rejected' | 'evicted' | 'waiting'>;

/** Counts by key. */
class Rings<K> {
  private readonly rings = new Map<K, Uint32Array>();
  private readonly length: number;
  private current = 0;

  constructor(length: number) {
    this.length = length;
  }

  get keys(): readonly K[] {
    return [...this.rings.keys()];
  }

  get size(): number {
    return this.rings.size;
  }

  has(key: K): boolean {
    return this.rings.has(key);
  }

  count(key: K): void {
    const ring = this.rings.get(key) ?? put(this.rings, key, new Uint32Array(this.length));
    ring[this.current]!++;
  }

  /** Begins a span. */
  turn(): void {
    this.current = (this.current + 1) % this.length;
    for (const [key, ring] of this.rings) {
      ring[this.current] = 0;
      if (ring.every((count) => count === 0)) this.rings.delete(key);
    }
  }

  /** In the last spans, the one that is being filled among them. */
  sum(key: K, last: number = this.length): number {
    const ring = this.rings.get(key);
    let total = 0;
    for (let back = 0; back < last; back++) total += ring?.[(this.current - back + this.length) % this.length] ?? 0;
    return total;
  }
}

type FlowCounts = Readonly<Record<'served' | 'dropped', number>>;

const ringsOfFlows = (): Rings<string> => new Rings(spansOfFlows);

/** How many requests of each flow were dispatched and dropped in the last minute. */
export class FlowHistory {
  private readonly bands = new Map<number, Readonly<Record<keyof FlowCounts, Rings<string>>>>();
  private spanBeganAtMs: number;

  constructor(nowMs: number) {
    this.spanBeganAtMs = nowMs;
  }

  count(kind: keyof FlowCounts, fairnessId: string, priority: number): void {
    const band =
      this.bands.get(priority) ?? put(this.bands, priority, { served: ringsOfFlows(), dropped: ringsOfFlows() });
    const size = (): number => [...this.bands.values()].reduce((sum, each) => sum + each[kind].size, 0);
    if (band[kind].has(fairnessId) || size() < mostFlows) band[kind].count(fairnessId);
  }

  turn(nowMs: number): void {
    this.spanBeganAtMs = nowMs;
    for (const [priority, { served, dropped }] of this.bands) {
      served.turn();
      dropped.turn();
      if (served.size + dropped.size === 0) this.bands.delete(priority);
    }
  }

  /** The time that the whole ring covers: about a minute. */
  served(fairnessId: string, priority: number): number {
    return this.bands.get(priority)?.served.sum(fairnessId) ?? 0;
  }

  /** Requests dispatched in the last minute, of all flows of a band that are kept apart. */
  servedInBand(priority: number): number {
    const served = this.bands.get(priority)?.served;
    return served?.keys.reduce((total, fairnessId) => total + served.sum(fairnessId), 0) ?? 0;
  }

  /** Fairness IDs of a band with a dispatch in the last minute, without those of `known`. */
  othersServed(priority: number, known: ReadonlySet<string>): number {
    return this.bands.get(priority)?.served.keys.filter((fairnessId) => !known.has(fairnessId)).length ?? 0;
  }

  /** Averages over the last two spans and the one that is being filled, per second. */
  rates(fairnessId: string, priority: number, nowMs: number): FlowCounts {
    const band = this.bands.get(priority);
    const seconds = (2 * spanMs + Math.max(nowMs - this.spanBeganAtMs, 0)) / 1_000;
    const lately = (rings: Rings<string> | undefined): number => (rings?.sum(fairnessId, 3) ?? 0) / seconds;
    return { served: lately(band?.served), dropped: lately(band?.dropped) };
  }
}

export class History {
  readonly flows: FlowHistory;
  private readonly byReason = new Rings<DropReason>(spans);
  /** At the limits of the whole queue; at those of a band, or of one of its flows. */
  private readonly byLimit = new Rings<number | 'global'>(spans);
  private readonly past: HistorySpan[] = [];
  private last: FlowStats;
  private timer: unknown;
  private readonly flow: FlowController<never>;
  private readonly clock: Clock;
  private readonly stops: readonly (() => void)[];

  constructor(flow: FlowController<never>, clock: Clock) {
    this.flow = flow;
    this.clock = clock;
    this.last = flow.stats();
    this.flows = new FlowHistory(clock.now());
    this.stops = [
      flow.on('dispatched', ({ item }) => this.flows.count('served', item.fairnessId, item.priority)),
      flow.on('dropped', ({ outcome: { reason, limit, fairnessId, priority } }) => {
        this.byReason.count(reason);
        if (limit !== undefined) this.byLimit.count(limit.scope === 'global' ? 'global' : priority);
        // What is cancelled is the client's doing.
        if (reason !== 'cancelled') this.flows.count('dropped', fairnessId, priority);
      }),
    ];
    this.wait();
  }

  stop(): void {
    this.clock.clearTimeout(this.timer);
    for (const stop of this.stops) stop();
  }

  /** Oldest first, the span that is going on last; null before there was an inspector. */
  spans(now: FlowStats): (HistorySpan | null)[] {
    const all = [...this.past, difference(this.last, now)];
    return [...new Array<null>(Math.max(spans - all.length, 0)).fill(null), ...all.slice(-spans)];
  }

  /** The drops of the last five minutes, most frequent first. */
  get reasons(): { readonly reason: DropReason; readonly requests: number }[] {
    const all = this.byReason.keys.map((reason) => ({ reason, requests: this.byReason.sum(reason) }));
    return all.sort((a, b) => b.requests - a.requests || (a.reason < b.reason ? -1 : 1));
  }

  /** Drops at the limits of that band and its flows, or of the whole queue. */
  droppedAt(limit: number | 'global'): number {
    return this.byLimit.sum(limit);
  }

  private wait(): void {
    this.timer = letProcessEnd(this.clock.setTimeout(() => this.turn(), spanMs));
  }

  private turn(): void {
    this.wait();
    try {
      const now = this.flow.stats();
      this.past.push(difference(this.last, now));
      if (this.past.length >= spans) this.past.shift();
      this.last = now;
      this.flows.turn(this.clock.now());
      this.byReason.turn();
      this.byLimit.turn();
    } catch {
      // A timer's exception would end the process. Pages hear of it when they look themselves.
    }
  }
}

function difference(before: FlowStats, after: FlowStats): HistorySpan {
  return {
    dispatched: after.dispatched - before.dispatched,
    rejected: after.rejected - before.rejected,
    evicted: after.evicted - before.evicted,
    waiting: after.waiting,
  };
}
