/** Recent service in a band, received and owed: the largest tenants, and the rest as one. */
import { sumOf } from '../../gate/reported-figures.js';
import { costs, type FlowService, type ServiceFigures } from '../../tiers/2-fairness/service-figures.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import { TopN } from './top-n.js';

/** The service of one fairness ID, under a policy that shares by cost. */
export interface TenantOverview extends FlowService {
  /** Its part of all that was received and owed in the window, 0 … 1. */
  readonly receivedShare: number;
  readonly owedShare: number;
  readonly waiting: number;
  /** Cost that it has received beyond those that go next; undefined when nothing of it waits. */
  readonly lead: number | undefined;
}

export interface ServiceOverview extends Pick<ServiceFigures, 'windowMs' | 'fairnessIndex' | 'others'> {
  /** The fairness IDs that received or were owed the most, the largest first. */
  readonly tenants: readonly TenantOverview[];
  /** Fairness IDs that are not among them; what they received is in `others`. */
  readonly otherTenants: number;
}

/** Undefined where the fairness policy keeps no account. O(fairness IDs served lately), at most 1,000. */
export function serviceOverview(band: PriorityBand, count: number, nowMs: number): ServiceOverview | undefined {
  const service = band.policies.selector?.service(nowMs);
  if (service === undefined) return undefined;
  const largest = new TopN<FlowService>(count, (a, b) => sizeOf(b) - sizeOf(a));
  for (const flow of service.flows) largest.offer(flow);
  const shown = new Set(largest.members);
  const others = sumOf([service.others, ...service.flows.filter((flow) => !shown.has(flow))], costs);
  const whole = sumOf([others, ...shown], costs);
  const tenants = largest.members.map((member): TenantOverview => {
    const flow = band.flows.get(member.fairnessId);
    const waiting = flow?.waiting ?? 0;
    return {
      ...member,
      receivedShare: partOf(whole.received, member.received),
      owedShare: partOf(whole.owed, member.owed),
      waiting,
      lead: flow === undefined || waiting === 0 ? undefined : band.policies.selector?.lead(flow),
    };
  });
  const { windowMs, fairnessIndex } = service;
  return { windowMs, fairnessIndex, tenants, otherTenants: service.flows.length - tenants.length, others };
}

function sizeOf({ received, owed }: FlowService): number {
  return Math.max(received, owed);
}

/** Refunds may leave less than nothing. */
function partOf(whole: number, part: number): number {
  return whole > 0 ? Math.min(Math.max(part / whole, 0), 1) : 0;
}
