/**
 * Every figure that more than one exporter tells: what it means, and where it is read. Exporters add its name in their
 * convention, and what tells its rows apart. Where only a description is here, each makes the rows in its own way.
 */
import type { ControllerFigures, QuotaFigure } from '../../index.js';
import type { BandFigures } from './labelled-flows.js';

/** A counter, or how those who read several processes put a gauge together. */
export type FigureKind = 'counter' | 'sum' | 'max' | 'min';

export interface Described {
  readonly kind: FigureKind;
  readonly help: string;
}

/** A figure of `T`; undefined where there is nothing to tell. */
export interface FigureOf<T> extends Described {
  read(of: T): number | undefined;
}

type Read<T> = FigureOf<T>['read'];
type OfController = FigureOf<ControllerFigures>;
type OfBand = FigureOf<BandFigures>;
/** Exporters tell it for each quota of each group. */
type OfQuota = FigureOf<QuotaFigure>;

export function counter<T>(help: string, read: Read<T>): FigureOf<T> {
  return { kind: 'counter', help, read };
}

export function sum<T>(help: string, read: Read<T>): FigureOf<T> {
  return { kind: 'sum', help, read };
}

export function max<T>(help: string, read: Read<T>): FigureOf<T> {
  return { kind: 'max', help, read };
}

function min<T>(help: string, read: Read<T>): FigureOf<T> {
  return { kind: 'min', help, read };
}

export const saturation: OfController = max(
  'Saturation of the pool when it was last read; 1 is full.',
  ({ stats }) => stats.saturation,
);

export const fairnessIndex: OfController = min(
  'The least fairness index of the policies that keep one; 1 is fair. Absent when none does.',
  ({ stats }) => stats.fairnessIndex,
);

export const evictions: OfController = counter(
  'Running requests that were asked to leave for one of higher priority.',
  ({ stats }) => stats.evictedInFlight,
);

export const quotaRefusals: OfController = counter(
  'Answers of hosted models that put a request off (429, 529).',
  ({ quotas }) => quotas?.refusals,
);

export const quotaUnreported: OfController = counter(
  'Requests under a quota that ended without a report of what they consumed, so that their estimates stand.',
  ({ quotas }) => quotas?.unreported,
);

export const quotaIgnored: OfController = counter(
  'Figures in reports and headers that cannot be right, and that quotas ignored.',
  ({ quotas }) => quotas && quotas.ignoredReports + quotas.ignoredFigures,
);

export const sessionTokens: OfController = sum(
  'Tokens that resident sessions hold, over all endpoints.',
  ({ sessions }) => sessions?.tokens,
);

export const sessionsExpired: OfController = counter(
  'Sessions that ended because they were inactive for too long.',
  ({ sessions }) => sessions?.expired,
);

export const ignoredReports: OfController = counter(
  'Reports of usage that went backwards or exceeded 2^53, and that policies which share by cost ignored.',
  ({ stats }) => stats.ignoredReports,
);

export const inFlight: OfController = sum('Leases not yet released.', ({ stats }) => stats.inFlight);

export const oldestLease: OfController = max(
  'How long the oldest unreleased lease is held; 0 while nothing runs.',
  ({ stats }) => (stats.oldestLeaseMs ?? 0) / 1_000,
);

export const overdueLeases: OfController = counter(
  'Leases that were held longer than maxLeaseMs.',
  ({ stats }) => stats.overdueLeases,
);

export const pluginErrors: OfController = counter(
  'Faults of policies, detectors, pickers and listeners.',
  ({ stats }) => stats.pluginErrors,
);

export const shadow: OfController = max(
  '1 in shadow mode: nothing is held or dropped, and every other metric is what would have been. Absent otherwise.',
  ({ stats }) => stats.shadow && 1,
);

export const shadowPassed: OfController = counter(
  'Requests that shadow mode let through.',
  ({ stats }) => stats.shadow?.passed,
);

export const shadowWaited: OfController = counter(
  'Requests that shadow mode let through and that would have waited, whatever became of them then.',
  ({ stats }) => stats.shadow?.wouldHaveWaited,
);

export const shadowEvicted: OfController = counter(
  'Running requests that would have been evicted for one of higher priority.',
  ({ stats }) => stats.shadow?.wouldHaveBeenEvicted,
);

export const cappedRequests: OfBand = sum(
  'Requests that wait because their fairness ID runs as much as it may.',
  ({ waitingAtCap }) => waitingAtCap,
);

export const bandFairnessIndex: OfBand = min(
  "Jain's index of received over owed cost of the last five minutes, under policies that share by cost; 1 is fair.",
  (band) => band.service()?.fairnessIndex,
);

export const quotaLimit: OfQuota = max(
  'Units that a quota of a hosted model allows in its span.',
  ({ limit }) => limit,
);

export const quotaUsed: OfQuota = max('Units of a quota that were settled and are not free again.', ({ used }) => used);

export const quotaReserved: OfQuota = max(
  'Units of a quota that running requests hold by their estimates.',
  ({ reserved }) => reserved,
);

export const quotaReset: OfQuota = max(
  'Time until all of a quota is free again, if nothing more is taken.',
  ({ resetsInMs }) => resetsInMs / 1_000,
);

export const quotaWait: OfQuota = max(
  'Time until a quota has room for one unit; 0 while it has.',
  ({ waitMs }) => waitMs / 1_000,
);

export const queueRequests: Described = { kind: 'sum', help: 'Requests that wait in flow control.' };

export const queueBytes: Described = { kind: 'sum', help: 'Bytes of the requests that wait in flow control.' };

export const serviceCost: Described = {
  kind: 'counter',
  help: 'Cost of the requests that ended, in the unit of a fairness policy that shares by cost.',
};

export const counterLag: Described = {
  kind: 'max',
  help: 'Cost that a fairness ID which waits has received beyond those that go next, under policies that share by cost.',
};

export const shadowDropped: Described = {
  kind: 'counter',
  help: 'Requests that shadow mode let through and that would have been rejected, or evicted while they waited.',
};

/** Sessions by state. `elsewhere` is told where a detector knows of it. */
export function sessionStates({ sessions }: ControllerFigures): [state: string, sessions: number][] {
  if (sessions === undefined) return [];
  const { resident, idle, waiting, elsewhere } = sessions;
  const states = {
    running: resident - idle - (elsewhere ?? 0),
    idle,
    ...(elsewhere !== undefined && { elsewhere }),
    waiting,
  };
  return Object.entries(states);
}
