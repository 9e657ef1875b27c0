/** A drop as the host gets it: plain fields, and an explanation that is computed when it is read. */
import { by, type Explanation, inSeconds, type LimitHit } from './explanation.js';
import type { Drop, DropReason, DropType } from './outcome.js';

/** The gate as it stood when a request was dropped. */
interface GateReading {
  readonly saturation: number;
  readonly ceiling: number;
}

/** Invariant: own enumerable properties are those of a plain `Drop`: copies, comparisons and JSON see nothing else. */
export class DropOutcome implements Drop {
  readonly type: DropType;
  readonly reason: DropReason;
  readonly fairnessId: string;
  readonly priority: number;
  readonly queuedMs: number;
  readonly limit: LimitHit | undefined;
  readonly policy: string | undefined;
  readonly detail: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly #reading: GateReading | undefined;

  constructor(plain: Drop, reading: GateReading | undefined) {
    this.type = plain.type;
    this.reason = plain.reason;
    this.fairnessId = plain.fairnessId;
    this.priority = plain.priority;
    this.queuedMs = plain.queuedMs;
    this.limit = plain.limit;
    this.policy = plain.policy;
    this.detail = plain.detail;
    this.retryAfterMs = plain.retryAfterMs;
    this.#reading = reading;
  }

  get explanation(): Explanation {
    return explain(this, this.#reading);
  }
}

/** Explains the decision to drop a request. */
function explain(drop: Drop, reading: GateReading | undefined): Explanation {
  const { reason, priority, queuedMs, policy, detail, limit } = drop;
  const name = `band ${priority}`;
  const waited = (): string => `waited ${inSeconds(queuedMs)} in ${name}`;
  switch (reason) {
    case 'refused':
    case 'overloaded':
    case 'over-budget':
      if (policy === undefined && detail === undefined)
        return by('endpoints', 'no endpoint that it may go to takes more, and nothing waits in this mode');
      return by('admission', `rejected by ${policy ?? 'an admission policy'}${detail ? `: ${detail}` : ''}`, {
        policy,
      });
    case 'displaced': {
      const left = `left ${name} after ${inSeconds(queuedMs)}`;
      return limit === undefined
        ? by('priority', `${left}: the queue was full, and a higher band took the place`)
        : by('limit', `${left}: ${describeLimit(limit, name)}, and its flow had the most waiting`, { limit });
    }
    case 'evicted':
      return by('priority', 'evicted while it ran, for a request of higher priority, and not put back');
    case 'infeasible':
      return by('ordering', `${waited()}, and could not have met its deadline`);
    case 'over-quota':
      return by('endpoints', `${name}: there is no room in its time for ${detail ?? 'it'}`);
    case 'revoked':
      return by('host', `${waited()}, and became void meanwhile: ${detail}`);
    case 'max-bands':
      return by('limit', `there is no band ${priority}, and no further band may be made`);
    case 'ttl-expired': {
      if (reading === undefined) return by('ttl', `${waited()}, as long as it may`);
      const { saturation, ceiling } = reading;
      const end = `saturation was ${saturation.toFixed(2)}, the ceiling ${ceiling.toFixed(2)}`;
      return by('ttl', `${waited()}, as long as it may; ${end}`, { saturation, ceiling });
    }
    case 'no-endpoints':
      return by(
        'pool',
        (detail ?? 'no endpoint that it may go to') + (queuedMs > 0 ? `, for ${inSeconds(queuedMs)}` : ''),
      );
    case 'cancelled':
      return by('client', `the client left after ${inSeconds(queuedMs)} in ${name}`);
    case 'shutting-down':
      return by('controller', 'the controller is closing');
    default:
      return by('limit', limit === undefined ? `over the limit ${reason}` : describeLimit(limit, name), { limit });
  }
}

function describeLimit({ scope, resource, max, used }: LimitHit, band: string): string {
  const where = { global: 'the queue', band, flow: `its flow in ${band}` }[scope];
  return resource === 'requests'
    ? `${where} is full: ${used} of ${max} requests wait`
    : `${where} is full: ${used} of ${max} bytes are taken, and this request does not fit`;
}
