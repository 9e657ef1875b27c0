/**
 * The last five minutes, kept whether somebody looks or not: a reading every five seconds, in rings of fixed size.
 *
 * Invariant: one timer, which does not keep the process; a reading costs what `stats()` costs.
 */
import { letProcessEnd } from '../../base/clock.js';
import type { Clock, FlowStats } from '../../index.js';
import { DropHistory } from './drop-history.js';
import { FlowHistory, spanMs } from './flow-history.js';
import type { InspectedFlow } from './options.js';

/** Counts of a span, and the state at its end. */
export interface HistorySpan {
  readonly dispatched: number;
  readonly rejected: number;
  readonly evicted: number;
  readonly waiting: number;
  readonly inFlight: number;
}

const spans = 60;

export class History {
  readonly flows: FlowHistory;
  readonly drops: DropHistory;
  readonly spanMs: number = spanMs;
  private readonly past: HistorySpan[] = [];
  private last: FlowStats;
  private timer: unknown;
  private readonly flow: InspectedFlow;
  private readonly clock: Clock;

  constructor(flow: InspectedFlow, clock: Clock) {
    this.flow = flow;
    this.clock = clock;
    this.last = flow.stats();
    this.flows = new FlowHistory(flow, clock.now());
    this.drops = new DropHistory(flow, spans);
    this.wait();
  }

  stop(): void {
    this.clock.clearTimeout(this.timer);
    this.flows.stop();
    this.drops.stop();
  }

  /** Oldest first, the span that is going on last; null before there was an inspector. */
  spans(now: FlowStats): (HistorySpan | null)[] {
    const all = [...this.past, difference(this.last, now)];
    return [...new Array<null>(Math.max(spans - all.length, 0)).fill(null), ...all.slice(-spans)];
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
      this.drops.turn();
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
    inFlight: after.inFlight,
  };
}
