/** Quotas and sessions, for pages and exporters. Invariant: each is a number, whatever a detector said. */
import { hasNumbers } from '../base/faults/foreign-values.js';

/** What a constraint that counts capacity tells, for pages and exporters. */
export interface CapacityFigure {
  /** Its id. */
  readonly endpoint: string;
  /** `kv` and `prefill` in tokens; `slots` in requests, `unstarted` in those without a first token. */
  readonly dimension: 'slots' | 'unstarted' | 'prefill' | 'kv';
  readonly used: number;
  readonly limit: number;
}

/** One quota of one group, at one instant. */
export interface QuotaFigure {
  /** The group that shares it: an endpoint, an account, a model family, or the pool. */
  readonly group: string;
  readonly unit: 'requests' | 'inputTokens' | 'outputTokens' | 'tokens' | 'cost';
  /** Units in `perMs`. */
  readonly limit: number;
  readonly perMs: number;
  /** Settled units that are not free again. */
  readonly used: number;
  /** Units that running requests hold by their estimates. */
  readonly reserved: number;
  /** Until all of it is free again, if nothing more is taken; ms. */
  readonly resetsInMs: number;
  /** Until there is room for one unit; 0 while there is. */
  readonly waitMs: number;
  /** How long the group still rests, because its server refused; 0 while it does not rest. */
  readonly restsForMs: number;
  /** True when it was learnt from answers; false when it is configured. */
  readonly isLearnt: boolean;
  /** True when other processes take from it too: `used` is what all took, as far as is known. @default false */
  readonly isShared?: boolean;
  /** The fairness ID, or the part of its path, whose budget it is. @default the quota is a provider's */
  readonly owner?: string;
  /** The span of the calendar at whose end all is free again; `perMs` is its usual length. @default none */
  readonly calendar?: 'day' | 'week' | 'month';
}

/** The quotas, and counts of the reports and figures that could not be used. */
export interface QuotaFigures {
  readonly quotas: readonly QuotaFigure[];
  /** Requests that ended without a report of what they consumed, so that their estimates stand. */
  readonly unreported: number;
  /** Reports that cannot be right, and that were ignored. */
  readonly ignoredReports: number;
  /** Figures in headers that cannot be right, and that were ignored. */
  readonly ignoredFigures: number;
  /** Answers of servers that put a request off (429, 529). */
  readonly refusals: number;
}

/** The sessions that a constraint limits. */
export interface SessionFigures {
  /** Sessions that are resident, idle ones too. */
  readonly resident: number;
  /** The resident sessions without a running turn whose last turn was in this process. */
  readonly idle: number;
  /** Sessions that may be resident at a time; Infinity = unlimited. */
  readonly maxSessions: number;
  /** New sessions that are held back. */
  readonly waiting: number;
  /** Tokens that the resident sessions hold, over all endpoints; a shared prefix counts once at each. */
  readonly tokens: number;
  /** Sessions that ended because their inactivity lease was over. */
  readonly expired: number;
  /** The resident sessions whose last turn was in another replica; undefined where sessions are not shared. */
  readonly elsewhere?: number | undefined;
}

const quotaCounts = ['unreported', 'ignoredReports', 'ignoredFigures', 'refusals'] as const;
const quotaNumbers = ['limit', 'perMs', 'used', 'reserved', 'resetsInMs', 'waitMs', 'restsForMs'] as const;
const sessionNumbers = ['resident', 'idle', 'maxSessions', 'waiting', 'tokens', 'expired'] as const;

/** A copy; undefined for what are no figures of capacity. Throws for values that cannot be read. */
export function readCapacity(answer: unknown): readonly CapacityFigure[] | undefined {
  const isRight = (each: unknown): boolean =>
    hasNumbers(each, ['used', 'limit']) && typeof each.endpoint === 'string' && typeof each.dimension === 'string';
  return Array.isArray(answer) && answer.every(isRight) ? [...answer] : undefined;
}

/** A copy; undefined for what are no figures of quotas. Throws for values that cannot be read. */
export function readQuotas(answer: unknown): QuotaFigures | undefined {
  if (!hasNumbers(answer, quotaCounts) || !Array.isArray(answer.quotas)) return undefined;
  return answer.quotas.every(isQuota) ? sumOfQuotas([answer as unknown as QuotaFigures]) : undefined;
}

/** A copy; undefined for what are no figures of sessions. Throws for values that cannot be read. */
export function readSessions(answer: unknown): SessionFigures | undefined {
  return hasNumbers(answer, sessionNumbers) ? sumOfSessions([answer as unknown as SessionFigures]) : undefined;
}

export function sumOfQuotas(all: readonly QuotaFigures[]): QuotaFigures {
  return { quotas: all.flatMap(({ quotas }) => quotas), ...sumOf(all, quotaCounts) };
}

export function sumOfSessions(all: readonly SessionFigures[]): SessionFigures {
  const elsewhere = all.flatMap((each) =>
    typeof each.elsewhere === 'number' && each.elsewhere >= 0 ? each.elsewhere : [],
  );
  const sums = sumOf(all, sessionNumbers);
  return elsewhere.length === 0 ? sums : { ...sums, elsewhere: elsewhere.reduce((sum, count) => sum + count, 0) };
}

export function sumOf<K extends string>(
  all: readonly Readonly<Record<K, number>>[],
  names: readonly K[],
): Record<K, number> {
  const sums = names.map((name) => [name, all.reduce((sum, each) => sum + each[name], 0)]);
  return Object.fromEntries(sums) as Record<K, number>;
}

function isQuota(value: unknown): boolean {
  return hasNumbers(value, quotaNumbers) && typeof value.group === 'string' && typeof value.unit === 'string';
}
