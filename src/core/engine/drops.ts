/** The drops: builds each, counts it, and tells the admission policy and the listeners that the request ended. */
import type { GuardedAdmission } from '../../admission/guarded-admission.js';
import type { Gate } from '../../gate/gate.js';
import type { RequestWait } from '../../gate/saturation-detector.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { EventHub } from '../event-hub.js';
import { DropOutcome } from '../outcome/drop-outcome.js';
import type { Drop, DropReason, DropType } from '../outcome/outcome.js';
import type { QueueItem } from './queue-item.js';

/** The details of a drop beside its reason. */
export type DropDetails = Pick<Drop, 'limit' | 'policy' | 'detail' | 'retryAfterMs'>;

const noDetails: DropDetails = {};

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
  private readonly gate: Gate;
  private readonly admission: GuardedAdmission;
  private readonly events: EventHub;

  constructor(gate: Gate, admission: GuardedAdmission, events: EventHub) {
    this.gate = gate;
    this.admission = admission;
    this.events = events;
  }

  /** The outcome of a request that is dropped now. */
  drop(item: QueueItem, type: DropType, reason: DropReason, nowMs: number, details: DropDetails = noDetails): Drop {
    this.counts[type]++;
    this.total++;
    const { fairnessId, priority } = item;
    const queuedMs = nowMs - item.enqueuedAtMs;
    const { limit, policy, retryAfterMs = retryAfter(item, reason, nowMs) } = details;
    const detail = details.detail ?? (isForWantOfEndpoints(type) ? this.gate.whyUnavailable(nowMs) : undefined);
    const plain: Drop = { type, reason, fairnessId, priority, queuedMs, limit, policy, detail, retryAfterMs };
    const outcome = new DropOutcome(
      plain,
      reason === 'ttl-expired' ? this.gate.readingFor(item.band as PriorityBand) : undefined,
    );
    if (item.admittedBy !== undefined) this.admission.ended(item, undefined, nowMs);
    if (this.events.heard.dropped) this.events.emit('dropped', { item, request: item.request, outcome });
    item.releasePayload();
    return outcome;
  }
}

/** Details for a request that the quotas cannot serve before its deadline. */
export function overQuota({ atMs, missing }: RequestWait, nowMs: number): DropDetails {
  return { detail: missing, retryAfterMs: Math.max(atMs - nowMs, 0) };
}

function isForWantOfEndpoints(type: DropType): boolean {
  return type === 'RejectedNoEndpoints' || type === 'EvictedNoEndpoints';
}

/** The time until the requests that now wait in the band are gone, ms, if its recent rate holds. */
function retryAfter({ band }: QueueItem, reason: DropReason, nowMs: number): number | undefined {
  if (reason === 'cancelled' || reason === 'shutting-down' || reason === 'no-endpoints' || reason === 'revoked')
    return undefined;
  const rate = band?.dispatchedPerSecond(nowMs);
  return band === undefined || rate === undefined ? undefined : (Math.max(band.waiting, 1) / rate) * 1000;
}
