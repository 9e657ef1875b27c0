/**
 * The sessions that other replicas told of, and when each is over unless it is told again.
 *
 * Invariant: never more than `most`; none stays untold for longer than the inactivity set here, ± `betweenScansMs`.
 */
import { letProcessEnd } from '../../base/clock.js';
import type { Clock } from '../../index.js';

/** Sessions that are over within this time end together, because a scan costs O(sessions). */
const betweenScansMs = 50;

export class RemoteSessions {
  private readonly endsAtMs = new Map<string, number>();
  private timer: unknown;
  private timerAtMs = Number.POSITIVE_INFINITY;
  private readonly most: number;
  private readonly clock: Clock;
  private readonly onEnd: (name: string) => void;

  constructor(most: number, clock: Clock, onEnd: (name: string) => void) {
    this.most = most;
    this.clock = clock;
    this.onEnd = onEnd;
  }

  hasRoomFor(name: string): boolean {
    return this.endsAtMs.size < this.most || this.endsAtMs.has(name);
  }

  /** If several replicas tell of it, the longest span counts. */
  keep(name: string, forMs: number): void {
    const atMs = Math.max(this.clock.now() + forMs, this.endsAtMs.get(name) ?? 0);
    this.endsAtMs.set(name, atMs);
    if (atMs < this.timerAtMs) this.scanAt(atMs);
  }

  forget(name: string): void {
    this.endsAtMs.delete(name);
    if (this.endsAtMs.size === 0) this.stopTimer();
  }

  clear(): void {
    const names = [...this.endsAtMs.keys()];
    this.endsAtMs.clear();
    this.stopTimer();
    for (const name of names) this.onEnd(name);
  }

  private scanAt(atMs: number): void {
    this.stopTimer();
    this.timerAtMs = atMs;
    const delayMs = Math.min(atMs - this.clock.now(), 2 ** 31 - 1);
    this.timer = letProcessEnd(this.clock.setTimeout(() => this.scan(), delayMs));
  }

  private scan(): void {
    const nowMs = this.clock.now();
    this.timerAtMs = Number.POSITIVE_INFINITY;
    let nextMs = Number.POSITIVE_INFINITY;
    const over: string[] = [];
    for (const [name, atMs] of this.endsAtMs) {
      if (atMs <= nowMs) over.push(name);
      else nextMs = Math.min(nextMs, atMs);
    }
    for (const name of over) this.endsAtMs.delete(name);
    if (nextMs < Number.POSITIVE_INFINITY) this.scanAt(Math.max(nextMs, nowMs + betweenScansMs));
    for (const name of over) this.onEnd(name);
  }

  private stopTimer(): void {
    this.clock.clearTimeout(this.timer);
    this.timerAtMs = Number.POSITIVE_INFINITY;
  }
}
