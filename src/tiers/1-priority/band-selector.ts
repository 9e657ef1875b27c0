/** Tier 1 at work: which band goes next, among those that the gate is open for and that have requests which are not held back. */

import type { Placement } from '../../core/engine/placement.js';
import type { ResolvedOptions } from '../../core/options.js';
import type { Gate } from '../../gate/gate.js';
import type { BandRegistry } from '../band-registry.js';
import type { Flow } from '../flow.js';
import type { PriorityBand } from '../priority-band.js';
import { strictOrder } from './band-order.js';

export class BandSelector {
  /** Bands that hold flows back. */
  private readonly holding = new Set<PriorityBand>();
  private readonly keeper: BandRegistry;
  private readonly gate: Gate;
  private readonly placement: Placement;
  private order: ResolvedOptions['bandOrder'];

  constructor(keeper: BandRegistry, gate: Gate, placement: Placement, { bandOrder }: ResolvedOptions) {
    this.keeper = keeper;
    this.gate = gate;
    this.placement = placement;
    this.order = bandOrder;
  }

  configure({ bandOrder }: ResolvedOptions): void {
    this.order = bandOrder;
  }

  /** True when the highest band goes first, whatever waits below. */
  get isStrict(): boolean {
    return this.order === strictOrder && !this.keeper.shares.isUsed;
  }

  /** The highest band with requests that are not held back. */
  get highestReady(): PriorityBand | undefined {
    if (this.holding.size === 0) return this.keeper.table.highestWaiting;
    return this.keeper.table.allWaiting().find((band) => band.ready > 0);
  }

  /** True while flows are held back. */
  get holds(): boolean {
    return this.holding.size > 0;
  }

  /** A band above `floor`; undefined while the gate is closed for all of them. Reads the detectors. */
  next(nowMs: number, floor: number): PriorityBand | undefined {
    if (this.holds) this.letHeldTry(nowMs);
    const highest = this.highestReady;
    if (highest === undefined || highest.priority <= floor) return undefined;
    const isOpen = this.gate.admits(highest, nowMs);
    if (!this.isStrict) return this.byOrder(isOpen, floor);
    return isOpen ? highest : undefined;
  }

  /** The flow's first request has nowhere to go: others may pass it. False when the band lets nothing pass. */
  holdBack(flow: Flow): boolean {
    const { band } = flow;
    if (!band.settings.holdsFlows) return false;
    band.hold(flow);
    this.holding.add(band);
    return true;
  }

  /** Where the highest band does not simply go first. */
  private byOrder(isOpenForHighest: boolean, floor: number): PriorityBand | undefined {
    // What is closed for the highest band is closed for all, unless bands have detectors of their own.
    if (!isOpenForHighest && !this.gate.judgesApart) return undefined;
    const open = this.keeper.table.allWaiting().filter((band) => band.priority > floor && band.ready > 0 && this.gate.isOpenFor(band));
    if (open.length === 0) return undefined;
    return this.keeper.shares.due(open) ?? this.order.choose(open, this.keeper.table.all());
  }

  /** Of each class of held requests that has room now, or no endpoint left, one flow may try. O(classes · endpoints). */
  private letHeldTry(nowMs: number): void {
    for (const band of this.holding) {
      for (const held of band.held.all()) {
        const { requestClass } = held;
        const mayTry = this.placement.hasRoom(requestClass, band, nowMs) || !this.placement.isServed(requestClass);
        if (mayTry && band.wantsTry(held, nowMs)) band.letTry(held, nowMs);
      }
      if (band.held.waiting === 0) this.holding.delete(band);
    }
  }
}
