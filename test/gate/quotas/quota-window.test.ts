import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FixedWindow } from '../../../src/gate/quotas/fixed-window.js';
import { GcraWindow } from '../../../src/gate/quotas/gcra-window.js';
import type { QuotaWindow, Taking } from '../../../src/gate/quotas/quota-window.js';
import { SlidingWindow } from '../../../src/gate/quotas/sliding-window.js';

const limit = 10;
const perMs = 1000;

interface Taken {
  readonly atMs: number;
  readonly taking: Taking;
}

type Step = { readonly waitMs: number } & (
  | { readonly type: 'take'; readonly amount: number }
  | { readonly type: 'settle'; readonly which: number; readonly amount: number }
);

const waitMs = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 1500 }));
const amount = fc.integer({ min: 0, max: limit });
const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ type: fc.constant('take' as const), waitMs, amount }) },
    { weight: 2, arbitrary: fc.record({ type: fc.constant('settle' as const), waitMs, which: fc.nat(), amount }) },
  ),
  { maxLength: 80 },
);

/** Plays a history: takes what has room, settles to no more than the estimate, and checks after every step. */
function play(window: QuotaWindow, history: readonly Step[], check: (takings: readonly Taken[], nowMs: number) => void): void {
  const takings: Taken[] = [];
  let nowMs = 0;
  for (const step of history) {
    nowMs += step.waitMs;
    if (step.type === 'take') {
      const hasRoom = window.roomAtMs(step.amount, nowMs) <= nowMs;
      if (hasRoom) takings.push({ atMs: nowMs, taking: window.take(step.amount, nowMs) });
    } else {
      const taken = takings[step.which % Math.max(takings.length, 1)];
      if (taken !== undefined) window.settle(taken.taking, Math.min(step.amount, taken.taking.amount), nowMs);
    }
    check(takings, nowMs);
  }
}

/** What was taken from `fromMs` on, by what it counts for now. */
function sumFrom(takings: readonly Taken[], fromMs: number): number {
  return takings.filter(({ atMs }) => atMs >= fromMs).reduce((sum, { taking }) => sum + taking.amount, 0);
}

describe.each([
  ['gcra', (): QuotaWindow => new GcraWindow(limit, perMs, limit)],
  ['fixed', (): QuotaWindow => new FixedWindow(limit, perMs)],
  ['sliding', (): QuotaWindow => new SlidingWindow(limit, perMs)],
])('a %s window', (_kind, make) => {
  it('has room for a burst of its limit, and no more', () => {
    const window = make();
    for (let i = 0; i < limit; i++) {
      expect(window.roomAtMs(1, 0)).toBe(0);
      window.take(1, 0);
    }
    expect(window.used(0)).toBe(limit);
    expect(window.roomAtMs(1, 0)).toBeGreaterThan(0);
  });

  it('knows the instant at which there is room: not a moment before, and then there is', () => {
    fc.assert(
      fc.property(steps, amount, (history, wanted) => {
        const window = make();
        let nowMs = 0;
        play(window, history, (_, atMs) => {
          nowMs = atMs;
        });
        const roomAtMs = window.roomAtMs(wanted, nowMs);
        if (roomAtMs > nowMs + 0.01) expect(window.roomAtMs(wanted, roomAtMs - 0.005)).toBeGreaterThan(roomAtMs - 0.005);
        expect(window.roomAtMs(wanted, roomAtMs)).toBeLessThanOrEqual(roomAtMs + 1e-6);
      }),
    );
  });

  it('gives back what is settled for less, so that it can be taken again', () => {
    const window = make();
    const taking = window.take(limit, 0);
    window.settle(taking, 4, 0);
    expect(window.used(0)).toBe(4);
    expect(window.roomAtMs(6, 0)).toBe(0);
  });

  it('charges what is settled for more', () => {
    const window = make();
    const taking = window.take(2, 0);
    window.settle(taking, 9, 0);
    expect(window.used(0)).toBe(9);
    expect(window.roomAtMs(2, 0)).toBeGreaterThan(0);
  });

  it('counts nothing any more once everything is settled for nothing', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(400), amount), { maxLength: 30 }), (takings) => {
        const window = make();
        let nowMs = 0;
        const taken = takings.map(([waits, size]) => {
          nowMs += waits;
          return window.take(size, nowMs);
        });
        for (const taking of taken) window.settle(taking, 0, nowMs);
        expect(window.used(nowMs + perMs * 30)).toBeCloseTo(0);
        expect(window.used(nowMs)).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it('lets a taking larger than the limit go when it is empty, and is in debt then', () => {
    const window = make();
    expect(window.roomAtMs(25, 0)).toBe(0);
    window.take(25, 0);
    expect(window.used(0)).toBe(25);
    // 25 of 10 a window: nothing but a part of the third has room before three have passed.
    expect(window.roomAtMs(limit, 0)).toBeGreaterThan(2 * perMs);
    expect(window.roomAtMs(limit, 0)).toBeLessThanOrEqual(3 * perMs);
    expect(window.freeAtMs(0)).toBeLessThanOrEqual(3 * perMs);
  });

  it('counts what may come back as free when it is asked for the earliest instant', () => {
    const window = make();
    window.take(limit, 0);
    expect(window.roomAtMs(5, 0, 5)).toBe(0);
    expect(window.roomAtMs(6, 0, 5)).toBeGreaterThan(0);
  });
});

