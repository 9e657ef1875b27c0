/** Quotas and sessions, for pages and exporters. Invariant: each is a number, whatever a detector said. */
import { hasNumbers } from '../base/faults/foreign-values.js';
import type { CapacityFigure } from './capacity-figure.js';
import type { QuotaFigure, QuotaFigures } from './quota-figure.js';
import type { SessionFigures } from './session-figures.js';

const quotaCounts = ['unreported', 'ignoredReports', 'ignoredFigures', 'refusals'] as const;
const quotaNumbers = [
  'limit',
  'perMs',
  'used',
  'reserved',
  'resetsInMs',
  'waitMs',
  'restsForMs',
] as const satisfies (keyof QuotaFigure)[];
const sessionNumbers = [
  'resident',
  'idle',
  'maxSessions',
  'waiting',
  'tokens',
  'expired',
] as const satisfies (keyof SessionFigures)[];

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
  const elsewhere = all
    .map((each) => each.elsewhere)
    .filter((count) => typeof count === 'number' && count >= 0) as number[];
  const sums = sumOf(all, sessionNumbers);
  return elsewhere.length === 0 ? sums : { ...sums, elsewhere: elsewhere.reduce((sum, count) => sum + count, 0) };
}

function sumOf<K extends string>(all: readonly Readonly<Record<K, number>>[], names: readonly K[]): Record<K, number> {
  return Object.fromEntries(names.map((name) => [name, all.reduce((sum, each) => sum + each[name], 0)])) as Record<
    K,
    number
  >;
}

function isQuota(value: unknown): boolean {
  return hasNumbers(value, quotaNumbers) && typeof value.group === 'string' && typeof value.unit === 'string';
}
