/** One flow: the requests of one fairness ID in one band. */
import type { ItemQueue, Queued } from '../base/queues/item-queue.js';
import type { Linked } from '../base/queues/linked-list.js';
import type { HeldClass, Reason } from './flows-aside.js';
import type { PriorityBand } from './priority-band.js';
import type { FlowView, ItemView } from './views.js';

/** A limit on what runs at a time; Infinity = unlimited. */
export interface InFlightCap {
  readonly maxRequests: number;
  readonly maxTokens: number;
}

/** The configuration of one fairness ID. */
export interface FlowProfile {
  readonly weight: number;
  /** Undefined: the band's limits for flows. */
  readonly limits: { readonly maxRequests: number; readonly maxBytes: number } | undefined;
  /** Its cap in all bands together. Undefined: the band's cap, for each band. */
  readonly maxInFlight: InFlightCap | undefined;
}

/** By fairness ID. */
export interface FlowProfiles {
  /** 0 = no fairness ID has one. */
  readonly size: number;
  /** True when some fairness ID has, or may get, a cap of its own. */
  readonly mayCap: boolean;
  get(fairnessId: string): FlowProfile | undefined;
}

/** A waiting request as bands and flows handle it. */
export interface WaitingItem extends ItemView, Queued {
  /** Its flow, once it waits. */
  flow: Flow | undefined;
  /** Requests of one class may go to the same endpoints; undefined: to all. */
  requestClass: string | undefined;
  /** What it was charged so far by the policy that shares by cost. Nobody has to look for it (bench: fairness). */
  charge?: unknown;
}

/** Invariant: among active or aside flows while something waits; idle while nothing waits, nor is tracked in flight. */
export class Flow implements FlowView, Linked<Flow> {
  previous: Flow | undefined = undefined;
  next: Flow | undefined = undefined;
  /** Its waiting requests, and their bytes. Written by PriorityBand. */
  waiting = 0;
  /** Written by PriorityBand. */
  waitingBytes = 0;
  /** Turns in each round. Written by FlowTable. */
  weight = 1;
  /** Leases whose end the fairness policy hears of. Written by Seats. */
  trackedInFlight = 0;
  /** True while it is linked into the idle flows. Written by FlowTable. */
  isIdle = false;
  /** Written by FlowTable. */
  idleSinceMs = 0;
  /** What it waits for while it is aside. Written by FlowsAside. */
  waitsFor: Reason | undefined = undefined;
  /** The class that it is held in, or was let in from lately. Written by FlowsAside. */
  contendsIn: HeldClass | undefined = undefined;
  /** Its name in the band: the fairness ID, and the class of its requests where classes queue apart. */
  readonly name: string;
  readonly fairnessId: string;
  readonly band: PriorityBand;
  /** Undefined while the band keeps one queue for all its flows. Written by PriorityBand. */
  queue: ItemQueue<WaitingItem> | undefined;

  constructor(name: string, fairnessId: string, band: PriorityBand, queue: ItemQueue<WaitingItem> | undefined) {
    this.name = name;
    this.fairnessId = fairnessId;
    this.band = band;
    this.queue = queue;
  }

  get isHeld(): boolean {
    return this.waitsFor?.kind === 'held';
  }

  get isParked(): boolean {
    return this.waitsFor?.kind === 'parked';
  }

  get priority(): number {
    return this.band.priority;
  }

  get head(): WaitingItem | undefined {
    return this.queue?.peek();
  }
}
