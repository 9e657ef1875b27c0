import { describe, expect, it } from 'vitest';
import type { Usage } from '../../../../src/index.js';
import { CostMeter } from '../../../../src/tiers/2-fairness/by-cost/cost-meter.js';
import { type ChargeMode, type CostOptions, mostCost } from '../../../../src/tiers/2-fairness/by-cost/cost-options.js';
import { RequestCharges } from '../../../../src/tiers/2-fairness/by-cost/request-charges.js';
import { ShareTree } from '../../../../src/tiers/2-fairness/by-cost/share-tree.js';
import { VirtualCounters } from '../../../../src/tiers/2-fairness/by-cost/virtual-counters.js';
import { fakeItem } from '../../../support/fake-item.js';

/** A book of one leaf, and a request of 10 tokens that is predicted to be answered with 20. */
function make(mode: ChargeMode, options: CostOptions = {}) {
  const tree = new ShareTree([() => new VirtualCounters('none')]);
  const meter = new CostMeter({ expectedCompletionTokens: 20, charge: mode, ...options });
  const book = new RequestCharges(tree, meter);
  const leaf = tree.leaf('a');
  const item = fakeItem({ fairnessId: 'a', tokens: 10 });
  return {
    ...{ book, leaf, item, meter },
    go: (weight = 1, nowMs = 0) => book.dispatched(leaf, item, weight, nowMs, true),
    report: (usage: Partial<Usage>, nowMs = 0) =>
      book.consumed(item, { promptTokens: 0, completionTokens: 0, ...usage }, nowMs),
    end: (usage: Partial<Usage> = {}, ending: Parameters<RequestCharges['settled']>[3] = 'released', nowMs = 0) =>
      book.settled(item, { promptTokens: 0, completionTokens: 0, ...usage }, nowMs, ending),
    figures: () => [book.openCost, book.settledCost, leaf.received, leaf.counter],
  };
}

describe('a request that goes', () => {
  it.each([
    ['predict', 50],
    ['stream', 10],
    ['settle', 0],
  ] as const)('is charged by %s, by its weight, until it ends', (mode, charged) => {
    const { book, go, figures, leaf } = make(mode);
    expect(go(2)).toBe(charged);
    expect([figures(), book.openCharges, leaf.unsettled]).toEqual([[charged, 0, charged, charged / 2], 1, 1]);
  });
});

describe('a report', () => {
  it('exceeding the prediction is charged the difference, by predict', () => {
    const { go, report, figures } = make('predict');
    go(2);
    expect([
      report({ promptTokens: 10, completionTokens: 20 }),
      report({ promptTokens: 10, completionTokens: 25 }),
    ]).toEqual([0, 10]);
    expect(figures()).toEqual([60, 0, 60, 30]);
  });

  it('is charged as it comes, also what is less than predicted, by stream', () => {
    const { go, report, figures } = make('stream');
    go();
    expect([
      report({ completionTokens: 3 }),
      report({ promptTokens: 8, cachedPromptTokens: 5, completionTokens: 3 }),
    ]).toEqual([6, -7]);
    expect(figures()).toEqual([9, 0, 9, 9]);
  });

  it('is charged nothing by settle, and counts all the same', () => {
    const { book, go, report, end, figures } = make('settle');
    go();
    expect(report({ promptTokens: 30 })).toBe(0);
    expect(report({ promptTokens: 20 })).toBe(0);
    expect([book.ignoredReports, end({ promptTokens: 30 }), figures()]).toEqual([1, 30, [0, 30, 30, 30]]);
  });

  it.each([
    [{ promptTokens: 9, completionTokens: 5, cachedPromptTokens: 2 }],
    [{ promptTokens: 10, completionTokens: 4, cachedPromptTokens: 2 }],
    [{ promptTokens: 10, completionTokens: 5, cachedPromptTokens: 1 }],
    [{ promptTokens: mostCost * 2, completionTokens: 5, cachedPromptTokens: 2 }],
    [{ promptTokens: 10, completionTokens: mostCost * 2, cachedPromptTokens: 2 }],
    [{ promptTokens: 10, completionTokens: 5, cachedPromptTokens: mostCost * 2 }],
  ])('of a figure that falls or is too large is ignored, and counted: %j', (usage) => {
    const { book, go, report, figures } = make('stream');
    go();
    report({ promptTokens: 10, completionTokens: 5, cachedPromptTokens: 2 });
    const before = figures();
    expect([report(usage), book.ignoredReports, figures()]).toEqual([0, 1, before]);
  });

  it('that cannot be is counted once, however many follow that leave its figure out', () => {
    const { book, go, report } = make('predict');
    go();
    // A lease keeps the figures that a report leaves out.
    report({ promptTokens: 2 ** 60 });
    for (const completionTokens of [5, 6]) report({ promptTokens: 2 ** 60, completionTokens });
    expect(book.ignoredReports).toBe(1);
    report({ promptTokens: 10, completionTokens: 6 });
    report({ promptTokens: 10, completionTokens: 4 });
    report({ promptTokens: 10, completionTokens: 5 });
    report({ promptTokens: 0, completionTokens: 5 });
    expect(book.ignoredReports).toBe(4);
    report({ promptTokens: 10, completionTokens: 7 });
    report({ promptTokens: 0, completionTokens: 7 });
    expect(book.ignoredReports).toBe(5);
  });

  it('may be 2^53, and keep what was cached when that is not told', () => {
    const { book, go, report, figures } = make('stream');
    go();
    report({ promptTokens: 10, cachedPromptTokens: 10 });
    report({ promptTokens: mostCost });
    expect([book.ignoredReports, figures()[0]]).toEqual([0, mostCost - 10]);
    report({ promptTokens: mostCost, completionTokens: mostCost, cachedPromptTokens: mostCost });
    expect(book.ignoredReports).toBe(0);
  });

  it('of a request that never went changes nothing', () => {
    const { book, report, end, figures } = make('predict');
    expect([report({ promptTokens: -1 }), end({ promptTokens: 50 }), figures(), book.ignoredReports]).toEqual([
      0,
      0,
      [0, 0, 0, 0],
      0,
    ]);
  });
});

