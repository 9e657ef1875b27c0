/** What a request holds of its quotas, from its dispatch to its end: without a controller, call by call. */
import { describe, expect, it, vi } from 'vitest';
import { type EndpointView, quotaDetector } from '../../../src/index.js';
import type { QuotaDetector, QuotaDetectorOptions, SeatView } from '../../../src/types/index.js';
import { fakeItem } from '../../support/fake-item.js';
import { fakeEndpoint } from '../../support/fake-pool.js';
import { fakeSeat } from '../../support/fake-seat.js';

const [k1, k2] = [fakeEndpoint('k1', { labels: { account: 'A' } }), fakeEndpoint('k2')];

/** `requests` is 1, and the rest is by what a request says of itself. */
const each = ['requests', 'inputTokens', 'outputTokens', 'tokens'] as const;

function make(
  options: QuotaDetectorOptions = { groups: [{ quotas: each.map((unit) => ({ unit, limit: 1000 })) }] },
): QuotaDetector {
  return quotaDetector({ travel: 0, random: () => 0, ...options });
}

/** A request of 500 input and 100 output tokens that was sent to `endpoint`. */
function sent(detector: QuotaDetector, endpoint: EndpointView = k1, seat: Partial<SeatView> = {}, nowMs = 0): SeatView {
  const taken = fakeSeat({ request: { byteSize: 1, inputTokens: 500, maxOutputTokens: 100 } as never }, seat);
  detector.dispatched?.(endpoint, nowMs, taken);
  return taken;
}

/** The same seat, with what its host reported so far. */
function report(seat: SeatView, promptTokens: number, completionTokens: number): SeatView {
  return Object.assign(seat, { isReported: true, usage: { promptTokens, completionTokens } });
}

const usedOf = (detector: QuotaDetector): number[] => detector.quotas(0).quotas.map(({ used }) => used);
const reservedOf = (detector: QuotaDetector): number[] => detector.quotas(0).quotas.map(({ reserved }) => reserved);
const noHeaders = { headers: {} };

describe('a request that ends', () => {
  it.each([
    [200, [1, 500, 100, 600], 1],
    [399, [1, 500, 100, 600], 1],
    [400, [1, 0, 0, 0], 0],
    [499, [1, 0, 0, 0], 0],
    [500, [1, 500, 100, 600], 1],
    [503, [1, 500, 100, 600], 1],
    [529, [1, 0, 0, 0], 0],
    [530, [1, 500, 100, 600], 1],
  ])('without a report after status %d has consumed %j, and %d lack a report', (status, used, unreported) => {
    const detector = make();
    const seat = sent(detector);
    detector.answered?.(k1, 0, seat, { status, ...noHeaders });
    detector.released?.(k1, 0, seat);
    expect([usedOf(detector), detector.quotas(0).unreported]).toEqual([used, unreported]);
  });

  it('without a word of its answer has consumed what was estimated', () => {
    const detector = make();
    detector.released?.(k1, 0, sent(detector));
    expect([usedOf(detector), detector.quotas(0).unreported]).toEqual([[1, 500, 100, 600], 1]);
  });

  it('has consumed what was reported, whatever its server answered', () => {
    const detector = make();
    const seat = report(sent(detector), 40, 2);
    detector.answered?.(k1, 0, seat, { status: 400, ...noHeaders });
    detector.released?.(k1, 0, seat);
    expect([usedOf(detector), detector.quotas(0).unreported]).toEqual([[1, 40, 2, 42], 0]);
  });

  it('with a report of nothing has consumed what was estimated', () => {
    const detector = make();
    detector.released?.(k1, 0, report(sent(detector), 0, 0));
    expect([usedOf(detector), detector.quotas(0).unreported]).toEqual([[1, 500, 100, 600], 1]);
  });

  it('unsent has consumed nothing, and nobody misses its report', () => {
    const detector = make();
    detector.released?.(k1, 0, sent(detector, k1, { isUnsent: true }));
    expect([usedOf(detector), detector.quotas(0).unreported]).toEqual([[0, 0, 0, 0], 0]);
  });

  it('teaches how long answers are by one that has something in it, and by no other', () => {
    const detector = make({ groups: [{ quotas: [{ unit: 'outputTokens', limit: 1000 }] }], output: 'average' });
    detector.released?.(k1, 0, report(sent(detector), 5, 0));
    sent(detector);
    expect(reservedOf(detector)).toEqual([100]);
    detector.released?.(k1, 0, report(sent(detector), 5, 30));
    sent(detector);
    expect(reservedOf(detector)).toEqual([130]);
  });
});

