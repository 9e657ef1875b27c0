/** The announcements of one detector or constraint. */
import type { PluginGuard } from '../base/faults/plugin-guard.js';
import type { Constraint } from './constraint.js';

export class Subscription {
  /** False where nothing is announced. */
  isOpen = false;
  private unsubscribe: (() => void) | undefined = undefined;
  private readonly guard: PluginGuard;

  constructor(guard: PluginGuard, announcer: Pick<Constraint, 'subscribe'>, listener: () => void) {
    this.guard = guard;
    try {
      if (announcer.subscribe === undefined) return;
      // A function of its own: who knows listeners by identity would lose that of a later subscription with this one.
      const unsubscribe: unknown = announcer.subscribe(() => listener());
      this.isOpen = typeof unsubscribe === 'function';
      if (this.isOpen) this.unsubscribe = unsubscribe as () => void;
      else guard.violated('subscribe must return a function', unsubscribe);
    } catch (error) {
      guard.failed(error);
    }
  }

  stop(): void {
    try {
      this.guard.ignored(this.unsubscribe?.());
    } catch (error) {
      this.guard.failed(error);
    }
    this.unsubscribe = undefined;
    this.isOpen = false;
  }
}
