/** Explains a drop to a client: cause, status, sentence. Error contracts and `FlowControlError` start from here. */
import { inSeconds, type LimitHit } from './explanation.js';
import type { Drop } from './outcome.js';

/**
 * The cause of a drop, whichever way it came about.
 * - `saturated`: there was no room: a limit on waiting requests was reached, an admission policy rejected it, or a
 *   higher priority took its place.
 * - `overloaded`: an admission policy found every worker busy.
 * - `budget`: its budget is used up.
 * - `no-endpoints`: there is no model server.
 * - `ttl-expired`: it waited as long as it may.
 * - `cancelled`: the client left.
 * - `shutting-down`: the controller is closing.
 * - `evicted`: it ran, and gave up its seat for a request of higher priority.
 * - `infeasible`: it could not have met its deadline any more.
 * - `revoked`: it became void while it waited.
 * - `internal`: anything else, a fault.
 */
export type DropCause =
  | 'saturated'
  | 'overloaded'
  | 'budget'
  | 'no-endpoints'
  | 'ttl-expired'
  | 'cancelled'
  | 'shutting-down'
  | 'evicted'
  | 'infeasible'
  | 'revoked'
  | 'internal';

/** The stable name of a cause in errors and in bodies. */
export type DropCode =
  | 'ERR_FLOW_SATURATED'
  | 'ERR_FLOW_OVERLOADED'
  | 'ERR_FLOW_BUDGET'
  | 'ERR_FLOW_NO_ENDPOINTS'
  | 'ERR_FLOW_TTL_EXPIRED'
  | 'ERR_FLOW_CANCELLED'
  | 'ERR_FLOW_SHUTTING_DOWN'
  | 'ERR_FLOW_EVICTED'
  | 'ERR_FLOW_INFEASIBLE'
  | 'ERR_FLOW_REVOKED'
  | 'ERR_FLOW_INTERNAL';

export interface DropExplanation {
  readonly cause: DropCause;
  readonly code: DropCode;
  /** Gateway API: 429 `saturated`, `budget`, `evicted`; 500 `shutting-down`, `internal`; 403 `revoked`; else 503. */
  readonly status: 403 | 429 | 500 | 503;
  /** One sentence for the client: limits and figures, or a policy's own text. It never adds a fairness ID. */
  readonly detail: string;
  /** When the client should come back, whole seconds from 1 up; undefined when the client has left, or never. */
  readonly retryAfterSeconds: number | undefined;
  /** The same time in ms, from 1000 up, as precise as it is known. */
  readonly retryAfterMs: number | undefined;
}

const contract: Readonly<Record<DropCause, Pick<DropExplanation, 'code' | 'status'>>> = {
  saturated: { code: 'ERR_FLOW_SATURATED', status: 429 },
  overloaded: { code: 'ERR_FLOW_OVERLOADED', status: 503 },
  budget: { code: 'ERR_FLOW_BUDGET', status: 429 },
  'no-endpoints': { code: 'ERR_FLOW_NO_ENDPOINTS', status: 503 },
  'ttl-expired': { code: 'ERR_FLOW_TTL_EXPIRED', status: 503 },
  cancelled: { code: 'ERR_FLOW_CANCELLED', status: 503 },
  'shutting-down': { code: 'ERR_FLOW_SHUTTING_DOWN', status: 500 },
  evicted: { code: 'ERR_FLOW_EVICTED', status: 429 },
  infeasible: { code: 'ERR_FLOW_INFEASIBLE', status: 503 },
  revoked: { code: 'ERR_FLOW_REVOKED', status: 403 },
  internal: { code: 'ERR_FLOW_INTERNAL', status: 500 },
};

