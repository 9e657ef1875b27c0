/** One request on its way through the controller: one fixed shape, made once. */

import type { AdmissionPolicy } from '../admission/admission-policy.js';
import type { HeapQueue } from '../queues/heap-queue.js';
import type { Linked, LinkedList } from '../queues/linked-list.js';
import type { PriorityBand } from '../tiers/1-priority/priority-band.js';
import type { Flow } from '../tiers/2-fairness/flow.js';
import type { WaitingItem } from '../tiers/waiting-item.js';
import type { AbortGroup } from './cancellation.js';
import type { FlowRequest } from './flow-request.js';
import type { Outcome } from './outcome.js';

/** The promise's end; replaced when the request starts to wait. */
export type Settle = (outcome: Outcome) => void;

export class QueueItem implements WaitingItem, Linked<QueueItem> {
  flow: Flow | undefined = undefined;
  /** Requests of one class may go to the same endpoints; undefined: to all. */
  requestClass: string | undefined = undefined;
  isWaiting = false;
  settle: Settle | undefined = undefined;
  /** When this wait began: a request that is put back after an eviction waits anew. */
  waitingSinceMs = 0;
  /** True once it was put back after an eviction. */
  isRequeued = false;
  /** Where its deadline is kept, and its links there: owned by Expiry. */
  deadlines: LinkedList<QueueItem> | HeapQueue<QueueItem> | undefined = undefined;
  expiresAtMs: number = Number.POSITIVE_INFINITY;
  previous: QueueItem | undefined = undefined;
  next: QueueItem | undefined = undefined;
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
  readonly receivedAtMs: number;
  readonly enqueuedAtMs: number;
  readonly ttlMs: number;
  readonly ttftDeadlineAtMs: number;

  constructor(
    request: FlowRequest | undefined,
    band: PriorityBand | undefined,
    fairnessId: string,
    priority: number,
    byteSize: number,
    tokens: number,
    sequence: number,
    receivedAtMs: number,
    enqueuedAtMs: number,
    ttlMs: number,
    ttftDeadlineAtMs: number,
  ) {
    this.request = request;
    this.band = band;
    this.fairnessId = fairnessId;
    this.priority = priority;
    this.byteSize = byteSize;
    this.tokens = tokens;
    this.sequence = sequence;
    this.receivedAtMs = receivedAtMs;
    this.enqueuedAtMs = enqueuedAtMs;
    this.ttlMs = ttlMs;
    this.ttftDeadlineAtMs = ttftDeadlineAtMs;
  }

  /** The same request with the same arrival, about to wait once more. */
  again(): QueueItem {
    const { fairnessId, priority, byteSize, tokens, sequence, receivedAtMs, enqueuedAtMs, ttlMs, ttftDeadlineAtMs } = this;
    const item = new QueueItem(
      this.request,
      undefined,
      fairnessId,
      priority,
      byteSize,
      tokens,
      sequence,
      receivedAtMs,
      enqueuedAtMs,
      ttlMs,
      ttftDeadlineAtMs,
    );
    item.isRequeued = true;
    item.requestClass = this.requestClass;
    item.admittedBy = this.admittedBy;
    return item;
  }
}