describe('over any history', () => {
  it('a gcra window admits at most burst + rate · span, whatever is given back', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: limit }), (history, burst) => {
        play(new GcraWindow(limit, perMs, burst), history, (takings, nowMs) => {
          for (const { atMs } of takings) {
            const most = Math.max(burst, ...takings.map(({ taking }) => taking.amount)) + ((nowMs - atMs) * limit) / perMs;
            expect(sumFrom(takings, atMs)).toBeLessThanOrEqual(most + 1e-6);
          }
        });
      }),
    );
  });

  it('a sliding window never holds more than its limit in any span of its length', () => {
    fc.assert(
      fc.property(steps, (history) => {
        play(new SlidingWindow(limit, perMs), history, (takings, nowMs) => {
          const inSpan = takings.filter(({ atMs }) => atMs > nowMs - perMs);
          expect(inSpan.reduce((sum, { taking }) => sum + taking.amount, 0)).toBeLessThanOrEqual(limit);
        });
      }),
    );
  });

  it('a sliding window uses exactly what a list of takings says', () => {
    fc.assert(
      fc.property(steps, (history) => {
        const window = new SlidingWindow(limit, perMs);
        play(window, history, (takings, nowMs) => {
          const inSpan = takings.filter(({ atMs }) => atMs > nowMs - perMs);
          expect(window.used(nowMs)).toBeCloseTo(inSpan.reduce((sum, { taking }) => sum + taking.amount, 0));
        });
      }),
    );
  });

  it('a fixed window never holds more than its limit between two ends', () => {
    fc.assert(
      fc.property(steps, (history) => {
        let beganAtMs = Number.NEGATIVE_INFINITY;
        play(new FixedWindow(limit, perMs), history, (takings) => {
          const last = takings.at(-1);
          if (last !== undefined && last.atMs >= beganAtMs + perMs) beganAtMs = last.atMs;
          expect(sumFrom(takings, beganAtMs)).toBeLessThanOrEqual(limit);
        });
      }),
    );
  });
});

describe('a fixed window', () => {
  it('ends when somebody says who knows; of two who said so the later one is right', () => {
    const window = new FixedWindow(limit, perMs);
    window.take(limit, 0);
    window.endsAt(400, 10);
    window.endsAt(300, 20);
    expect(window.roomAtMs(1, 20)).toBe(400);
    expect(window.used(400)).toBe(0);
  });

  it('gives nothing back for what an earlier window has counted', () => {
    const window = new FixedWindow(limit, perMs);
    const early = window.take(8, 0);
    window.take(5, perMs);
    window.settle(early, 0, perMs);
    expect(window.used(perMs)).toBe(5);
  });
});

describe('a sliding window', () => {
  it('holds few entries however many are taken, and lets none go early', () => {
    const window = new SlidingWindow(1e6, perMs);
    for (let i = 0; i < 1e5; i++) window.take(1, i / 100);
    expect(window.used(perMs - 0.01)).toBeCloseTo(1e5);
    expect(window.used(perMs + 500)).toBeGreaterThanOrEqual(5e4 - 1);
    expect(window.used(perMs + 500)).toBeLessThan(5.1e4);
    expect((window as unknown as { entries: unknown[] }).entries.length).toBeLessThanOrEqual(1100);
  });
});
