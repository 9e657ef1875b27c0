/** Explains the decision to drop a request. */
import { type Explanation, inSeconds, type LimitHit } from './explanation.js';
import type { Drop } from './outcome.js';

/** The gate as it stood when a request was dropped. */
export interface GateReading {
  readonly saturation: number;
  readonly ceiling: number;
}

export function explainOutcome(drop: Drop, reading: GateReading | undefined): Explanation {
  const { reason, priority, queuedMs, policy, detail, limit } = drop;
  const name = `band ${priority}`;
  switch (reason) {
    case 'refused':
    case 'overloaded':
      if (policy === undefined && detail === undefined) {
        return {
          decidedBy: 'endpoints',
          text: 'no endpoint that it may go to takes more, and nothing waits in this mode',
        };
      }
      return {
        decidedBy: 'admission',
        policy,
        text: `rejected by ${policy ?? 'an admission policy'}${detail === undefined ? '' : `: ${detail}`}`,
      };
    case 'displaced':
      if (limit !== undefined) {
        const text = `left ${name} after ${inSeconds(queuedMs)}: ${describeLimit(limit, name)}, and its flow had the most waiting`;
        return { decidedBy: 'limit', limit, text };
      }
      return {
        decidedBy: 'priority',
        text: `left ${name} after ${inSeconds(queuedMs)}: the queue was full, and a higher band took the place`,
      };
    case 'evicted':
      return {
        decidedBy: 'priority',
        text: 'evicted while it ran, for a request of higher priority, and not put back',
      };
    case 'infeasible':
      return {
        decidedBy: 'ordering',
        text: `waited ${inSeconds(queuedMs)} in ${name}, and could not have met its deadline`,
      };
    case 'over-quota':
      return { decidedBy: 'endpoints', text: `${name}: there is no room in its time for ${detail ?? 'it'}` };
    case 'revoked':
      return {
        decidedBy: 'host',
        text: `waited ${inSeconds(queuedMs)} in ${name}, and became void meanwhile: ${detail}`,
      };
    case 'max-bands':
      return { decidedBy: 'limit', text: `there is no band ${priority}, and no further band may be made` };
    case 'ttl-expired': {
      const end =
        reading && `; saturation was ${reading.saturation.toFixed(2)}, the ceiling ${reading.ceiling.toFixed(2)}`;
      return {
        decidedBy: 'ttl',
        text: `waited ${inSeconds(queuedMs)} in ${name}, as long as it may${end ?? ''}`,
        ...(reading && { saturation: reading.saturation, ceiling: reading.ceiling }),
      };
    }
    case 'no-endpoints':
      return {
        decidedBy: 'pool',
        text: `${detail ?? 'no endpoint that it may go to'}${queuedMs > 0 ? `, for ${inSeconds(queuedMs)}` : ''}`,
      };
    case 'cancelled':
      return { decidedBy: 'client', text: `the client left after ${inSeconds(queuedMs)} in ${name}` };
    case 'shutting-down':
      return { decidedBy: 'controller', text: 'the controller is closing' };
    default:
      return {
        decidedBy: 'limit',
        limit,
        text: limit === undefined ? `over the limit ${reason}` : describeLimit(limit, name),
      };
  }
}

function describeLimit({ scope, resource, max, used }: LimitHit, band: string): string {
  const where = { global: 'the queue', band, flow: `its flow in ${band}` }[scope];
  return resource === 'requests'
    ? `${where} is full: ${used} of ${max} requests wait`
    : `${where} is full: ${used} of ${max} bytes are taken, and this request does not fit`;
}
