/** Flows at their cap are parked, so that others pass, until their first request fits: a part, while caps are. */
import type { LinkedList } from '../../base/queues/linked-list.js';
import type { Flow, WaitingItem } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { ResolvedOptions } from '../options.js';
import type { Backlog } from './backlog.js';
import { hasCaps, InFlightCaps } from './in-flight-caps.js';
import type { Part } from './parts.js';
import type { QueueItem } from './queue-item.js';
import type { SeatLease } from './seats.js';

export class Parking implements Part {
  /** Undefined while no flow has a cap. */
  caps: InFlightCaps | undefined = undefined;
  private readonly backlog: Backlog;

  constructor(backlog: Backlog) {
    this.backlog = backlog;
  }

  /** Takes new options, while no flow is parked. O(in flight) where flows have caps. */
  configure(options: ResolvedOptions, running: LinkedList<SeatLease>): void {
    this.caps = hasCaps(options) ? new InFlightCaps(options, running) : undefined;
  }

  parks(item: QueueItem, band: PriorityBand): boolean {
    const account = this.caps?.obstacle(item, band);
    if (account === undefined) return false;
    this.backlog.park(item.flow as Flow, account);
    return true;
  }

  seated({ item }: SeatLease): void {
    this.caps?.taken(item);
  }

  /** Flows that were parked for the request may go. */
  ended({ item }: SeatLease): void {
    for (const flow of this.caps?.givenBack(item) ?? []) this.review(flow);
  }

  /** Unparks a flow when its first request is below its cap. True when the flow may go. */
  review(flow: Flow): boolean {
    if (!flow.isParked) return false;
    const account = this.caps?.obstacle(flow.head as WaitingItem, flow.band);
    if (account === flow.waitsFor) return false;
    this.backlog.unpark(flow);
    // If many fairness IDs share the flow, its next request may wait for something else.
    if (account === undefined) return true;
    this.backlog.park(flow, account);
    return false;
  }

  /** The settings of a fairness ID have changed: its flows decide anew. */
  unpark(fairnessId: string): void {
    for (const flow of this.caps?.parkedOf(fairnessId) ?? []) this.backlog.unpark(flow);
  }
}