describe('a report while the request runs', () => {
  it('makes the prompt count for what it is, and the answer for no less than was estimated', () => {
    const detector = make();
    const seat = sent(detector);
    detector.reported?.(k1, 0, report(seat, 40, 2));
    expect(reservedOf(detector)).toEqual([1, 40, 100, 600]);
    detector.reported?.(k1, 0, report(seat, 40, 700));
    expect(reservedOf(detector)).toEqual([1, 40, 700, 740]);
  });

  it('that does not tell the prompt leaves its estimate', () => {
    const detector = make();
    detector.reported?.(k1, 0, report(sent(detector), 0, 5));
    expect(reservedOf(detector)).toEqual([1, 500, 100, 600]);
  });

  it('that cannot be right changes nothing, and wakes nobody', () => {
    const detector = make();
    const seat = sent(detector);
    let heard = 0;
    detector.subscribe?.(() => heard++);
    detector.reported?.(k1, 0, report(seat, 2 ** 60, 5));
    expect([reservedOf(detector), heard]).toEqual([[1, 500, 100, 600], 0]);
  });
});

describe('a seat', () => {
  it('of which nothing was dispatched here changes nothing, whatever is told of it', () => {
    const detector = make();
    let heard = 0;
    detector.subscribe?.(() => heard++);
    const stranger = fakeSeat();
    detector.answered?.(k1, 0, stranger, { status: 429, ...noHeaders });
    detector.reported?.(k1, 0, report(stranger, 1, 1));
    detector.released?.(k1, 0, stranger);
    expect([heard, detector.quotas(0)]).toEqual([
      0,
      { quotas: [], unreported: 0, ignoredReports: 0, ignoredFigures: 0, refusals: 0 },
    ]);
  });

  it('of an endpoint in no group may end, and its server may refuse it', () => {
    const detector = make({ groups: [{ by: 'label', label: 'account', quotas: [{ unit: 'requests', limit: 1 }] }] });
    const seat = sent(detector, k2);
    detector.answered?.(k2, 0, seat, { status: 429, ...noHeaders });
    detector.released?.(k2, 0, seat);
    expect(detector.quotas(0)).toMatchObject({ quotas: [], refusals: 0 });
  });

  it('that another endpoint gives back, where it never was, stays where it is', () => {
    const detector = make({ groups: [{ by: 'endpoint', quotas: [{ unit: 'requests', limit: 5 }] }] });
    const seat = sent(detector, k1);
    detector.released?.(k2, 0, seat);
    expect(reservedOf(detector)).toEqual([1]);
    detector.released?.(k1, 0, seat);
    expect([usedOf(detector), reservedOf(detector)]).toEqual([[1], [0]]);
  });
});

describe('what an answer tells', () => {
  const headers = { 'x-ratelimit-limit-requests': '10', 'x-ratelimit-remaining-requests': '3' };
  const two = (...learn: boolean[]): QuotaDetectorOptions => ({
    groups: learn.map((learns, i) => ({
      name: `group ${i}`,
      learn: learns,
      quotas: [{ unit: 'requests', limit: 10 }],
    })),
  });

  it('is for the first group that learns', () => {
    const detector = make(two(false, true, true));
    detector.answered?.(k1, 0, sent(detector), { status: 200, headers });
    expect(usedOf(detector)).toEqual([0, 6, 0]);
  });

  it('is for the first of all where none learns, which rests after a refusal', () => {
    const detector = make(two(false, false));
    detector.answered?.(k1, 0, sent(detector), { status: 429, headers: { ...headers, 'retry-after': '7' } });
    expect(detector.quotas(0).quotas.map(({ restsForMs, used }) => [restsForMs, used])).toEqual([
      [7000, 0],
      [0, 0],
    ]);
  });

  it('is not warned of where all of it can be right', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const detector = make();
    detector.answered?.(k1, 0, sent(detector), { status: 200, headers });
    expect(warn).not.toHaveBeenCalled();
  });

  it('and cannot be right is shown up to its hundredth character, once', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const detector = make();
    for (const digit of ['x', 'y']) {
      detector.answered?.(k1, 0, sent(detector), {
        status: 200,
        headers: { 'x-ratelimit-limit-requests': digit.repeat(500) },
      });
      expect(warn.mock.calls.map(([text]) => text)).toEqual([
        `headgate: a figure that answers told of the pool cannot be right, and is ignored: "${'x'.repeat(100)}". ` +
          'This is written once; ignoredFigures of the quotas counts all.',
      ]);
    }
  });

  it('of usage that cannot be right is shown, once', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const detector = make();
    for (const promptTokens of [2 ** 60, 2 ** 61]) {
      detector.released?.(k1, 0, report(sent(detector), promptTokens, 1));
      expect(warn.mock.calls.map(([text]) => text)).toEqual([
        `headgate: a report of usage cannot be right, and the estimate stands: ${2 ** 60} and 1 tokens. ` +
          'This is written once; ignoredReports of the quotas counts all.',
      ]);
    }
  });
});

