/**
 * Drops waiting requests whose AbortSignal aborts.
 *
 * Invariant: one listener for each distinct signal that a waiting request carries, however many share it, and none for any other.
 */
import type { QueueItem } from './queue-item.js';

/** The waiting requests that share one signal: most often a single one, for which a set would be larger than its record (bench: cancel). */
export class AbortGroup {
  readonly signal: AbortSignal;
  private single: QueueItem | undefined = undefined;
  private several: Set<QueueItem> | undefined = undefined;
  private readonly onAbort: (items: QueueItem[]) => void;

  constructor(signal: AbortSignal, onAbort: (items: QueueItem[]) => void) {
    this.signal = signal;
    this.onAbort = onAbort;
  }

  get isEmpty(): boolean {
    return this.single === undefined && (this.several === undefined || this.several.size === 0);
  }

  add(item: QueueItem): void {
    if (this.several !== undefined) this.several.add(item);
    else if (this.single === undefined) this.single = item;
    else {
      this.several = new Set([this.single, item]);
      this.single = undefined;
    }
  }

  remove(item: QueueItem): void {
    if (this.single === item) this.single = undefined;
    else this.several?.delete(item);
  }

  handleEvent(): void {
    this.onAbort(this.single === undefined ? [...(this.several ?? [])] : [this.single]);
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
      group = new AbortGroup(signal, this.onAbort);
      this.groups.set(signal, group);
    }
    if (group.isEmpty) signal.addEventListener('abort', group);
    group.add(item);
    item.abortGroup = group;
    // Foreign code may have aborted it since the request was judged.
    if (signal.aborted) this.onAbort([item]);
  }

  unwatch(item: QueueItem): void {
    const group = item.abortGroup;
    if (group === undefined) return;
    item.abortGroup = undefined;
    group.remove(item);
    if (group.isEmpty) group.signal.removeEventListener('abort', group);
  }
}
