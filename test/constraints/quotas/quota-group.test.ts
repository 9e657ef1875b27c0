import { describe, expect, it } from 'vitest';
import { GcraWindow } from '../../../src/base/gcra-window.js';
import type { QuotaTerms, QuotaWindow } from '../../../src/base/quota-window.js';
import { FixedWindow } from '../../../src/constraints/quotas/fixed-window.js';
import { Quota } from '../../../src/constraints/quotas/quota.js';
import { QuotaGroup, windowsOf } from '../../../src/constraints/quotas/quota-group.js';
import type { ResolvedQuota } from '../../../src/constraints/quotas/quota-options.js';
import type { ReportedQuota } from '../../../src/constraints/quotas/rate-limit-headers.js';
import type { Amounts } from '../../../src/constraints/quotas/request-estimate.js';
import { SlidingWindow } from '../../../src/constraints/quotas/sliding-window.js';

const amounts = (more: Partial<Amounts> = {}): Amounts => ({
  requests: 1,
  inputTokens: 0,
  outputTokens: 0,
  tokens: 0,
  cost: 0,
  ...more,
});
const told = (more: Partial<ReportedQuota>): ReportedQuota => ({
  unit: 'requests',
  limit: undefined,
  remaining: undefined,
  resetInMs: undefined,
  perMs: undefined,
  ...more,
});
const requests = (limit: number, more: Partial<ResolvedQuota> = {}): ResolvedQuota => ({
  unit: 'requests',
  limit,
  per: 1000,
  window: 'fixed',
  ...more,
});

function group(quotas: ResolvedQuota[] = [requests(10)], learn = true, windowOf = windowsOf(0)): QuotaGroup {
  return new QuotaGroup('the key', { by: 'pool', perModel: false, quotas, learn }, windowOf);
}

describe('a quota that is configured', () => {
  const make = (window: QuotaWindow = new FixedWindow(10, 1250)): Quota => new Quota('requests', window, 1000);

  it('tells its own span, however long its window is, and keeps that', () => {
    const quota = make();
    quota.learn(told({ perMs: 5000, limit: 4 }), 0);
    expect([quota.isLearnt, quota.perMs, quota.window.perMs, quota.window.limit]).toEqual([false, 1000, 1250, 4]);
  });

  it('follows a told limit down, and up again to what is configured', () => {
    const quota = make(new GcraWindow(10, 1000, 5));
    const limits = [4, 20, 8].map((limit) => {
      quota.learn(told({ limit }), 0);
      return [quota.window.limit, quota.window.burst];
    });
    expect(limits).toEqual([
      [4, 2],
      [10, 5],
      [8, 4],
    ]);
  });

  it('never has a burst above its limit', () => {
    const quota = make(new GcraWindow(10, 1000, 50));
    quota.learn(told({ limit: 4 }), 0);
    expect([quota.window.limit, quota.window.burst]).toEqual([4, 4]);
  });

  it('counts what others took of it by what is left, where that is less', () => {
    const quota = make();
    quota.hold(2, 0);
    for (const [remaining, used] of [
      [8, 2],
      [9, 2],
      [7.999_999_999_9, 2],
      [5, 5],
    ] as const) {
      quota.learn(told({ remaining }), 0);
      expect(quota.window.used(0)).toBe(used);
    }
  });

  it('believes in an end that lies within its span, and in no other', () => {
    const ends = [1250, 1251, 400].map((resetInMs) => {
      const quota = make();
      quota.hold(1, 100);
      quota.learn(told({ resetInMs }), 200);
      return quota.window.freeAtMs(200);
    });
    expect(ends).toEqual([1450, 1350, 600]);
    // A window without an end has none to believe in.
    const gcra = make(new GcraWindow(10, 1000, 10));
    expect(() => gcra.learn(told({ resetInMs: 5 }), 0)).not.toThrow();
  });

  it('keeps count of what is held', () => {
    const quota = make();
    const [first, second] = [quota.hold(2, 0), quota.hold(1, 0)];
    quota.change(first, 5, 0);
    expect([quota.reserved, quota.window.used(0), first.taking.amount]).toEqual([6, 6, 5]);
    quota.settle(first, 3, 0);
    expect([quota.reserved, quota.window.used(0), first.taking.amount]).toEqual([1, 4, 3]);
    quota.settle(second, 1, 0);
    expect([quota.reserved, quota.window.used(0)]).toEqual([0, 4]);
  });

  it('holds nothing once all is settled, and never less, however sums are rounded', () => {
    const quota = make();
    const [first, second, third] = [quota.hold(0.7, 0), quota.hold(0.1, 0), quota.hold(0, 0)];
    // 0.7 + 0.1 − 0.7 − 0.1 is less than 0.
    for (const hold of [first, second]) quota.settle(hold, 0, 0);
    expect(quota.reserved).toBe(0);
    quota.settle(third, 0, 0);
    // 0.1 + 0.2 − 0.1 − 0.2 is more.
    for (const hold of [quota.hold(0.1, 0), quota.hold(0.2, 0)]) quota.settle(hold, 0, 0);
    expect(quota.reserved).toBe(0);
  });

  it('is as full as its burst is used', () => {
    const quota = make(new GcraWindow(10, 1000, 5));
    quota.hold(2, 0);
    expect(quota.fullness(0)).toBe(0.4);
  });
});

