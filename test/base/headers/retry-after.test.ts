import { afterEach, describe, expect, it, vi } from 'vitest';
import { retryAfterMs } from '../../../src/base/headers/retry-after.js';

const nowEpochMs = (): number => Date.UTC(2026, 10, 21, 10, 0, 0);

function read(value: string, date?: string): number | undefined {
  return retryAfterMs(new Headers({ 'Retry-After': value, ...(date !== undefined && { Date: date }) }), nowEpochMs);
}

afterEach(() => void vi.unstubAllEnvs());

describe('retryAfterMs', () => {
  it.each([
    ['0', 0],
    ['7', 7000],
    ['1.5', 1500],
  ])('reads %s seconds', (text, ms) => {
    expect(read(text)).toBe(ms);
  });

  it.each(['Sat, 21 Nov 2026 10:00:20 GMT', 'Saturday, 21-Nov-26 10:00:20 GMT', 'Sat Nov 21 10:00:20 2026'])(
    'reads the date %s, wherever the client is',
    (text) => {
      vi.stubEnv('TZ', 'Asia/Tokyo');
      expect(read(text)).toBe(20_000);
    },
  );

  it('counts a date from the Date of the response, whatever the clock of the client says', () => {
    expect(read('Mon, 01 Jan 2024 00:00:30 GMT', 'Mon, 01 Jan 2024 00:00:00 GMT')).toBe(30_000);
  });

  it('takes a date in the past for now', () => {
    expect(read('Sat, 21 Nov 2026 09:00:00 GMT')).toBe(0);
  });

  it.each(['soon', '-1', '1e3', '21 Nov 2026', 'Sat, 21 Foo 2026 10:00:20 GMT', '2026-11-21T10:00:20Z'])(
    'takes %j for nothing said',
    (text) => {
      expect(read(text)).toBeUndefined();
    },
  );

  it('finds nothing where nothing is said, in headers of any form', () => {
    expect(retryAfterMs({}, nowEpochMs)).toBeUndefined();
    expect(retryAfterMs({ 'RETRY-AFTER': '2' }, nowEpochMs)).toBe(2000);
  });

  it('reads retry-after-ms first, which is more precise', () => {
    expect(retryAfterMs({ 'retry-after-ms': '1250', 'retry-after': '2' }, nowEpochMs)).toBe(1250);
    expect(retryAfterMs({ 'Retry-After-Ms': '0.5' }, nowEpochMs)).toBe(0.5);
  });

  it.each(['-5', 'NaN', 'soon', '1e3', ''])('passes over a retry-after-ms of %j', (text) => {
    expect(retryAfterMs({ 'retry-after-ms': text, 'retry-after': '2' }, nowEpochMs)).toBe(2000);
    expect(retryAfterMs({ 'retry-after-ms': text }, nowEpochMs)).toBeUndefined();
  });
});
