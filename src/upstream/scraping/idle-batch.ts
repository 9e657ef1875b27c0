/**
 * The endpoints of an idle pool wait here, and are asked together. A process that wakes up once and asks ten servers
 * takes half the CPU of one that wakes up ten times.
 *
 * Invariant: its timer runs exactly while there are targets in it.
 */
import { letProcessEnd } from '../../base/clock.js';
import type { Clock } from '../../index.js';
import type { Target } from './target.js';

export class IdleBatch {
  /** When it begins, ms of the scraper's clock. */
  atMs = 0;
  private readonly targets = new Set<Target>();
  private timer: unknown = undefined;
  private readonly clock: Clock;
  private readonly ask: (target: Target) => void;

  constructor(clock: Clock, ask: (target: Target) => void) {
    this.clock = clock;
    this.ask = ask;
  }

  get isEmpty(): boolean {
    return this.targets.size === 0;
  }

  /** Adds a target to the batch. The first one says when it begins. */
  join(target: Target, atMs: number): void {
    this.targets.add(target);
    if (this.timer !== undefined) return;
    this.atMs = atMs;
    this.timer = letProcessEnd(this.clock.setTimeout(() => this.begin(), Math.max(atMs - this.clock.now(), 0)));
  }

  leave(target: Target): void {
    if (this.targets.delete(target) && this.targets.size === 0) this.stop();
  }

  /** Ends it early. Returns its targets. */
  dissolve(): readonly Target[] {
    const targets = [...this.targets];
    this.targets.clear();
    this.stop();
    return targets;
  }

  private begin(): void {
    for (const target of this.dissolve()) this.ask(target);
  }

  private stop(): void {
    this.clock.clearTimeout(this.timer);
    this.timer = undefined;
  }
}