describe('a quota that answers told', () => {
  it('has the limit, the span and the end that they tell, whatever these are', () => {
    const quota = new Quota('requests', new FixedWindow(10, 1000));
    expect([quota.isLearnt, quota.perMs]).toEqual([true, 1000]);
    quota.learn(told({ limit: 500, perMs: 2000, resetInMs: 9000, remaining: 499 }), 100);
    expect([quota.window.limit, quota.perMs, quota.window.used(100), quota.window.freeAtMs(100)]).toEqual([
      500, 2000, 1, 9100,
    ]);
  });
});

describe('a group that knows nothing yet', () => {
  it('lets one request go until there is an answer, or ten seconds have passed', () => {
    const unknown = group([]);
    expect([unknown.hasRoom(amounts(), 0), unknown.isAsNew(0)]).toEqual([true, true]);
    unknown.hold(amounts(), 100);
    expect([unknown.hasRoom(amounts(), 10_099), unknown.isAsNew(10_099)]).toEqual([false, false]);
    expect(unknown.room(amounts(), 200)).toEqual({
      atMs: 10_100,
      earliestMs: 200,
      missing: 'the answer to the request that went ahead to the key',
    });
    expect([unknown.hasRoom(amounts(), 10_100), unknown.isAsNew(10_100)]).toEqual([true, true]);
    unknown.accepted(100);
    unknown.hold(amounts(), 10_200);
    expect(unknown.hasRoom(amounts(), 10_200)).toBe(true);
  });

  it('lets all go that do not learn, or that are configured', () => {
    for (const known of [group([], false), group([requests(10)])]) {
      known.hold(amounts(), 0);
      expect(known.hasRoom(amounts(), 0)).toBe(true);
    }
  });

  it('lets the next one go when nobody told of an answer, and all where something was sent', () => {
    const [sent, unsent] = [group([]), group([])];
    for (const unknown of [sent, unsent]) unknown.hold(amounts(), 0);
    sent.unanswered(false);
    unsent.unanswered(true);
    for (const unknown of [sent, unsent]) expect(unknown.hasRoom(amounts(), 0)).toBe(true);
    for (const unknown of [sent, unsent]) unknown.hold(amounts(), 0);
    expect([sent.hasRoom(amounts(), 0), unsent.hasRoom(amounts(), 0)]).toEqual([true, false]);
  });

  it('takes over the quotas that answers tell with a limit, by the minute where they do not say', () => {
    const unknown = group([]);
    unknown.learn(
      [told({ remaining: 5 }), told({ unit: 'tokens', limit: 100, remaining: 40 }), told({ limit: 7, perMs: 1000 })],
      0,
    );
    expect(unknown.figures(0)).toEqual([
      expect.objectContaining({ unit: 'tokens', limit: 100, perMs: 60_000, used: 60, isLearnt: true }),
      expect.objectContaining({ unit: 'requests', limit: 7, perMs: 1000, used: 0, isLearnt: true }),
    ]);
    unknown.learn([told({ limit: 9 })], 0);
    expect(unknown.figures(0).map(({ limit }) => limit)).toEqual([100, 9]);
  });
});

