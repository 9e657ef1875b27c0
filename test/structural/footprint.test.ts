/**
 * Memory and leftovers, measured in a process of its own. Bounds are generous: they catch a second copy of something,
 * not a field.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { runProbe } from './run-probe.js';

interface Figures {
  /** Bytes that a request makes which never waits, garbage included. */
  passing: number;
  /** Bytes per request. */
  bound: { waiting: number; left: number };
  own: { waiting: number; left: number };
  cancelled: number;
  expired: number;
  resources: string[];
  waiting: number;
}

/**
 * Bytes per request: tables stay as large as they once were. The smallest object with a field or two, kept for each,
 * would be more.
 */
const nothing = 48;

let figures: Figures;

beforeAll(async () => {
  figures = await runProbe<Figures>(new URL('probe.ts', import.meta.url));
}, 60_000);

describe('a request that waits', () => {
  it('occupies at most 1.5 times what it would in a bare semaphore, its caller included', () => {
    expect(figures.bound.waiting).toBeGreaterThan(100);
    expect(figures.own.waiting / figures.bound.waiting).toBeLessThan(1.5);
  });
});

describe('a request that never waits', () => {
  it('makes a record, an outcome and a lease, and little else', () => {
    expect(figures.passing).toBeGreaterThan(100);
    // 313; on a busy machine, where code is optimized late, some numbers are objects as well.
    expect(figures.passing).toBeLessThan(700);
  });
});

describe('nothing stays behind', () => {
  it('of requests that were dispatched and released', () => {
    expect(figures.own.left).toBeLessThan(nothing);
  });

  it('of requests that were cancelled, by signals of their own and by shared ones', () => {
    expect(figures.cancelled).toBeLessThan(nothing);
  });

  it('of requests that expired', () => {
    expect(figures.expired).toBeLessThan(nothing);
  });

  it('when nobody waits: no timer, no scheduled turn', () => {
    expect(figures.waiting).toBe(0);
    expect(figures.resources).toEqual([]);
  });
});
