import { describe, expect, it } from 'vitest';
import { type CalendarSpan, isZone, leftOf } from '../../../src/constraints/budgets/calendar.js';

const hourMs = 3_600_000;

/** The end of the span that runs at an instant. */
function endOf(span: CalendarSpan, zone: string, at: string): string {
  const atMs = Date.parse(at);
  return new Date(atMs + leftOf(span, zone, atMs)).toISOString();
}

describe('a span of the calendar', () => {
  it.each<[CalendarSpan, string, string, string]>([
    ['day', 'UTC', '2026-02-28T12:00:00Z', '2026-03-01T00:00:00.000Z'],
    ['day', 'UTC', '2028-02-28T23:59:59.999Z', '2028-02-29T00:00:00.000Z'],
    ['day', 'UTC', '2028-02-29T00:00:00Z', '2028-03-01T00:00:00.000Z'],
    ['month', 'UTC', '2028-02-01T00:00:00Z', '2028-03-01T00:00:00.000Z'],
    ['month', 'UTC', '2026-12-31T23:59:59Z', '2027-01-01T00:00:00.000Z'],
    ['month', 'Asia/Tokyo', '2026-01-31T15:00:00Z', '2026-02-28T15:00:00.000Z'],
    ['week', 'UTC', '2026-11-28T10:00:00Z', '2026-11-30T00:00:00.000Z'],
    ['week', 'UTC', '2026-11-30T00:00:00Z', '2026-12-07T00:00:00.000Z'],
    ['week', 'UTC', '2026-11-29T23:59:59.999Z', '2026-11-30T00:00:00.000Z'],
    // Clocks go forward and back: 23 and 25 hours.
    ['day', 'Europe/Berlin', '2026-03-28T23:00:00Z', '2026-03-29T22:00:00.000Z'],
    ['day', 'Europe/Berlin', '2026-10-24T22:00:00Z', '2026-10-25T23:00:00.000Z'],
    ['month', 'Europe/Berlin', '2026-03-15T00:00:00Z', '2026-03-31T22:00:00.000Z'],
    ['week', 'America/New_York', '2026-11-01T05:30:00Z', '2026-11-02T05:00:00.000Z'],
    // No midnight, because clocks go forward then.
    ['day', 'Africa/Cairo', '2026-04-23T12:00:00Z', '2026-04-23T22:00:00.000Z'],
    ['day', 'America/Sao_Paulo', '2018-11-03T12:00:00Z', '2018-11-04T03:00:00.000Z'],
    // Quarters of hours, and a day that was skipped.
    ['day', 'Asia/Kathmandu', '2026-05-05T00:00:00Z', '2026-05-05T18:15:00.000Z'],
    ['day', 'Pacific/Apia', '2011-12-29T12:00:00Z', '2011-12-30T10:00:00.000Z'],
  ])('%s in %s at %s ends at %s', (span, zone, at, end) => {
    expect(endOf(span, zone, at)).toBe(end);
  });

  it('is never longer than it may be, whatever the instant of two years', () => {
    for (const zone of ['UTC', 'Europe/Berlin', 'America/St_Johns', 'Australia/Lord_Howe', 'Pacific/Chatham']) {
      let atMs = Date.parse('2027-01-01T00:00:00Z');
      for (const end = Date.parse('2029-01-01T00:00:00Z'); atMs < end; ) {
        const leftMs = leftOf('day', zone, atMs);
        expect(leftMs).toBeGreaterThan(0);
        expect(leftMs).toBeLessThanOrEqual(25 * hourMs);
        expect(leftOf('day', zone, atMs + leftMs - 1)).toBe(1);
        atMs += leftMs;
      }
    }
  });
});

describe('a zone', () => {
  it('has a name that the calendar of the process knows', () => {
    expect(['UTC', 'Europe/Berlin', 'Mars/Olympus', '', 5, undefined].map(isZone)).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
  });
});