describe('a group with several quotas', () => {
  it('takes what an answer tells for the shortest of a unit', () => {
    for (const spans of [
      [1000, 86_400_000],
      [86_400_000, 1000],
    ]) {
      const both = group([...spans.map((per) => requests(10, { per })), requests(10, { unit: 'tokens', per: 5 })]);
      both.learn([told({ limit: 3 })], 0);
      expect(both.figures(0).map(({ unit, perMs, limit }) => [unit, perMs, limit])).toEqual([
        ...spans.map((per) => ['requests', per, per === 1000 ? 3 : 10]),
        ['tokens', 5, 10],
      ]);
    }
  });

  it('has room when all of them have, takes from all of them, and is as full as the fullest', () => {
    const both = group([requests(2), requests(10, { unit: 'tokens' })]);
    const holds = both.hold(amounts({ tokens: 9 }), 0);
    expect(holds.map(({ quota, taking }) => [quota.unit, taking.amount])).toEqual([
      ['requests', 1],
      ['tokens', 9],
    ]);
    expect([both.fullness(0), both.isAsNew(0), both.isAsNew(1000)]).toEqual([0.9, false, false]);
    expect([1, 2].map((tokens) => both.hasRoom(amounts({ tokens }), 0))).toEqual([true, false]);
    both.hold(amounts(), 0);
    expect([both.hasRoom(amounts(), 0), both.fullness(0)]).toEqual([false, 1]);
  });

  it('is as new again when nothing of it is held, nor used', () => {
    const one = group();
    const [hold] = one.hold(amounts(), 0);
    hold?.quota.settle(hold, 1, 10);
    expect([one.isAsNew(10), one.isAsNew(1000)]).toEqual([false, true]);
  });
});

describe('what a request waits for', () => {
  it('is the quota that has room last, in the words of its unit', () => {
    const both = group([requests(1), requests(1000, { unit: 'tokens', per: 5000 })]);
    both.hold(amounts({ tokens: 999 }), 0);
    expect(both.room(amounts({ tokens: 1200 }), 0)).toMatchObject({ atMs: 5000, missing: '1,200 tokens of the key' });
    expect(both.room(amounts({ tokens: 1 }), 0)).toMatchObject({ atMs: 1000, missing: '1 request of the key' });
  });

  it.each<[ResolvedQuota['unit'], number, string]>([
    ['requests', 1, '1 request'],
    ['inputTokens', 2.4, '2 input tokens'],
    ['inputTokens', 1, '1 input token'],
    ['outputTokens', 1, '1 output token'],
    ['outputTokens', 12_400, '12,400 output tokens'],
    ['tokens', 1, '1 token'],
    ['tokens', 0, '0 tokens'],
    ['cost', 1, '1 unit of cost'],
    ['cost', 0.012_34, '0.012 units of cost'],
  ])('of %s, %d, is %s', (unit, amount, text) => {
    const one = group([requests(1, { unit })]);
    one.hold({ ...amounts(), [unit]: 20 }, 0);
    expect(one.room({ ...amounts(), [unit]: amount }, 0).missing).toBe(`${text} of the key`);
  });

  it('is nothing where there is room', () => {
    expect(group().room(amounts(), 7)).toEqual({ atMs: 7, earliestMs: 7, missing: '' });
  });

  it('may come back earlier where it is held, but for requests', () => {
    const tokens = group([requests(10, { unit: 'tokens' })]);
    tokens.hold(amounts({ tokens: 10 }), 0);
    expect(tokens.room(amounts({ tokens: 5 }), 0)).toMatchObject({ atMs: 1000, earliestMs: 0 });
    const one = group([requests(1)]);
    one.hold(amounts(), 0);
    expect(one.room(amounts(), 0)).toMatchObject({ atMs: 1000, earliestMs: 1000 });
  });

  it('drops nobody by a guessed end of what answers told, nor by what is shared with others', () => {
    const learnt = group([]);
    learnt.learn([told({ limit: 1, remaining: 0 })], 0);
    expect(learnt.room(amounts(), 0)).toMatchObject({ atMs: 60_000, earliestMs: 0 });
    learnt.learn([told({ resetInMs: 500 })], 0);
    expect(learnt.room(amounts(), 0)).toMatchObject({ atMs: 500, earliestMs: 500 });
    const units = ['tokens', 'requests'] as const;
    const shared = units.map((unit) => {
      const one = group([requests(1, { unit })], true, (quota, name) =>
        Object.assign(windowsOf(0)(quota, name), { isShared: true }),
      );
      one.hold(amounts({ tokens: 1 }), 0);
      for (const { quota, taking } of one.hold(amounts({ tokens: 1 }), 0)) quota.settle({ quota, taking }, 1, 0);
      return one.room(amounts({ tokens: 1 }), 0).earliestMs;
    });
    expect(shared).toEqual([0, 2000]);
  });
});

