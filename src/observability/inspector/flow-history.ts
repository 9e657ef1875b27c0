/**
 * How many requests of each flow were dispatched and dropped in the last minute, counted as they go, whether somebody
 * looks or not.
 *
 *     served   [3, 5, 4, …]   one number for each span of five seconds, in a ring; `current` is being filled
 *     dropped  [0, 0, 9, …]   drops of any kind
 *
 * Invariant: at most `mostFlows` flows are kept apart; those that come later wait until another one had nothing for a
 * minute.
 */
import type { ControllerEvents } from './options.js';

export const spanMs = 5_000;
const spans = 12;
const mostFlows = 1_000;

class FlowCounts {
  readonly served = new Uint32Array(spans);
  readonly dropped = new Uint32Array(spans);

  get isEmpty(): boolean {
    return this.served.every((count) => count === 0) && this.dropped.every((count) => count === 0);
  }
}

export interface RecentCounts {
  readonly served: number;
  readonly dropped: number;
}

export class FlowHistory {
  private readonly byPriority = new Map<number, Map<string, FlowCounts>>();
  private size = 0;
  private current = 0;
  private spanBeganAtMs: number;
  private readonly stops: readonly (() => void)[];

  constructor(flow: ControllerEvents, nowMs: number) {
    this.spanBeganAtMs = nowMs;
    this.stops = [
      flow.on('dispatched', ({ item }) => {
        const counts = this.countsOf(item.fairnessId, item.priority);
        if (counts !== undefined) counts.served[this.current]!++;
      }),
      flow.on('dropped', ({ outcome }) => {
        if (outcome.reason === 'cancelled') return; // the client's doing
        const counts = this.countsOf(outcome.fairnessId, outcome.priority);
        if (counts !== undefined) counts.dropped[this.current]!++;
      }),
    ];
  }

  stop(): void {
    for (const stop of this.stops) stop();
  }

  /** Begins a span; call it every `spanMs`. */
  turn(nowMs: number): void {
    this.spanBeganAtMs = nowMs;
    this.current = (this.current + 1) % spans;
    for (const [priority, flows] of this.byPriority) {
      for (const [fairnessId, counts] of flows) {
        counts.served[this.current] = 0;
        counts.dropped[this.current] = 0;
        if (!counts.isEmpty) continue;
        flows.delete(fairnessId);
        this.size--;
      }
      if (flows.size === 0) this.byPriority.delete(priority);
    }
  }

  /** The time that the whole ring covers: about a minute. */
  recent(fairnessId: string, priority: number): RecentCounts {
    const counts = this.byPriority.get(priority)?.get(fairnessId);
    return { served: sum(counts?.served), dropped: sum(counts?.dropped) };
  }

  /** Requests dispatched in the last minute, of all flows of a band that are kept apart. */
  servedInBand(priority: number): number {
    let served = 0;
    for (const counts of this.byPriority.get(priority)?.values() ?? []) served += sum(counts.served);
    return served;
  }

  /** Fairness IDs of a band with a dispatch in the last minute, without those of `known`. */
  othersServed(priority: number, known: ReadonlySet<string>): number {
    let others = 0;
    for (const [fairnessId, { served }] of this.byPriority.get(priority) ?? [])
      if (!known.has(fairnessId) && sum(served) > 0) others++;
    return others;
  }

  /** Averages over the last two spans and the one that is being filled. */
  rates(fairnessId: string, priority: number, nowMs: number): RecentCounts {
    const counts = this.byPriority.get(priority)?.get(fairnessId);
    const seconds = (2 * spanMs + Math.max(nowMs - this.spanBeganAtMs, 0)) / 1_000;
    const lately = (ring: Uint32Array | undefined): number => {
      let total = 0;
      for (let back = 0; back < 3; back++) total += ring?.[(this.current - back + spans) % spans] ?? 0;
      return total / seconds;
    };
    return { served: lately(counts?.served), dropped: lately(counts?.dropped) };
  }

  private countsOf(fairnessId: string, priority: number): FlowCounts | undefined {
    const known = this.byPriority.get(priority)?.get(fairnessId);
    if (known !== undefined || this.size >= mostFlows) return known;
    const flows = this.byPriority.get(priority) ?? new Map<string, FlowCounts>();
    this.byPriority.set(priority, flows);
    const made = new FlowCounts();
    flows.set(fairnessId, made);
    this.size++;
    return made;
  }
}

export function sum(ring: Uint32Array | undefined): number {
  let total = 0;
  for (const count of ring ?? []) total += count;
  return total;
}
