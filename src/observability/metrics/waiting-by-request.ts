/**
 * What an observer remembers of every waiting request, from `queued` until `dispatched` or `dropped`.
 *
 * Invariant: holds nothing of a request that no longer waits.
 */
import type { DroppedEvent, ItemView } from '../../index.js';

export class WaitingByRequest<T> {
  /** A drop names its request, not its item; one request may wait more than once. */
  private readonly byRequest = new Map<unknown, Map<ItemView, T>>();

  remember(item: ItemView, remembered: T): void {
    const others = this.byRequest.get(item.request);
    if (others === undefined) this.byRequest.set(item.request, new Map([[item, remembered]]));
    else others.set(item, remembered);
  }

  /** Undefined for a request that never waited, or began to before the observer came. */
  takeDispatched(item: ItemView): T | undefined {
    return this.take(item.request, item);
  }

  /** As `takeDispatched`. */
  takeDropped({ request, outcome }: DroppedEvent): T | undefined {
    if (outcome.type.startsWith('Rejected') || outcome.reason === 'evicted') return undefined;
    for (const item of this.byRequest.get(request)?.keys() ?? []) {
      if (item.fairnessId === outcome.fairnessId && item.priority === outcome.priority) return this.take(request, item);
    }
    return undefined;
  }

  *all(): Iterable<readonly [item: ItemView, remembered: T]> {
    for (const items of this.byRequest.values()) yield* items;
  }

  private take(request: unknown, item: ItemView): T | undefined {
    const items = this.byRequest.get(request);
    const remembered = items?.get(item);
    if (items?.delete(item) && items.size === 0) this.byRequest.delete(request);
    return remembered;
  }
}