describe('a group whose server puts requests off', () => {
  const rest = (doublings: number): number => 1000 * 2 ** doublings;

  it('rests until the told instant, then lets one go, and all when that was answered', () => {
    const one = group();
    one.refused(0, 100, 400, rest);
    expect([one.hasRoom(amounts(), 499), one.isAsNew(499), one.fullness(499), one.figures(200)[0]?.restsForMs]).toEqual(
      [false, false, 1, 300],
    );
    expect(one.room(amounts(), 200)).toEqual({
      atMs: 500,
      earliestMs: 500,
      missing: 'the rest that the key was told to take',
    });
    expect([one.hasRoom(amounts(), 500), one.isAsNew(500), one.fullness(500)]).toEqual([true, true, 0]);
    one.hold(amounts(), 500);
    expect(one.hasRoom(amounts(), 500)).toBe(false);
    // Of a request that went before the refusal nothing can be told.
    one.accepted(99);
    expect(one.hasRoom(amounts(), 500)).toBe(false);
    one.accepted(500);
    expect(one.hasRoom(amounts(), 500)).toBe(true);
  });

  it('rests twice as long each time where it is not told, for refusals that come one after the other', () => {
    const one = group();
    const rests = [0, 10, 20].map((nowMs) => {
      one.refused(nowMs, nowMs, undefined, rest);
      const [figure] = one.figures(nowMs);
      return figure?.restsForMs;
    });
    expect(rests).toEqual([1000, 2000, 4000]);
    one.accepted(20);
    one.refused(9000, 9000, undefined, rest);
    expect(one.figures(9000)[0]?.restsForMs).toBe(1000);
  });

  it('counts requests that were under way together once, and takes the longest told rest', () => {
    const one = group();
    one.refused(0, 10, undefined, rest);
    one.refused(5, 20, undefined, rest);
    expect(one.figures(20)[0]?.restsForMs).toBe(990);
    one.refused(5, 30, 5000, rest);
    one.refused(5, 40, 10, rest);
    expect(one.figures(40)[0]?.restsForMs).toBe(4990);
    one.refused(40, 6000, undefined, rest);
    expect(one.figures(6000)[0]?.restsForMs).toBe(2000);
  });

  it('stops doubling after twenty times', () => {
    const one = group();
    const asked: number[] = [];
    for (let i = 0; i < 23; i++) one.refused(i, i, undefined, (doublings) => asked.push(doublings));
    expect(asked.slice(19)).toEqual([19, 20, 20, 20]);
  });

  it('goes on with one at a time while nobody tells of an answer', () => {
    const one = group();
    one.refused(0, 0, 100, rest);
    one.hold(amounts(), 100);
    one.unanswered(false);
    expect(one.hasRoom(amounts(), 100)).toBe(true);
    one.hold(amounts(), 100);
    expect(one.hasRoom(amounts(), 100)).toBe(false);
  });

  it('lets the next one go at the end of its rest, though the one before brought no answer', () => {
    const one = group();
    one.refused(0, 0, 100, rest);
    one.hold(amounts(), 100);
    one.refused(100, 200, 100, rest);
    expect(one.hasRoom(amounts(), 300)).toBe(true);
  });

  it.each<[Partial<ReportedQuota>[], number | undefined]>([
    [
      [
        { remaining: 0, resetInMs: 500 },
        { remaining: 1, resetInMs: 900 },
      ],
      500,
    ],
    [[{ remaining: 0, resetInMs: 500 }, { remaining: 0, resetInMs: 700 }, { remaining: 0 }], 700],
    [[{ remaining: 0 }], undefined],
    [[{ remaining: 1, resetInMs: 900 }], undefined],
    [[], undefined],
  ])('rests by the quotas that are used up where they tell of it: %j', (quotas, ms) => {
    expect(QuotaGroup.untilReset(quotas.map(told))).toBe(ms);
  });
});

