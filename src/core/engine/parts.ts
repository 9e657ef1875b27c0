/** What options add to the way of requests: a part is made while its option is there. Without any, the way is plain. */
import type { Ending } from '../../tiers/2-fairness/fairness-policy.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Lease } from '../outcome/lease.js';
import type { QueueItem } from './queue-item.js';
import type { SeatLease } from './seats.js';

export interface Part {
  /** True when a lease keeps the payload of its request, because the request may wait once more. */
  readonly keepsPayload?: boolean;
  /** A request came in; what becomes of it is decided next. */
  arrived?(item: QueueItem): void;
  /** A request waits from now on. */
  queued?(): void;
  /** It is the turn of a waiting request. True: its flow was parked instead, so that others pass. */
  parks?(item: QueueItem, band: PriorityBand): boolean;
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
  parks: Hearing<'parks'> = [];
  revokes: Hearing<'revokes'> = [];
  seated: Hearing<'seated'> = [];
  dropped: Hearing<'dropped'> = [];
  handle: Hearing<'handle'> = [];
  ended: Hearing<'ended'> = [];
  putBack: Hearing<'putBack'> = [];
  gateClosed: Hearing<'gateClosed'> = [];
  looksAtMs: Hearing<'looksAtMs'> = [];

  /** Takes the parts of the options; undefined where an option is not there. They hear in this order. */
  install(parts: readonly (Part | undefined)[]): void {
    const all = parts.filter((part) => part !== undefined);
    this.areUsed = all.length > 0;
    this.keepPayload = all.some(({ keepsPayload }) => keepsPayload === true);
    for (const [hook, heard] of Object.entries(this))
      if (Array.isArray(heard)) Object.assign(this, { [hook]: all.filter((part) => part[hook as Hook] !== undefined) });
  }
}
