/**
 * Drops waiting requests whose AbortSignal aborts.
 * Invariant: one listener for each distinct signal that a waiting request carries, however many share it, and none for
 * any other. If a signal cannot be listened to, this is reported, and its request waits without it.
 */
import type { PluginGuard } from '../../base/faults/plugin-guard.js';
import { put } from '../../base/put.js';

/** A request, as the watch over its signal sees it. */
export interface Abortable<T> {
  /** The requests that share its signal: owned by Cancellation. */
  abortGroup: AbortGroup<T> | undefined;
}

/** Waiting requests that share a signal: most often one, and a set would take more memory (bench: cancel). */
export class AbortGroup<T> {
  readonly signal: AbortSignal;
  private single: T | undefined = undefined;
  private several: Set<T> | undefined = undefined;
  private readonly onAbort: (items: T[]) => void;

  constructor(signal: AbortSignal, onAbort: (items: T[]) => void) {
    this.signal = signal;
    this.onAbort = onAbort;
  }

  get isEmpty(): boolean {
    return this.single === undefined && (this.several === undefined || this.several.size === 0);
  }

  add(item: T): void {
    if (this.several !== undefined) this.several.add(item);
    else if (this.single === undefined) this.single = item;
    else {
      this.several = new Set<T>([this.single, item]);
      this.single = undefined;
    }
  }

  remove(item: T): void {
    if (this.single === item) this.single = undefined;
    else this.several?.delete(item);
  }

  handleEvent(): void {
    this.onAbort(this.single === undefined ? [...(this.several ?? [])] : [this.single]);
  }
}

export class Cancellation<T extends Abortable<T>> {
  private readonly groups = new WeakMap<AbortSignal, AbortGroup<T>>();
  private readonly guard: PluginGuard;
  private readonly onAbort: (items: T[]) => void;

  /** `guard` hears of faulty signals. `onAbort` gets the requests to drop; it must `unwatch` each. */
  constructor(guard: PluginGuard, onAbort: (items: T[]) => void) {
    this.guard = guard;
    this.onAbort = onAbort;
  }

  /** @throws what the signal throws; the request is then not watched, or `signal.aborted` was not looked at */
  watch(item: T, signal: AbortSignal): void {
    const group = this.groups.get(signal) ?? put(this.groups, signal, new AbortGroup<T>(signal, this.onAbort));
    if (group.isEmpty) this.guard.ignored(signal.addEventListener('abort', group));
    group.add(item);
    item.abortGroup = group;
    // Foreign code may have aborted it since the decision.
    if (signal.aborted === true) this.onAbort([item]);
  }

  /** The request must be watched. */
  unwatch(item: T): void {
    const group = item.abortGroup as AbortGroup<T>;
    item.abortGroup = undefined;
    group.remove(item);
    if (!group.isEmpty) return;
    try {
      this.guard.ignored(group.signal.removeEventListener('abort', group));
    } catch (error) {
      this.guard.failed(error);
    }
  }
}