describe('the figures of a group', () => {
  it('tell what is settled, what is held, and when it is free', () => {
    const one = group([requests(10, { unit: 'tokens' })]);
    const [hold] = one.hold(amounts({ tokens: 4 }), 0);
    one.hold(amounts({ tokens: 6 }), 100);
    hold?.quota.settle(hold, 3, 200);
    const figure = { group: 'the key', unit: 'tokens', limit: 10, perMs: 1000, isLearnt: false, restsForMs: 0 };
    expect(one.figures(200)).toEqual([{ ...figure, used: 3, reserved: 6, resetsInMs: 800, waitMs: 0 }]);
    one.hold(amounts({ tokens: 1 }), 300);
    expect(one.figures(300)).toEqual([{ ...figure, used: 3, reserved: 7, resetsInMs: 700, waitMs: 700 }]);
    // What is held still runs, though the window counts it no longer.
    expect(one.figures(1000)).toEqual([{ ...figure, used: 0, reserved: 0, resetsInMs: 0, waitMs: 0 }]);
  });

  it('wait for the end of a rest, and say who shares', () => {
    const one = group([requests(1)], true, (quota, name) =>
      Object.assign(windowsOf(0)(quota, name), { isShared: true }),
    );
    one.hold(amounts(), 0);
    one.refused(0, 0, 1500, () => 0);
    expect(one.figures(200)).toMatchObject([{ waitMs: 1300, restsForMs: 1300, resetsInMs: 800, isShared: true }]);
    expect(group().figures(0)[0]).not.toHaveProperty('isShared');
  });

  it('are of windows that nobody takes from once it has ended', () => {
    let retired = 0;
    const one = group([requests(1), requests(1)], true, (quota, name) =>
      Object.assign(windowsOf(0)(quota, name), { retire: () => retired++ }),
    );
    one.end();
    expect(retired).toBe(2);
    expect(() => group().end()).not.toThrow();
  });

  it('come with what a request lacks of each window that fetches', () => {
    const wanted: unknown[] = [];
    const one = group(
      [requests(1), requests(1, { unit: 'tokens' }), requests(9, { unit: 'cost' })],
      true,
      (quota, name) =>
        Object.assign(windowsOf(0)(quota, name), {
          wants: (amount: number, nowMs: number) => wanted.push([quota.unit, amount, nowMs]),
        }),
    );
    one.hold(amounts({ tokens: 1 }), 0);
    expect(one.hasRoom(amounts({ tokens: 5, cost: 2 }), 7)).toBe(false);
    expect(wanted).toEqual([
      ['requests', 1, 7],
      ['tokens', 5, 7],
    ]);
  });

  it('of what is left are for a window that counts for all', () => {
    const leaves: unknown[] = [];
    const quota = new Quota(
      'tokens',
      Object.assign(new GcraWindow(10, 1000, 10), { leaves: (...left: number[]) => leaves.push(left) }),
      1000,
    );
    quota.learn(told({ remaining: 3 }), 7);
    quota.learn(told({ limit: 9 }), 8);
    expect([leaves, quota.window.used(7)]).toEqual([[[3, 7]], 0]);
  });
});

describe('the windows of a process', () => {
  const of = (quota: Partial<ResolvedQuota>, travelMs = 100): QuotaWindow =>
    windowsOf(travelMs)(requests(10, quota), 'the key');
  const shown = ({ kind, limit, perMs, burst }: QuotaWindow): unknown => [kind, limit, perMs, burst];

  it('are taken for so much longer as a request may travel, or have so much less at once', () => {
    expect(
      [
        of({ window: 'fixed' }),
        of({ window: 'sliding' }),
        of({ window: 'gcra' }),
        of({ window: 'gcra', burst: 4 }),
      ].map(shown),
    ).toEqual([
      ['fixed', 10, 1100, 10],
      ['sliding', 10, 1100, 10],
      ['gcra', 10, 1000, 9],
      ['gcra', 10, 1000, 3],
    ]);
    expect(of({ window: 'sliding' })).toBeInstanceOf(SlidingWindow);
  });

  it('have one at once at least, or what is configured where that is less', () => {
    expect([of({ window: 'gcra', burst: 1.5 }), of({ window: 'gcra', burst: 0.5 })].map(({ burst }) => burst)).toEqual([
      1, 0.5,
    ]);
  });

  it('are those of a source where they are gcra', () => {
    const terms: QuotaTerms[] = [];
    const onRoom = (): void => {};
    const source = {
      window: (given: QuotaTerms) => {
        terms.push(given);
        return new GcraWindow(given.limit / 2, given.perMs, given.burst / 2);
      },
    };
    const make = windowsOf(100, source, onRoom);
    expect(shown(make(requests(10, { window: 'gcra', burst: 4 }), 'the key'))).toEqual(['gcra', 5, 1000, 1.5]);
    expect(terms).toEqual([{ key: 'the key requests 1000', limit: 10, perMs: 1000, burst: 3, onRoom }]);
    make(requests(10, { window: 'gcra' }), 'the key');
    expect(terms[1]?.burst).toBe(9);
    expect([make(requests(10), 'the key').kind, terms.length]).toEqual(['fixed', 2]);
  });
});
