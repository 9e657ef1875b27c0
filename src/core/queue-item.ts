/** One request on its way through the controller: one fixed shape, made once, and small: a hundred thousand may wait. */

import type { AdmissionPolicy } from '../admission/admission-policy.js';
import type { HeapQueue } from '../queues/heap-queue.js';
import type { PriorityBand } from '../tiers/1-priority/priority-band.js';
import type { Flow } from '../tiers/2-fairness/flow.js';
import type { WaitingItem } from '../tiers/waiting-item.js';
import type { AbortGroup } from './cancellation.js';
import type { Lane } from './expiry.js';
import type { FlowRequest } from './flow-request.js';
import type { Outcome } from './outcome.js';

/** The promise's end. */
export type Settle = (outcome: Outcome) => void;

/** Instants that few requests have; apart, so that the others do not carry them. */
interface Instants {
  readonly receivedAtMs: number;
  readonly ttftDeadlineAtMs: number;
  /** When it was put back after an eviction. */
  readonly requeuedAtMs: number | undefined;
}

function instantsOf({ receivedAtMs, sloTtftMs }: FlowRequest, nowMs: number): Instants | undefined {
  if (receivedAtMs === undefined && sloTtftMs === undefined) return undefined;
  const fromMs = receivedAtMs ?? nowMs;
  const ttftDeadlineAtMs = sloTtftMs === undefined ? Number.POSITIVE_INFINITY : fromMs + sloTtftMs;
  return { receivedAtMs: fromMs, ttftDeadlineAtMs, requeuedAtMs: undefined };
}

export class QueueItem implements WaitingItem {
  flow: Flow | undefined = undefined;
  /** Requests of one class may go to the same endpoints; undefined: to all. */
  requestClass: string | undefined = undefined;
  /** Ends the wait; undefined while the request does not wait. */
  settle: Settle | undefined = undefined;
  /** Where its deadline is kept: owned by Expiry. */
  deadlines: Lane | HeapQueue<QueueItem> | undefined = undefined;
  /** Its deadline, while the heap keeps it: owned by Expiry. */
  expiresAtMs = 0;
  /** The policy that must hear of its end; undefined when nobody must. */
  admittedBy: AdmissionPolicy | undefined = undefined;
  /** Who shares its signal: owned by Cancellation. */
  abortGroup: AbortGroup | undefined = undefined;
  /** Given up when the request is settled, so that a tombstone retains no payload. */
  request: FlowRequest | undefined;
  /** Undefined until its band exists. */
  band: PriorityBand | undefined;
  readonly fairnessId: string;
  readonly priority: number;
  readonly byteSize: number;
  readonly tokens: number;
  readonly sequence: number;
  readonly enqueuedAtMs: number;
  readonly ttlMs: number;
  private instants: Instants | undefined;

  constructor(
    request: FlowRequest,
    band: PriorityBand | undefined,
    fairnessId: string,
    priority: number,
    sequence: number,
    enqueuedAtMs: number,
    ttlMs: number,
  ) {
    this.request = request;
    this.band = band;
    this.fairnessId = fairnessId;
    this.priority = priority;
    this.byteSize = request.byteSize;
    this.tokens = request.tokens ?? 0;
    this.sequence = sequence;
    this.enqueuedAtMs = enqueuedAtMs;
    this.ttlMs = ttlMs;
    this.instants = instantsOf(request, enqueuedAtMs);
  }

  get isWaiting(): boolean {
    return this.settle !== undefined;
  }

  get receivedAtMs(): number {
    return this.instants === undefined ? this.enqueuedAtMs : this.instants.receivedAtMs;
  }

  get ttftDeadlineAtMs(): number {
    return this.instants === undefined ? Number.POSITIVE_INFINITY : this.instants.ttftDeadlineAtMs;
  }

  /** True once it was put back after an eviction. */
  get isRequeued(): boolean {
    return this.instants?.requeuedAtMs !== undefined;
  }

  /** When this wait began: a request that is put back after an eviction waits anew. */
  get waitingSinceMs(): number {
    return this.instants === undefined ? this.enqueuedAtMs : (this.instants.requeuedAtMs ?? this.enqueuedAtMs);
  }

  /** The same request with the same arrival, about to wait once more. It must still have its payload. */
  again(nowMs: number): QueueItem {
    const { request, fairnessId, priority, sequence, enqueuedAtMs, ttlMs, receivedAtMs, ttftDeadlineAtMs } = this;
    const item = new QueueItem(request as FlowRequest, undefined, fairnessId, priority, sequence, enqueuedAtMs, ttlMs);
    item.instants = { receivedAtMs, ttftDeadlineAtMs, requeuedAtMs: nowMs };
    item.requestClass = this.requestClass;
    item.admittedBy = this.admittedBy;
    return item;
  }
}
