/**
 * Finds leases that the host lost, so that nobody can release them. It finds a lease when it is garbage collected, and
 * reports it once, with the call of `enqueue` that it came from. It is for development: a stack for each request costs
 * more than everything else that is done for it.
 *
 *     host ──► handle ──► lease ◄── running
 *
 * Invariant: the controller holds the lease and never the handle, so that the handle dies with the last reference of
 * the host.
 */
import { warnOperator } from '../../base/faults/warn-operator.js';
import type { EventHub } from '../event-hub.js';
import type { Lease } from '../outcome/lease.js';
import type { Part } from './parts.js';
import type { QueueItem } from './queue-item.js';
import { own, type SeatLease } from './seats.js';

export class LeaseTracer implements Part {
  private readonly origins = new WeakMap<QueueItem, string>();
  /** Keeps a handle alive as long as a method that was taken from it. */
  private readonly handles = new WeakMap<object, Lease>();
  private readonly registry: FinalizationRegistry<SeatLease>;

  /** `onLost` gets leases that may have been released since. */
  constructor(onLost: (lease: SeatLease) => void) {
    this.registry = new FinalizationRegistry(onLost);
  }

  /** Notes where the request came in. */
  arrived(item: QueueItem): void {
    const stack = new Error('enqueue').stack ?? '';
    this.origins.set(item, stack.slice(stack.indexOf('\n') + 1));
  }

  /** For a request that was put back, this is the call of its first attempt. */
  putBack(item: QueueItem, before: QueueItem): void {
    this.origins.set(item, this.originOf(before));
  }

  handle(lease: SeatLease): Lease {
    const { handles, registry } = this;
    const handle: Lease = new Proxy(lease, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target);
        if (typeof value !== 'function') return value;
        const bound: object = value.bind(target);
        handles.set(bound, handle);
        return bound;
      },
    });
    registry.register(handle, lease);
    own(lease).handle = new WeakRef(handle);
    return handle;
  }

  tell(lease: SeatLease, events: EventHub, nowMs: number): void {
    const { fairnessId, priority } = lease;
    const heldMs = nowMs - lease.dispatchedAtMs;
    const origin = this.originOf(lease.item);
    if (events.heard.leaseLost) events.emit('leaseLost', { fairnessId, priority, heldMs, origin });
    else
      warnOperator(`a lease was lost without release(), and its seat stays taken. It was asked for here:\n${origin}`);
  }

  private originOf(item: QueueItem): string {
    return this.origins.get(item) ?? '';
  }
}
