/** A waiting request as bands and flows handle it. */
import type { Queued } from '../base/queues/item-queue.js';
import type { Flow } from './flow.js';
import type { ItemView } from './views.js';

export interface WaitingItem extends ItemView, Queued {
  /** Its flow, once it waits. */
  flow: Flow | undefined;
  /** Requests of one class may go to the same endpoints; undefined: to all. */
  requestClass: string | undefined;
}
