/**
 * Flows of one band that each wait for something of their own, such as the end of one of their requests. Other flows
 * pass them meanwhile.
 *
 *     active ── park ──► parked ── unpark ──► active        tier 2 does not see a parked flow
 *
 * Invariant: a parked flow is neither active nor held; `waiting` is the sum over the parked flows; a flow stands in
 * `flows` of its park.
 */
import { LinkedList } from '../base/queues/linked-list.js';
import type { Flow } from './flow.js';

/** The condition that a parked flow waits for. */
export interface Park {
  /** The flows that wait for it: owned by ParkedFlows. */
  readonly flows: Set<Flow>;
}

export class ParkedFlows {
  /** Requests that wait in parked flows. */
  waiting = 0;
  private readonly list = new LinkedList<Flow>();

  get flowCount(): number {
    return this.list.size;
  }

  flows(): Iterable<Flow> {
    return this.list;
  }

  /** One more request waits in a parked flow. */
  added(): void {
    this.waiting++;
  }

  /** One request less waits in a parked flow. */
  left(): void {
    this.waiting--;
  }

  park(flow: Flow, park: Park): void {
    this.list.push(flow);
    park.flows.add(flow);
    flow.parkedFor = park;
    this.waiting += flow.waiting;
  }

  /** The flow must be parked. */
  unpark(flow: Flow): void {
    this.list.remove(flow);
    (flow.parkedFor as Park).flows.delete(flow);
    flow.parkedFor = undefined;
    this.waiting -= flow.waiting;
  }
}
