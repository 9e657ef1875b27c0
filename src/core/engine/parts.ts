/** What options add to the way of requests: a part is made while its option is there. Without any, the way is plain. */
import type { Gate } from '../../gate/gate.js';
import type { Ending } from '../../tiers/2-fairness/fairness-policy.js';
import type { Flow } from '../../tiers/flow.js';
import type { Reason } from '../../tiers/flows-aside.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Lease } from '../outcome/lease.js';
import type { Backlog } from './backlog.js';
import type { QueueItem } from './queue-item.js';
import type { SeatLease } from './seats.js';

/** An option that brings the code of its part. */
export interface PartMaker {
  makePart(engine: PartHost): Part;
}

export function isMaker<M extends object>(option: object, by: string & keyof M): option is M {
  return by in option;
}

/** What the part of an option sees. */
export interface PartHost {
  readonly operation: { readonly nowMs: number; want(): void };
  readonly backlog: Backlog;
  readonly gate: Gate;
  readonly parking: { review(flow: Flow): boolean };
}

export interface Part {
  /** True when a lease keeps the payload of its request, because the request may wait once more. */
  readonly keepsPayload?: boolean;
  /** A request came in; what becomes of it is decided next. */
  arrived?(item: QueueItem): void;
  /** A request waits from now on. */
  queued?(): void;
  /** A walk begins: flows that it has parked may go again. */
  walkBegins?(nowMs: number): void;
  /** The reason for which the flow of a request is parked, so that others pass; undefined: it may take its turn. */
  obstacle?(item: QueueItem, band: PriorityBand): Reason | undefined;
  /** A waiting request may go, and an endpoint was found for it. True: it was dropped instead. */
  revokes?(item: QueueItem): boolean;
  /** A request got its seat, whether it waited or not. */
  seated?(lease: SeatLease): void;
  /** A request was dropped, whether it waited or not. */
  dropped?(item: QueueItem, nowMs: number): void;
  /** The lease that the host gets in place of the real one. */
  handle?(lease: SeatLease): Lease;
  /** A lease ended, and its seat is free. */
  ended?(lease: SeatLease, ending: Ending, nowMs: number): void;
  /** `before` is put back: the same request waits once more, as `item`. */
  putBack?(item: QueueItem, before: QueueItem): void;
  /** Requests wait before a closed gate. */
  gateClosed?(nowMs: number): void;
  /** The instant at which it wants the closed gate to be looked at again; Infinity: not at all. */
  looksAtMs?(nowMs: number): number;
}

type Hook = Exclude<keyof Part, 'keepsPayload'>;
/** The parts that have this method. */
type Hearing<H extends Hook> = readonly (Part & Required<Pick<Part, H>>)[];

export class Parts {
  /** False: the plain way. */
  areUsed = false;
  keepPayload = false;
  arrived: Hearing<'arrived'> = [];
  queued: Hearing<'queued'> = [];
  walkBegins: Hearing<'walkBegins'> = [];
  obstacle: Hearing<'obstacle'> = [];
  revokes: Hearing<'revokes'> = [];
  seated: Hearing<'seated'> = [];
  dropped: Hearing<'dropped'> = [];
  handle: Hearing<'handle'> = [];
  ended: Hearing<'ended'> = [];
  putBack: Hearing<'putBack'> = [];
  gateClosed: Hearing<'gateClosed'> = [];
  looksAtMs: Hearing<'looksAtMs'> = [];

  /** What the flow of the request has to wait for, apart from its turn. */
  obstacleTo(item: QueueItem, band: PriorityBand): Reason | undefined {
    for (const part of this.obstacle) {
      const reason = part.obstacle(item, band);
      if (reason) return reason;
    }
    return undefined;
  }

  /** Takes the parts of the options; undefined where an option is not there. They hear in this order. */
  install(parts: readonly (Part | undefined)[]): void {
    const all = parts.filter((part) => part !== undefined);
    this.areUsed = all.length > 0;
    this.keepPayload = all.some(({ keepsPayload }) => keepsPayload === true);
    for (const [hook, heard] of Object.entries(this))
      if (Array.isArray(heard)) Object.assign(this, { [hook]: all.filter((part) => part[hook as Hook] !== undefined) });
  }
}
