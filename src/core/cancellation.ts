/**
 * Drops waiting requests whose AbortSignal aborts.
 *
 * Invariant: one listener for each distinct signal that a waiting request carries, however many share it, and none for any other.
 */
import type { QueueItem } from './queue-item.js';

/** The waiting requests that share one signal. */
export class AbortGroup {
  readonly items: Set<QueueItem> = new Set();
  readonly signal: AbortSignal;
  private readonly onAbort: (group: AbortGroup) => void;

  constructor(signal: AbortSignal, onAbort: (group: AbortGroup) => void) {
    this.signal = signal;
    this.onAbort = onAbort;
  }

  handleEvent(): void {
    this.onAbort(this);
  }
}

export class Cancellation {
  private readonly groups = new WeakMap<AbortSignal, AbortGroup>();
  private readonly onAbort: (items: QueueItem[]) => void;

  /** `onAbort` gets the requests to drop; it must `unwatch` each. */
  constructor(onAbort: (items: QueueItem[]) => void) {
    this.onAbort = onAbort;
  }

  watch(item: QueueItem, signal: AbortSignal): void {
    let group = this.groups.get(signal);
    if (group === undefined) {
      group = new AbortGroup(signal, this.groupAborted);
      this.groups.set(signal, group);
    }
    if (group.items.size === 0) signal.addEventListener('abort', group);
    group.items.add(item);
    item.abortGroup = group;
    // Foreign code may have aborted it since the request was judged.
    if (signal.aborted) this.onAbort([item]);
  }

  unwatch(item: QueueItem): void {
    const group = item.abortGroup;
    if (group === undefined) return;
    item.abortGroup = undefined;
    group.items.delete(item);
    if (group.items.size === 0) group.signal.removeEventListener('abort', group);
  }

  private readonly groupAborted = (group: AbortGroup): void => this.onAbort([...group.items]);
}
