/** One drop of every kind. */

import type { LimitHit } from '../../../src/core/outcome/explanation.js';
import type { Drop } from '../../../src/index.js';

const common = { fairnessId: 'secret-tenant', priority: 100, queuedMs: 0 };
const bandRequests: LimitHit = { scope: 'band', resource: 'requests', max: 500, used: 500 };

export const drops = {
  capacity: {
    ...common,
    type: 'RejectedCapacity',
    reason: 'band-max-requests',
    limit: bandRequests,
    retryAfterMs: 2_300,
  },
  globalBytes: {
    ...common,
    type: 'RejectedCapacity',
    reason: 'global-max-bytes',
    limit: { scope: 'global', resource: 'bytes', max: 1_000, used: 990 },
  },
  flowRequests: {
    ...common,
    type: 'RejectedCapacity',
    reason: 'flow-max-requests',
    limit: { scope: 'flow', resource: 'requests', max: 5, used: 5 },
  },
  maxBands: { ...common, type: 'RejectedCapacity', reason: 'max-bands' },
  refused: {
    ...common,
    type: 'RejectedCapacity',
    reason: 'refused',
    policy: 'tenant-budgets',
    detail: 'the budget of 5 requests is spent',
  },
  overloaded: {
    ...common,
    type: 'RejectedCapacity',
    reason: 'overloaded',
    policy: 'worker-admission',
    detail: 'every worker is busy',
  },
  displaced: { ...common, type: 'EvictedOther', reason: 'displaced', queuedMs: 10 },
  noEndpointsRejected: { ...common, type: 'RejectedNoEndpoints', reason: 'band-max-requests', limit: bandRequests },
  noEndpointsAtAll: { ...common, type: 'RejectedNoEndpoints', reason: 'no-endpoints' },
  noEndpointsEvicted: { ...common, type: 'EvictedNoEndpoints', reason: 'no-endpoints', queuedMs: 60_000 },
  ttl: { ...common, type: 'EvictedTTL', reason: 'ttl-expired', queuedMs: 60_000.7, retryAfterMs: 120_000 },
  infeasible: { ...common, type: 'EvictedOther', reason: 'infeasible', queuedMs: 4_200 },
  gone: { ...common, type: 'EvictedContextCancelled', reason: 'cancelled', queuedMs: 1_234.5, retryAfterMs: 5_000 },
  shutdownRejected: { ...common, type: 'RejectedOther', reason: 'shutting-down' },
  shutdownEvicted: { ...common, type: 'EvictedOther', reason: 'shutting-down', queuedMs: 10 },
  goneBefore: { ...common, type: 'RejectedOther', reason: 'cancelled' },
  expiredBefore: { ...common, type: 'RejectedOther', reason: 'ttl-expired' },
  goneOther: { ...common, type: 'EvictedOther', reason: 'cancelled' },
  // A reason that no contract knows must not become anything worse than an internal error.
  internal: { ...common, type: 'EvictedOther', reason: 'something-new' as Drop['reason'] },
} as const satisfies Record<string, Drop>;

export type DropName = keyof typeof drops;
