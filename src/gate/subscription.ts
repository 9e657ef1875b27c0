/** The announcements of one detector or constraint. */
import type { PluginGuard } from '../base/faults/plugin-guard.js';
import type { Constraint } from './constraint.js';

export interface Subscription {
  /** False where nothing is announced. */
  readonly isOpen: boolean;
  stop(): void;
}

export function subscribed(
  guard: PluginGuard,
  announcer: Pick<Constraint, 'subscribe'>,
  listener: () => void,
): Subscription {
  let unsubscribe: (() => void) | undefined;
  try {
    // A function of its own: who knows listeners by identity would lose that of a later subscription with this one.
    const answer = announcer.subscribe === undefined ? undefined : announcer.subscribe(() => listener());
    if (typeof answer === 'function') unsubscribe = answer;
    else if (announcer.subscribe !== undefined) guard.violated('subscribe must return a function', answer);
  } catch (error) {
    guard.failed(error);
  }
  return {
    isOpen: unsubscribe !== undefined,
    stop() {
      guard.tell({ unsubscribe }, 'unsubscribe');
      unsubscribe = undefined;
    },
  };
}
