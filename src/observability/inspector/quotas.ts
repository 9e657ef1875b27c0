/** The table of quotas (of too many, those with the longest waits), and the sessions that a detector limits. */
import type { ControllerOverview } from '../../index.js';
import type { QuotaFigure, SessionFigures } from '../../types/index.js';
import { limitOrNull, shortenName } from './names.js';

/** One quota of one group. Times in ms. */
export type FrameQuota = QuotaFigure;

export interface FrameQuotas {
  readonly rows: readonly FrameQuota[];
  readonly others: number;
  /** Answers that put a request off (429, 529). */
  readonly refusals: number;
  /** Requests that ended without a report of what they consumed. */
  readonly unreported: number;
  /** Figures of hosts and servers that cannot be right. */
  readonly ignored: number;
}

/** `maxSessions` is null where their number is unlimited. */
export interface FrameSessions extends Omit<SessionFigures, 'maxSessions'> {
  readonly maxSessions: number | null;
}

const mostRows = 24;

export function quotaTable({ quotas }: ControllerOverview): FrameQuotas | null {
  if (quotas === undefined) return null;
  const { quotas: all, refusals, unreported, ignoredReports, ignoredFigures } = quotas;
  const ranked = all.length <= mostRows ? all : [...all].sort((a, b) => b.waitMs - a.waitMs || shareOf(b) - shareOf(a));
  const rows = ranked.slice(0, mostRows).map(toRow);
  return { rows, others: all.length - rows.length, refusals, unreported, ignored: ignoredReports + ignoredFigures };
}

export function sessionsOf({ sessions }: ControllerOverview): FrameSessions | null {
  if (sessions === undefined) return null;
  return { ...sessions, maxSessions: limitOrNull(sessions.maxSessions) };
}

function shareOf({ used, reserved, limit }: QuotaFigure): number {
  return (used + reserved) / limit;
}

/** A group has the name of an endpoint, or of a model that a client made up. */
function toRow(quota: QuotaFigure): FrameQuota {
  return {
    ...quota,
    group: shortenName(quota.group),
    limit: inShort(quota.limit),
    used: inShort(quota.used),
    reserved: inShort(quota.reserved),
    resetsInMs: Math.ceil(quota.resetsInMs),
    waitMs: Math.ceil(quota.waitMs),
    restsForMs: Math.ceil(quota.restsForMs),
  };
}

/** Costs may be small. */
function inShort(amount: number): number {
  return Number(amount.toPrecision(6));
}
