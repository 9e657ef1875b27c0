/** Tier 1: which open band goes next. Gate and endpoints answer through interfaces, as the tiers know neither. */
import type { BandRegistry } from '../band-registry.js';
import type { Flow, WaitingItem } from '../flow.js';
import type { PriorityBand } from '../priority-band.js';
import { type BandOrder, strictOrder } from './band-order.js';

/** The gate, as the selector asks it. */
export interface BandGate {
  /** Reads the detectors. False when the pool is empty. */
  read(nowMs: number): boolean;
  /** Judges one band by that reading. */
  judge(band: PriorityBand): boolean;
  /** Judges one more band by the same reading. */
  isOpenFor(band: PriorityBand): boolean;
  /** True when the gate may be closed for a band and open for one below it. */
  readonly judgesApart: boolean;
  /** As it was read last. */
  readonly saturation: number;
}

/** The endpoints of classes of requests, as the selector asks for them. */
export interface ClassPlaces {
  /** True when an endpoint can take a request of the class now; with `item`, this very request. */
  hasRoom(requestClass: string | undefined, band: PriorityBand, nowMs: number, item?: WaitingItem): boolean;
  /** True when the class alone does not tell. */
  readonly judgesRequests: boolean;
  /** False when no endpoint may ever take a request of the class. */
  isServed(requestClass: string | undefined): boolean;
}

export class BandSelector {
  /** True when the highest band simply goes first: the order is strict, and no flow is held back. */
  isPlain: boolean;
  /** Bands that hold flows back. */
  private readonly holding = new Set<PriorityBand>();
  private readonly bands: BandRegistry;
  private readonly gate: BandGate;
  private readonly places: ClassPlaces;
  private order: BandOrder;

  constructor(bands: BandRegistry, gate: BandGate, places: ClassPlaces, order: BandOrder) {
    this.bands = bands;
    this.gate = gate;
    this.places = places;
    this.order = order;
    this.isPlain = this.isStrict;
  }

  /** Takes another order; call it after the bands took new settings. */
  configure(order: BandOrder): void {
    this.order = order;
    this.isPlain = this.isStrict && this.holding.size === 0;
  }

  /** The highest band with requests that are not held back. */
  get highestReady(): PriorityBand | undefined {
    if (this.holding.size === 0) return this.bands.highestWaiting;
    return this.bands.allWaiting().find((band) => band.ready > 0);
  }

  /** A band above `floor`; undefined while the gate is closed for all of them. Reads the detectors. */
  next(nowMs: number, floor: number): PriorityBand | undefined {
    const wereHeld = this.holding.size > 0;
    // Detectors tell by the pool that they read last where there is room for those that are held.
    const isRead = wereHeld && this.gate.read(nowMs);
    if (wereHeld) this.letInHeld(nowMs);
    const highest = this.highestReady;
    if (highest === undefined || highest.priority <= floor) return undefined;
    const isOpen = (wereHeld ? isRead : this.gate.read(nowMs)) && this.gate.judge(highest);
    if (!this.isStrict) return this.byOrder(isOpen, floor);
    return isOpen ? highest : undefined;
  }

  /** Holds a flow back whose first request no endpoint can take: others may pass. False when its band lets none. */
  holdBack(flow: Flow): boolean {
    const { band } = flow;
    if (!band.settings.holdsFlows) return false;
    band.setAside(flow);
    this.holding.add(band);
    this.isPlain = false;
    return true;
  }

  /** True when the highest band goes first, whatever waits below. */
  get isStrict(): boolean {
    return this.order === strictOrder && !this.bands.shares.isUsed;
  }

  /** The choice where the highest band does not simply go first. */
  private byOrder(isOpenForHighest: boolean, floor: number): PriorityBand | undefined {
    // Ceilings never rise as priority falls. So a gate that is closed for the highest band is closed for all, unless
    // bands have detectors of their own.
    if (!isOpenForHighest && !this.gate.judgesApart) return undefined;
    const waiting = this.bands.allWaiting();
    const open = waiting.filter((band) => band.priority > floor && band.ready > 0 && this.gate.isOpenFor(band));
    if (open.length === 0) return undefined;
    return this.bands.shares.due(open) ?? this.order.choose(open, this.bands.all(), this.gate.saturation);
  }

  /** Lets in the first flow of each class if there is room, or no endpoint left. O(classes · endpoints). */
  private letInHeld(nowMs: number): void {
    const { places } = this;
    for (const band of this.holding) {
      for (const held of band.aside.heldClasses()) {
        if (held.flows.size === 0) continue;
        for (const first of held.firsts(nowMs)) {
          // A flow that is let in already has its turn before those behind it.
          if (!first.isHeld) break;
          const head = places.judgesRequests ? first.head : undefined;
          const { requestClass } = held;
          if (!places.hasRoom(requestClass, band, nowMs, head) && places.isServed(requestClass)) continue;
          band.letIn(first);
          break;
        }
      }
      if (band.aside.waiting.held === 0) this.holding.delete(band);
    }
    this.isPlain = this.isStrict && this.holding.size === 0;
  }
}
