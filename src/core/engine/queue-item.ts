/** One request on its way through the controller: one small, fixed shape, because a hundred thousand may wait. */
import type { AdmissionPolicy } from '../../admission/admission-policy.js';
import { neverUnboxed } from '../../base/clock.js';
import type { ItemQueue } from '../../base/queues/item-queue.js';
import type { Flow, WaitingItem } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { TokenEstimate } from '../../tiers/views.js';
import type { FlowRequest } from '../flow-request.js';
import type { Outcome } from '../outcome/outcome.js';
import type { Abortable, AbortGroup } from './cancellation.js';
import type { Dated } from './operation.js';

/** The promise's end. */
export type Settle = (outcome: Outcome) => void;

/** Fields that few requests need, in an object of their own: the others stay small (bench: backlog). */
class Particulars {
  receivedAtMs: number;
  ttftDeadlineAtMs: number = Infinity;
  requeuedAtMs: number | undefined = undefined;
  heldUpMs = 0;
  requestClass: string | undefined = undefined;
  admittedBy: AdmissionPolicy | undefined = undefined;
  estimate: TokenEstimate | undefined = undefined;

  constructor(receivedAtMs: number) {
    this.receivedAtMs = receivedAtMs;
  }
}

export class QueueItem implements WaitingItem, Abortable<QueueItem>, Dated {
  /** Its flow, once it waits. Written by PriorityBand. */
  flow: Flow | undefined = undefined;
  /** Ends the wait; undefined while the request does not wait. Written by Backlog. */
  settle: Settle | undefined = undefined;
  /** The bucket that its deadline stands in. Written by CalendarQueue. */
  deadlines: ItemQueue<QueueItem> | undefined = undefined;
  /** The requests that share its signal. Written by Cancellation. */
  abortGroup: AbortGroup<QueueItem> | undefined = undefined;
  /** What its fairness policy has charged for it. Written by RequestCharges. */
  charge: unknown = undefined;
  /** The host's request, until the payload is released: a tombstone retains none. */
  request: FlowRequest | undefined;
  /** Undefined until its band exists. Written by Intake. */
  band: PriorityBand | undefined;
  readonly fairnessId: string;
  readonly priority: number;
  readonly byteSize: number;
  readonly tokens: number;
  readonly sequence: number;
  readonly enqueuedAtMs: number;
  readonly ttlMs: number;
  private particulars: Particulars | undefined = undefined;

  constructor(
    request: FlowRequest,
    band: PriorityBand | undefined,
    fairnessId: string,
    priority: number,
    byteSize: number,
    tokens: number,
    sequence: number,
    enqueuedAtMs: number,
    ttlMs: number,
  ) {
    this.request = request;
    this.band = band;
    this.fairnessId = fairnessId;
    this.priority = priority;
    this.byteSize = byteSize;
    this.tokens = tokens;
    this.sequence = sequence;
    this.enqueuedAtMs = neverUnboxed;
    this.enqueuedAtMs = enqueuedAtMs;
    this.ttlMs = ttlMs;
  }

  get isWaiting(): boolean {
    return this.settle !== undefined;
  }

  get receivedAtMs(): number {
    return this.particulars === undefined ? this.enqueuedAtMs : this.particulars.receivedAtMs;
  }

  get ttftDeadlineAtMs(): number {
    return this.particulars === undefined ? Infinity : this.particulars.ttftDeadlineAtMs;
  }

  /** Requests of one class may go to the same endpoints; undefined: to every endpoint. */
  get requestClass(): string | undefined {
    return this.particulars === undefined ? undefined : this.particulars.requestClass;
  }

  set requestClass(requestClass: string | undefined) {
    if (requestClass !== this.requestClass) this.own().requestClass = requestClass;
  }

  /** The admission policy that is told of its end, if any. */
  get admittedBy(): AdmissionPolicy | undefined {
    return this.particulars === undefined ? undefined : this.particulars.admittedBy;
  }

  set admittedBy(policy: AdmissionPolicy | undefined) {
    if (policy !== this.admittedBy) this.own().admittedBy = policy;
  }

  get estimate(): TokenEstimate | undefined {
    return this.particulars === undefined ? undefined : this.particulars.estimate;
  }

  set estimate(estimate: TokenEstimate | undefined) {
    this.own().estimate = estimate;
  }

  /** True once it was put back after an eviction. */
  get isRequeued(): boolean {
    return this.particulars?.requeuedAtMs !== undefined;
  }

  /** When this wait began, at the latest: a request that is put back after an eviction waits anew. */
  get waitingSinceMs(): number {
    const { particulars } = this;
    if (particulars === undefined) return this.enqueuedAtMs;
    return (particulars.requeuedAtMs ?? this.enqueuedAtMs) + particulars.heldUpMs;
  }

  /** It came later than the clock was read, by at most so long. */
  noteHeldUp(forMs: number): void {
    this.own().heldUpMs = forMs;
  }

  /** The same request and arrival, about to wait once more: with its payload, which it must still have, or another. */
  again(nowMs: number, request: FlowRequest | undefined = this.request): QueueItem {
    const { fairnessId: id, priority, byteSize: bytes, tokens, sequence, enqueuedAtMs: atMs, ttlMs } = this;
    const item = new QueueItem(request as FlowRequest, undefined, id, priority, bytes, tokens, sequence, atMs, ttlMs);
    const own = item.own();
    own.requeuedAtMs = nowMs;
    own.receivedAtMs = this.receivedAtMs;
    own.ttftDeadlineAtMs = this.ttftDeadlineAtMs;
    item.requestClass = this.requestClass;
    own.estimate = this.estimate;
    item.admittedBy = this.admittedBy;
    this.admittedBy = undefined;
    return item;
  }

  /** Gives up the host's request, unless an ordering policy may meet it once more, as a tombstone. */
  releasePayload(): void {
    if (this.band === undefined || this.band.policies.ordering.isInArrivalOrder) this.request = undefined;
  }

  /** For a reader of a drop, whose payload was released. */
  restorePayload(request: FlowRequest): void {
    this.request = request;
  }

  /** Set for a request that says when it was received, or how soon its first token is due. */
  noteTimes(receivedAtMs: number = this.enqueuedAtMs, sloTtftMs: number = Infinity): void {
    const own = this.own();
    own.receivedAtMs = receivedAtMs;
    own.ttftDeadlineAtMs = receivedAtMs + sloTtftMs;
  }

  private own(): Particulars {
    this.particulars ??= new Particulars(this.enqueuedAtMs);
    return this.particulars;
  }
}