describe('an end', () => {
  it('charges what was reported, and leaves nothing open', () => {
    const { book, go, end, figures, leaf } = make('predict');
    go(2);
    expect(end({ promptTokens: 10, completionTokens: 5 })).toBe(-30);
    expect([figures(), book.openCharges, leaf.unsettled, book.ignoredReports]).toEqual([[0, 20, 20, 10], 0, 0, 0]);
  });

  it.each(['predict', 'stream', 'settle'] as const)('without a report charges what was predicted (%s)', (mode) => {
    const { go, end, figures } = make(mode, { workOf: () => ({ promptTokens: 12, cachedPromptTokens: 4 }) });
    go();
    end();
    expect(figures()).toEqual([0, 48, 48, 48]);
  });

  it('with an answer but no prompt takes the prompt for predicted', () => {
    const { go, end, figures } = make('predict', { workOf: () => ({ promptTokens: 12, cachedPromptTokens: 4 }) });
    go();
    end({ completionTokens: 1, cachedPromptTokens: 7 });
    expect(figures()[1]).toBe(10);
  });

  it('that is followed by another attempt charges what was reported alone', () => {
    const { go, report, end, figures } = make('predict');
    go();
    report({ promptTokens: 6, completionTokens: 2, cachedPromptTokens: 1 });
    end({ promptTokens: 6, completionTokens: 2, cachedPromptTokens: 1 }, 'requeued');
    expect(figures()).toEqual([0, 9, 9, 9]);
    const silent = make('predict');
    silent.go();
    silent.end({}, 'requeued');
    expect(silent.figures()).toEqual([0, 0, 0, 0]);
  });

  it.each([
    ['released', 120],
    ['aborted', 120],
    ['requeued', 120],
  ] as const)('that is %s believes what was cached until that is reported', (ending, cost) => {
    const options = { workOf: () => ({ promptTokens: 1000, cachedPromptTokens: 900, completionTokens: 10 }) };
    for (const mode of ['predict', 'stream', 'settle'] as const) {
      const silent = make(mode, options);
      silent.go();
      silent.report({ promptTokens: 1000, completionTokens: 5 });
      silent.end({ promptTokens: 1000, completionTokens: 10 }, ending);
      expect(silent.figures()[1]).toBe(cost);
      const told = make(mode, options);
      told.go();
      told.report({ promptTokens: 1000, completionTokens: 10, cachedPromptTokens: 0 });
      told.end({ promptTokens: 1000, completionTokens: 10, cachedPromptTokens: 0 }, ending);
      expect(told.figures()[1]).toBe(1020);
    }
  });

  it('believes no more cached than the prompt that was reported', () => {
    const seen: number[] = [];
    const { go, end } = make('settle', {
      workOf: () => ({ promptTokens: 1000, cachedPromptTokens: 900 }),
      cost: ({ cachedPromptTokens }) => {
        seen.push(cachedPromptTokens);
        return 1;
      },
    });
    go();
    end({ promptTokens: 60 });
    expect(seen.at(-1)).toBe(60);
  });

  it.each([
    ['released', 48, 0],
    ['aborted', 8, 0],
    ['unsent', 0, 0],
    ['requeued', 0, 0],
  ] as const)('that is %s without a report leaves the prompt, all or nothing', (ending, cost, open) => {
    for (const mode of ['predict', 'stream', 'settle'] as const) {
      const { go, end, figures } = make(mode, { workOf: () => ({ promptTokens: 12, cachedPromptTokens: 4 }) });
      go(2);
      end({}, ending);
      expect(figures()).toEqual([open, cost, cost, cost / 2]);
    }
  });

  it.each(['released', 'aborted'] as const)('that is %s after a report of an answer charges that answer', (ending) => {
    const { go, report, end, figures } = make('predict');
    go();
    report({ promptTokens: 10, completionTokens: 3 });
    end({ promptTokens: 10, completionTokens: 3 }, ending);
    expect(figures()[1]).toBe(16);
  });

  it('after a report of 0 charges nothing, and one request where requests are counted', () => {
    for (const [cost, charged] of [
      ['tokens', 0],
      ['requests', 1],
      [(work: { promptTokens: number }) => 1 + work.promptTokens, 1],
    ] as const) {
      const { go, report, end, figures } = make('predict', { cost });
      go();
      report({});
      end({});
      expect(figures()[1]).toBe(charged);
    }
    const cached = make('predict');
    cached.go();
    cached.report({ cachedPromptTokens: 4 });
    cached.end({ cachedPromptTokens: 4 });
    expect(cached.figures()[1]).toBe(50);
  });

  it('without a report charges what was predicted, also with the record of one that had reported 0', () => {
    const { go, report, end, figures } = make('predict');
    go();
    report({});
    end({});
    go();
    end({});
    expect(figures()[1]).toBe(50);
  });

  it.each([
    ['released', 8, 3],
    ['aborted', 20, 10],
    ['unsent', 20, 10],
    ['requeued', 20, 10],
  ] as const)('that is %s teaches the meter, or does not', (ending, tokens, seconds) => {
    const { meter, item, leaf, go, end } = make('predict', { cost: () => 1 });
    go(1, 1000);
    end({ completionTokens: 8 }, ending, 4000);
    meter.predict(item, '', leaf.hashOf('a'));
    expect([meter.work.completionTokens, meter.work.seatMs]).toEqual([tokens, seconds * 1000]);
  });

  it('teaches of the model of the request, and of no other', () => {
    const { meter, item, leaf, go, end } = make('predict', { modelOf: () => 'm' });
    go();
    end({ completionTokens: 8 });
    const hash = leaf.hashOf('a');
    expect([meter.predict(item, 'm', hash), meter.predict(item, '', hash)]).toEqual([26, 50]);
  });

  it('leaves no fraction open once nothing runs', () => {
    const { book, leaf } = make('predict', { cost: ({ promptTokens }) => promptTokens });
    const items = [0.1, 0.2, 0.3].map((tokens, sequence) => fakeItem({ fairnessId: 'a', tokens, sequence }));
    for (const each of items) book.dispatched(leaf, each, 1, 0, true);
    for (const each of items) book.settled(each, { promptTokens: each.tokens, completionTokens: 0 }, 0, 'released');
    expect(book.openCost).toBe(0);
  });
});

describe('seats', () => {
  it.each([
    ['a report', ({ report }: ReturnType<typeof make>) => report({}, 3500)],
    ['an end', ({ end }: ReturnType<typeof make>) => end({}, 'released', 3500)],
    ['an end with figures', ({ end }: ReturnType<typeof make>) => end({ promptTokens: 3 }, 'released', 3500)],
    ['another attempt', ({ end }: ReturnType<typeof make>) => end({}, 'requeued', 3500)],
  ])('are charged from the dispatch to %s', (_, act) => {
    const made = make('stream', { cost: 'seat-seconds' });
    expect(made.go(1, 1000)).toBe(0);
    expect(act(made)).toBe(2.5);
  });
});
