/** What a detector may tell of quotas and of sessions. */
import type { QuotaFigure, QuotaFigures, SessionFigures } from '../../src/types/index.js';

export const quota: QuotaFigure = {
  group: 'key',
  unit: 'requests',
  limit: 10,
  perMs: 60_000,
  used: 1,
  reserved: 2,
  resetsInMs: 5,
  waitMs: 0,
  restsForMs: 0,
  isLearnt: false,
};

export const quotaFigures: QuotaFigures = {
  quotas: [quota],
  unreported: 1,
  ignoredReports: 2,
  ignoredFigures: 3,
  refusals: 4,
};

export const sessionFigures: SessionFigures = {
  resident: 3,
  idle: 1,
  maxSessions: Number.POSITIVE_INFINITY,
  waiting: 2,
  tokens: 100,
  expired: 4,
};
