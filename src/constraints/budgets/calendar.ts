/** Days, weeks and months of a time zone, however many hours they have. */
import { placesBefore } from '../../base/places-before.js';

const dayMs = 86_400_000;
export type CalendarSpan = 'day' | 'week' | 'month';
/** The spans, and their usual length. */
export const calendarSpans: Readonly<Record<CalendarSpan, number>> = { day: dayMs, week: 7 * dayMs, month: 30 * dayMs };

const dayOf = (year: number, month: number, day: number): number => Date.UTC(year, month - 1, day) / dayMs;

/** From `atMs` to the first instant of the next span: midnight, or where the zone skips that, what comes after it. */
export function leftOf(span: CalendarSpan, zone: string, atMs: number): number {
  const format = dateFormat(zone);
  const dateAt = (instantMs: number): [year: number, month: number, day: number] => {
    const parts = format.formatToParts(instantMs);
    const of = (wanted: string): number => Number(parts.find(({ type }) => type === wanted)?.value);
    return [of('year'), of('month'), of('day')];
  };
  const [year, month, day] = dateAt(atMs);
  const today = dayOf(year, month, day);
  // Day 0, of 1970, was a Thursday; weeks begin on Mondays.
  const nexts = { day: today + 1, week: today + 7 - ((today + 3) % 7), month: dayOf(year, month + 1, 1) };
  // Days begin at whole seconds.
  const startMs = Math.floor(atMs / 1_000) * 1_000;
  const isBefore = (second: number): boolean => dayOf(...dateAt(startMs + second * 1_000)) < nexts[span];
  return startMs + placesBefore((nexts[span] - today + 2) * 86_400, isBefore) * 1_000 - atMs;
}

/** @throws RangeError for a zone that does not exist */
function dateFormat(timeZone: string): Intl.DateTimeFormat {
  const parts = { year: 'numeric', month: 'numeric', day: 'numeric' } as const;
  return new Intl.DateTimeFormat('en-u-ca-gregory-nu-latn', { timeZone, ...parts });
}

/** Whether a text names a time zone, such as `Europe/Berlin`. */
export function isZone(zone: unknown): zone is string {
  try {
    return typeof zone === 'string' && zone !== '' && dateFormat(zone) !== undefined;
  } catch {
    return false;
  }
}
