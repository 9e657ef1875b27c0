/** Flows at their cap are parked, so that others pass, until their first request fits: a part, while caps are. */
import type { LinkedList } from '../../base/queues/linked-list.js';
import type { Flow } from '../../tiers/flow.js';
import type { Reason } from '../../tiers/flows-aside.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { ResolvedOptions } from '../options.js';
import type { Backlog } from './backlog.js';
import { hasCaps, InFlightCaps } from './in-flight-caps.js';
import type { Part, Parts } from './parts.js';
import type { QueueItem } from './queue-item.js';
import type { SeatLease } from './seats.js';

export class Parking implements Part {
  /** Undefined while no flow has a cap. */
  caps: InFlightCaps | undefined = undefined;
  private readonly backlog: Backlog;
  private readonly parts: Parts;

  constructor(backlog: Backlog, parts: Parts) {
    this.backlog = backlog;
    this.parts = parts;
  }

  /** Takes new options, while no flow is parked. O(in flight) where flows have caps. */
  configure(options: ResolvedOptions, running: LinkedList<SeatLease>): void {
    this.caps = hasCaps(options) ? new InFlightCaps(options, running) : undefined;
  }

  obstacle(item: QueueItem, band: PriorityBand): Reason | undefined {
    return this.caps?.obstacle(item, band);
  }

  seated({ item }: SeatLease): void {
    this.caps?.taken(item);
  }

  /** Flows that were parked for the request may go. */
  ended({ item }: SeatLease): void {
    for (const flow of this.caps?.givenBack(item) ?? []) this.review(flow);
  }

  /** Unparks a flow when nothing is in the way of its first request. True when the flow may go. */
  review(flow: Flow): boolean {
    if (!flow.isParked) return false;
    const reason = this.parts.obstacleTo(flow.head as QueueItem, flow.band);
    if (reason === flow.waitsFor) return false;
    this.backlog.unpark(flow);
    // If many fairness IDs share the flow, its next request may wait for something else.
    if (reason === undefined) return true;
    this.backlog.park(flow, reason);
    return false;
  }

  /** The settings of a fairness ID have changed: its flows decide anew. */
  unpark(fairnessId: string): void {
    for (const flow of this.caps?.parkedOf(fairnessId) ?? []) this.backlog.unpark(flow);
  }
}