describe('a rest', () => {
  it('is longer by up to a fifth, so that gateways come back one after the other', () => {
    const detector = make({
      groups: [{ quotas: [{ unit: 'requests', limit: 10 }] }],
      random: () => 0.5,
      cooldown: '10s',
    });
    detector.answered?.(k1, 0, sent(detector), { status: 429, ...noHeaders });
    expect(detector.quotas(0).quotas[0]?.restsForMs).toBe(11_000);
  });

  it('is followed by one request, and the end of the one that was rejected lets no other go', () => {
    const detector = make({ groups: [{ quotas: [{ unit: 'requests', limit: 10 }] }] });
    const refused = sent(detector);
    detector.answered?.(k1, 0, refused, { status: 429, headers: { 'retry-after': '1' } });
    const hasRoom = (nowMs: number): boolean => (detector.withRoomFor?.([k1], fakeItem(), nowMs) ?? []).length > 0;
    expect([hasRoom(999), hasRoom(1000)]).toEqual([false, true]);
    const ahead = sent(detector, k1, {}, 1000);
    detector.released?.(k1, 1000, refused);
    expect(hasRoom(1000)).toBe(false);
    detector.answered?.(k1, 1001, ahead, { status: 200, ...noHeaders });
    expect(hasRoom(1001)).toBe(true);
  });
});

describe('the reading', () => {
  const byEndpoint = make({ groups: [{ by: 'endpoint', quotas: [{ unit: 'tokens', limit: 1200 }] }] });

  it('is that of the endpoint with most left, and below full', () => {
    sent(byEndpoint, k1);
    expect(byEndpoint.fullness?.([k1], 0)).toBe(0.5);
    sent(byEndpoint, k1);
    sent(byEndpoint, k2);
    const both = [
      [k1, k2],
      [k2, k1],
    ];
    expect(both.map((endpoints) => byEndpoint.fullness?.(endpoints, 0))).toEqual([0.5, 0.5]);
    expect(byEndpoint.fullness?.([k1], 0)).toBeLessThan(1);
  });
});

describe('the wait of a request', () => {
  const item = fakeItem({ request: { byteSize: 1, inputTokens: 600, maxOutputTokens: 0 } as never });
  const tokens = (limit: number) => [{ unit: 'tokens', limit }] as const satisfies { unit: 'tokens'; limit: number }[];

  it('is that of the endpoint where it is shortest; of equals the first is named', () => {
    const detector = make({
      groups: [
        { by: 'endpoint', is: 'k1', quotas: [...tokens(600)] },
        { by: 'endpoint', is: 'k2', quotas: [...tokens(1200)] },
        { by: 'endpoint', is: 'k3', quotas: [...tokens(600)] },
      ],
    });
    const k3 = fakeEndpoint('k3');
    for (const endpoint of [k1, k2, k2, k3]) sent(detector, endpoint);
    const missingOf = (...endpoints: EndpointView[]): unknown => {
      const wait = detector.waitOf?.(endpoints, item, 0);
      return [wait?.missing, wait?.atMs, wait?.notBeforeMs];
    };
    const [short, long] = ['600 tokens of k2', '600 tokens of k1'];
    // What runs may give all of it back at once.
    expect([missingOf(k1, k2), missingOf(k2, k1)]).toEqual(Array(2).fill([short, 30_000, 0]));
    expect(missingOf(k1, k3)).toEqual([long, 60_000, 0]);
  });

  it('is not before the first instant at which an endpoint can have room, whatever comes back', () => {
    const detector = make({ groups: [{ by: 'endpoint', quotas: [{ unit: 'requests', limit: 1, window: 'fixed' }] }] });
    sent(detector, k1);
    sent(detector, k2, {}, 10_000);
    expect(detector.waitOf?.([k2, k1], item, 20_000)).toEqual({
      atMs: 60_000,
      notBeforeMs: 60_000,
      missing: '1 request of k1',
    });
  });

  it('is that of the group that has it wait longest; of equals the first is named', () => {
    const named = (...limits: number[]): unknown => {
      const detector = make({ groups: limits.map((limit, i) => ({ name: `group ${i}`, quotas: [...tokens(limit)] })) });
      sent(detector);
      return detector.waitOf?.([k1], item, 0)?.missing;
    };
    expect([named(600, 1000), named(1000, 600), named(600, 600), named(600, 5000)]).toEqual([
      '600 tokens of group 0',
      '600 tokens of group 1',
      '600 tokens of group 0',
      '600 tokens of group 0',
    ]);
  });

  it('is none where there is room', () => {
    expect(make().waitOf?.([k1], item, 7)).toEqual({ atMs: 7, notBeforeMs: 7, missing: '' });
  });
});

it('a listener hears of what is given back, until it stops', () => {
  const detector = make();
  let heard = 0;
  const stop = detector.subscribe?.(() => heard++);
  detector.released?.(k1, 0, sent(detector));
  expect(heard).toBe(1);
  stop?.();
  detector.released?.(k1, 0, sent(detector));
  expect(heard).toBe(1);
});
