/** Requests that end without a dispatch: builds each drop, counts it, tells the admission policy and the listeners. */
import type { RequestWait } from '../../gate/constraint.js';
import type { Gate } from '../../gate/gate.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { EventHub } from '../event-hub.js';
import { DropOutcome } from '../outcome/drop-outcome.js';
import type { Drop, DropReason, DropType } from '../outcome/outcome.js';
import type { Backlog } from './backlog.js';
import type { Operation } from './operation.js';
import type { Parking } from './parking.js';
import type { Parts } from './parts.js';
import type { QueueItem } from './queue-item.js';

/** The details of a drop beside its reason. */
export type DropDetails = Pick<Drop, 'limit' | 'policy' | 'detail' | 'retryAfterMs'>;

const noDetails: DropDetails = {};

interface DropsParts {
  readonly operation: Operation;
  readonly backlog: Backlog;
  readonly parking: Parking;
  readonly gate: Gate;
  readonly parts: Parts;
}

export class Drops {
  readonly counts: Record<DropType, number> = {
    RejectedCapacity: 0,
    RejectedNoEndpoints: 0,
    RejectedOther: 0,
    EvictedTTL: 0,
    EvictedNoEndpoints: 0,
    EvictedContextCancelled: 0,
    EvictedOther: 0,
  };
  /** The sum of `counts`. */
  total = 0;
  private readonly engine: DropsParts;
  private readonly events: EventHub;

  constructor(engine: DropsParts, events: EventHub) {
    this.engine = engine;
    this.events = events;
  }

  /** The outcome of a request that is dropped now. */
  drop(item: QueueItem, type: DropType, reason: DropReason, details: DropDetails = noDetails): Drop {
    this.counts[type]++;
    this.total++;
    const { operation, gate, parts } = this.engine;
    const { nowMs } = operation;
    const { fairnessId, priority } = item;
    const queuedMs = nowMs - item.enqueuedAtMs;
    const { limit, policy, retryAfterMs = retryAfter(item, reason, nowMs) } = details;
    const lacksEndpoints = type === 'RejectedNoEndpoints' || type === 'EvictedNoEndpoints';
    const detail = details.detail ?? (lacksEndpoints ? gate.whyUnavailable(nowMs) : undefined);
    const plain: Drop = { type, reason, fairnessId, priority, queuedMs, limit, policy, detail, retryAfterMs };
    const reading = reason === 'ttl-expired' ? gate.readingFor(item.band as PriorityBand) : undefined;
    const outcome = new DropOutcome(plain, reading);
    for (const part of parts.dropped) part.dropped(item, nowMs);
    if (this.events.heard.dropped) this.events.emit('dropped', { item, request: item.request, outcome });
    item.releasePayload();
    return outcome;
  }

  /** Drops a request that waits. Those behind it may go now. */
  evict(item: QueueItem, type: DropType, reason: DropReason, details?: DropDetails): void {
    const { operation, backlog, parking } = this.engine;
    const settle = backlog.discard(item, operation.nowMs);
    if (item.flow?.waitsFor !== undefined) parking.review(item.flow);
    settle(this.drop(item, type, reason, details));
    operation.want();
  }

  evictExpired(): void {
    const { backlog, operation } = this.engine;
    const { expiry } = backlog;
    const { nowMs } = operation;
    for (let item = expiry.due(nowMs); item !== undefined; item = expiry.due(nowMs)) this.evictOverdue(item);
  }

  evictOverdue(item: QueueItem): void {
    if (this.engine.backlog.isPoolEmpty) this.evict(item, 'EvictedNoEndpoints', 'no-endpoints');
    else this.evict(item, 'EvictedTTL', 'ttl-expired');
  }

  /** The signal that these requests carry was aborted. */
  cancelled(items: readonly QueueItem[]): void {
    this.engine.operation.perform(() => {
      for (const item of items) if (item.isWaiting) this.evict(item, 'EvictedContextCancelled', 'cancelled');
    });
  }

  /** The controller closes, and what waits has had its time. */
  evictAll(): void {
    for (const item of this.engine.backlog.items()) this.evict(item, 'EvictedOther', 'shutting-down');
  }
}

/** Reason and details for a request that the quotas cannot serve before its deadline. */
export function overQuota({ atMs, missing, isBudget }: RequestWait, nowMs: number): [DropReason, DropDetails] {
  const details = { detail: missing, retryAfterMs: Math.max(atMs - nowMs, 0) };
  if (!isBudget) return ['over-quota', details];
  return ['over-budget', { ...details, policy: 'budgets', detail: `no room in time for ${missing}` }];
}

/** The time until the requests that now wait in the band are gone, ms, if its recent rate holds. */
function retryAfter({ band }: QueueItem, reason: DropReason, nowMs: number): number | undefined {
  if (reason === 'cancelled' || reason === 'shutting-down' || reason === 'no-endpoints' || reason === 'revoked')
    return undefined;
  const rate = band?.traffic.dispatchedPerSecond(nowMs);
  return band === undefined || rate === undefined ? undefined : (Math.max(band.waiting, 1) / rate) * 1000;
}