/** Retry-After is at most `maxRetryAfterSeconds`, and 1 if nothing was measured: clients do not retry without it. */
export function explainDrop(drop: Drop, maxRetryAfterSeconds = 30): DropExplanation {
  const cause = causeOf(drop);
  // The time of a quota or a budget is no estimate: a client that comes back sooner finds no room.
  const isCertain = cause === 'budget' || drop.reason === 'over-quota';
  const most = isCertain ? Infinity : maxRetryAfterSeconds;
  const estimateMs = Math.ceil(drop.retryAfterMs ?? 0);
  const isHopeless = cause === 'budget' && drop.retryAfterMs === undefined;
  const hasToWait = cause !== 'cancelled' && cause !== 'revoked' && !isHopeless;
  return {
    cause,
    ...contract[cause],
    detail: sentences[cause](drop),
    retryAfterSeconds: hasToWait ? Math.max(1, Math.min(Math.ceil(estimateMs / 1_000), most)) : undefined,
    retryAfterMs: hasToWait ? Math.max(1_000, Math.min(estimateMs, most * 1_000)) : undefined,
  };
}

function causeOf({ type, reason }: Drop): DropCause {
  if (reason === 'over-budget') return 'budget';
  switch (type) {
    case 'RejectedCapacity':
      return reason === 'overloaded' ? 'overloaded' : 'saturated';
    case 'RejectedNoEndpoints':
    case 'EvictedNoEndpoints':
      return 'no-endpoints';
    case 'EvictedTTL':
      return 'ttl-expired';
    case 'EvictedContextCancelled':
      return 'cancelled';
    default:
      if (reason === 'displaced' || reason === 'over-quota') return 'saturated';
      return Object.hasOwn(contract, reason) ? (reason as DropCause) : 'internal';
  }
}

const sentences: Readonly<Record<DropCause, (drop: Drop) => string>> = {
  saturated: describeFull,
  overloaded: describeFull,
  budget: describeFull,
  'no-endpoints'({ limit, ...drop }) {
    const noServer = `No model server is available${drop.detail === undefined ? '' : ` (${drop.detail})`}`;
    if (limit !== undefined) return `${noServer}, and no more requests may wait. ${describeLimit(limit, drop)}`;
    return `${noServer}${drop.queuedMs > 0 ? `; the request waited ${inSeconds(drop.queuedMs)} for one` : ''}.`;
  },
  'ttl-expired': ({ queuedMs }) => `The request waited ${inSeconds(queuedMs)} for its turn, as long as it may.`,
  cancelled: ({ queuedMs }) => `The client left after ${inSeconds(queuedMs)} in the queue.`,
  'shutting-down': () => 'The gateway is shutting down.',
  evicted: () => 'The request was evicted for one of higher priority.',
  infeasible: ({ queuedMs }) => `The request waited ${inSeconds(queuedMs)} and could not have met its deadline.`,
  revoked: ({ detail = 'it became void while it waited' }) => `The request may not run any more: ${detail}.`,
  internal: () => 'Flow control could not handle the request.',
};

function describeFull(drop: Drop): string {
  const { reason, limit, detail, priority } = drop;
  if (reason === 'displaced' && limit !== undefined)
    return 'The queue was full, and a sender with less waiting took its place.';
  if (limit !== undefined) return describeLimit(limit, drop);
  if (reason === 'over-quota')
    return `The request cannot be served in time: the quota has no room for ${detail ?? 'it'}.`;
  if (detail !== undefined) return `The request was rejected: ${detail}.`;
  return reason === 'displaced'
    ? 'The queue was full, and a request of higher priority took its place.'
    : `The gateway takes no more requests of priority ${priority} now.`;
}

function describeLimit({ scope, resource, max, used }: LimitHit, { priority }: Pick<Drop, 'priority'>): string {
  const where = { global: '', band: ` of priority ${priority}`, flow: ' of this flow' }[scope];
  return resource === 'requests'
    ? `At most ${max} requests${where} may wait, and ${used} are waiting.`
    : `Requests${where} that wait may hold at most ${max} bytes; they hold ${used}, and this one does not fit.`;
}
