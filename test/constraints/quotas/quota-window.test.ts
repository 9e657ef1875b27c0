import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GcraWindow } from '../../../src/base/gcra-window.js';
import type { QuotaWindow, Taking } from '../../../src/base/quota-window.js';
import { FixedWindow } from '../../../src/constraints/quotas/fixed-window.js';
import { SlidingWindow } from '../../../src/constraints/quotas/sliding-window.js';

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
function play(
  window: QuotaWindow,
  history: readonly Step[],
  check: (takings: readonly Taken[], nowMs: number) => void,
): void {
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
        if (roomAtMs > nowMs + 0.01)
          expect(window.roomAtMs(wanted, roomAtMs - 0.005)).toBeGreaterThan(roomAtMs - 0.005);
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

describe.each([
  ['gcra', (most: number): QuotaWindow => new GcraWindow(most, perMs, most)],
  ['fixed', (most: number): QuotaWindow => new FixedWindow(most, perMs)],
  ['sliding', (most: number): QuotaWindow => new SlidingWindow(most, perMs)],
])('the balance of a %s window', (_kind, make) => {
  it('may miss an amount by a billionth of the limit, and by no more', () => {
    const window = make(1e9);
    window.take(1, 0);
    expect(window.roomAtMs(1e9, 0)).toBe(0);
    window.take(1, 0);
    expect(window.roomAtMs(1e9, 0)).toBeGreaterThan(0);
  });
});

describe('over any history', () => {
  it('a gcra window admits at most burst + rate · span, whatever is given back', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: limit }), (history, burst) => {
        play(new GcraWindow(limit, perMs, burst), history, (takings, nowMs) => {
          for (const { atMs } of takings) {
            const most =
              Math.max(burst, ...takings.map(({ taking }) => taking.amount)) + ((nowMs - atMs) * limit) / perMs;
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

  it('begins with the first taking after the last one ended', () => {
    const window = new FixedWindow(limit, perMs);
    window.take(3, 500);
    expect([window.roomAtMs(7, 600), window.roomAtMs(8, 600), window.used(1499), window.used(1500)]).toEqual([
      600, 1500, 3, 0,
    ]);
    expect([window.freeAtMs(1600), window.roomAtMs(limit, 1600)]).toEqual([1600, 1600]);
    window.take(1, 1700);
    expect([window.roomAtMs(limit, 1800), window.freeAtMs(1800)]).toEqual([2700, 2700]);
  });

  it('takes a debt from the windows that follow, at once or one by one', () => {
    const [often, once] = [new FixedWindow(limit, perMs), new FixedWindow(limit, perMs)];
    for (const window of [often, once]) {
      window.take(25, 0);
      expect([1, 5, 6, 100].map((amount) => window.roomAtMs(amount, 0))).toEqual([2000, 2000, 3000, 3000]);
      expect(window.freeAtMs(0)).toBe(3000);
    }
    expect([999, 1000, 2000, 2999, 3000].map((atMs) => often.used(atMs))).toEqual([25, 15, 5, 5, 0]);
    expect([once.used(2000), once.roomAtMs(5, 2000), once.roomAtMs(6, 2000), once.used(3000)]).toEqual([
      5, 2000, 3000, 0,
    ]);
  });

  it('charges what is settled for more after its end to the next one', () => {
    const window = new FixedWindow(limit, perMs);
    const taking = window.take(2, 0);
    window.settle(taking, 9, 1500);
    expect([window.used(1500), window.roomAtMs(3, 1500), window.roomAtMs(4, 1500), taking.amount]).toEqual([
      7, 1500, 2500, 9,
    ]);
  });

  it('never counts less than nothing, however sums are rounded', () => {
    const window = new FixedWindow(limit, perMs);
    // 0.7 + 0.1 − 0.7 − 0.1 is less than 0.
    for (const taking of [window.take(0.7, 0), window.take(0.1, 0)]) window.settle(taking, 0, 0);
    expect(window.used(0)).toBe(0);
  });

  it('guesses its end until somebody says who knows, and anew in each window', () => {
    const window = new FixedWindow(limit, perMs);
    expect(window.isGuessing).toBe(true);
    window.endsAt(400, 10);
    expect(window.isGuessing).toBe(false);
    window.take(3, 100);
    expect([window.freeAtMs(100), window.used(400)]).toEqual([400, 0]);
    window.take(3, 450);
    expect([window.isGuessing, window.freeAtMs(450)]).toEqual([true, 1450]);
    window.endsAt(3000, 460);
    expect([window.isGuessing, window.freeAtMs(460)]).toEqual([false, 3000]);
  });

  it('has a burst of its limit', () => {
    const window = new FixedWindow(limit, perMs);
    window.burst = 4;
    expect([window.limit, window.burst]).toEqual([4, 4]);
  });
});

describe('a gcra window', () => {
  const make = (burst = limit): GcraWindow => new GcraWindow(limit, perMs, burst);

  it('leaks all the time, down to nothing, and its time never goes back', () => {
    const window = make();
    window.take(limit, 0);
    expect([window.used(500), window.used(400)]).toEqual([5, 5]);
    expect([5, 6, limit].map((amount) => window.roomAtMs(amount, 500))).toEqual([500, 600, 1000]);
    expect([window.freeAtMs(500), window.used(5000), window.freeAtMs(5000)]).toEqual([1000, 0, 5000]);
  });

  it('has room for its burst, and takes a larger amount for that', () => {
    const window = make(4);
    expect([window.roomAtMs(4, 0), window.roomAtMs(9, 0)]).toEqual([0, 0]);
    window.take(4, 0);
    expect([window.roomAtMs(4, 0), window.roomAtMs(9, 0), window.roomAtMs(4, 0, 1)]).toEqual([400, 400, 300]);
  });

  it.each([
    [8, 2],
    [2, 0],
    [0, 0],
  ])('gives back what has not leaked when ten are settled for %d after six leaked: %d are left', (amount, left) => {
    const window = make();
    const taking = window.take(limit, 0);
    window.settle(taking, amount, 600);
    expect([window.used(600), taking.amount]).toEqual([left, amount]);
  });

  it('has leaked first what was taken first', () => {
    const window = make();
    const [first, second] = [window.take(4, 0), window.take(4, 0)];
    window.settle(first, 0, 300);
    expect(window.used(300)).toBe(4);
    window.settle(second, 1, 300);
    expect(window.used(300)).toBe(1);
  });

  it('leaks what is missing of a taking after what was taken before that', () => {
    const window = make();
    const [first, second] = [window.take(4, 0), window.take(4, 0)];
    window.settle(first, 6, 0);
    // Six have leaked: four of the first and two of the second, of which two are left to give back.
    window.settle(second, 0, 600);
    expect(window.used(600)).toBe(2);
  });

  it('takes now what is missing of a taking that is settled for more', () => {
    const window = make();
    const taking = window.take(2, 0);
    window.settle(taking, 5, 100);
    expect([window.used(100), taking.amount]).toEqual([4, 5]);
  });
});

describe('a sliding window', () => {
  it('holds few entries however many are taken, and lets none go early', () => {
    const window = new SlidingWindow(1e6, perMs);
    for (let i = 0; i < 1e5; i++) window.take(1, i / 100);
    expect(window.used(perMs - 0.01)).toBeCloseTo(1e5);
    // Each entry is free at an instant of its own.
    const instants = new Set(Array.from({ length: 1e5 }, (_, i) => window.roomAtMs(9e5 + i, perMs - 0.01)));
    expect(instants.size).toBeGreaterThan(100);
    expect(instants.size).toBeLessThanOrEqual(1100);
    expect(window.used(perMs + 500)).toBeGreaterThanOrEqual(5e4 - 1);
    expect(window.used(perMs + 500)).toBeLessThan(5.1e4);
  });

  it('gives each taking free after its length, oldest first', () => {
    const window = new SlidingWindow(limit, perMs);
    window.take(3, 0);
    window.take(5, 400);
    expect([2, 3, 5, 6, limit].map((amount) => window.roomAtMs(amount, 500))).toEqual([500, 1000, 1000, 1400, 1400]);
    expect(window.freeAtMs(500)).toBe(1400);
    expect([999, 1000, 1399, 1400].map((atMs) => window.used(atMs))).toEqual([8, 5, 5, 0]);
    expect([window.freeAtMs(1500), window.roomAtMs(limit, 1500)]).toEqual([1500, 1500]);
  });

  it('gives takings free one by one, however close together they are, while they are few', () => {
    const window = new SlidingWindow(limit, perMs);
    window.take(3, 0);
    window.take(5, 1);
    expect([999, 1000, 1001].map((atMs) => window.used(atMs))).toEqual([8, 5, 0]);
  });

  it('gives nothing back of what is free in the very instant of the settlement', () => {
    const window = new SlidingWindow(limit, perMs);
    const taking = window.take(5, 0);
    window.take(4, 500);
    window.settle(taking, 0, 1000);
    expect(window.used(1000)).toBe(4);
  });

  it('counts nothing once all is free, however sums are rounded', () => {
    const window = new SlidingWindow(limit, perMs);
    // 0.7 + 0.1 − 0.7 − 0.1 is less than 0.
    window.take(0.7, 0);
    window.take(0.1, 10);
    expect(window.used(1010)).toBe(0);
  });

  it('pays a debt of one limit in each length, beside what is taken meanwhile', () => {
    const window = new SlidingWindow(limit, perMs);
    window.take(25, 0);
    window.take(3, 500);
    expect([0, 999, 1000, 1500, 2000, 3000].map((atMs) => window.used(atMs))).toEqual([28, 28, 18, 15, 5, 0]);
  });

  it('gives back the end of a debt first, and nothing twice', () => {
    const make = () => {
      const window = new SlidingWindow(limit, perMs);
      return { window, taking: window.take(25, 0) };
    };
    const [early, late] = [make(), make()];
    early.window.settle(early.taking, 12, 0);
    expect([early.window.used(0), early.window.used(1000), early.window.used(2000), early.taking.amount]).toEqual([
      12, 2, 0, 12,
    ]);
    // Ten of them have expired.
    late.window.settle(late.taking, 0, 1500);
    expect(late.window.used(1500)).toBe(0);
    late.window.take(4, 1500);
    expect(late.window.used(1500)).toBe(4);
  });

  it('takes now what is missing of a taking that is settled for more', () => {
    const window = new SlidingWindow(limit, perMs);
    const taking = window.take(2, 0);
    window.settle(taking, 5, 600);
    expect([window.used(999), window.used(1000), window.used(1600), taking.amount]).toEqual([5, 3, 0, 5]);
  });

  it('counts a debt of more than 512 lengths as one of 512, and has no room before', () => {
    const window = new SlidingWindow(limit, perMs);
    const taking = window.take(6000, 0);
    expect([window.used(0), window.roomAtMs(1, 0), window.freeAtMs(0)]).toEqual([5120, 512_000, 512_000]);
    window.settle(taking, 7, 0);
    expect([window.used(0), window.roomAtMs(3, 0), window.roomAtMs(4, 0)]).toEqual([7, 0, 1000]);
  });

  it('has a burst of its limit', () => {
    const window = new SlidingWindow(limit, perMs);
    window.burst = 4;
    expect([window.limit, window.burst]).toEqual([4, 4]);
  });
});
