import { describe, expect, it } from 'vitest';
import type { ResolvedQuotaOptions } from '../../../src/constraints/quotas/quota-options.js';
import { averageKey, modelOf, RequestEstimate } from '../../../src/constraints/quotas/request-estimate.js';
import type { ItemView } from '../../../src/index.js';
import { fakeItem } from '../../support/fake-item.js';

function estimate(options: Partial<ResolvedQuotaOptions> = {}): RequestEstimate {
  return new RequestEstimate({
    output: 'max-tokens',
    defaultOutputTokens: 1024,
    rejectInfeasible: true,
    travel: 0,
    cooldown: 1,
    maxCooldown: 1,
    random: () => 0,
    wallClock: () => 0,
    ...options,
  });
}

const asking = (request: object, figures: Partial<ItemView> = {}): ItemView => fakeItem({ request, ...figures });
const mostTokens = Number.MAX_SAFE_INTEGER;

describe('an estimate', () => {
  it('takes `tokens` for all that the host knows, and adds nothing to it', () => {
    expect(estimate().of(asking({}, { tokens: 70 }))).toEqual({
      requests: 1,
      inputTokens: 70,
      outputTokens: 1024,
      tokens: 70,
      cost: 0,
    });
    expect(estimate().of(asking({ maxOutputTokens: 5 }, { tokens: 70 }))).toMatchObject({
      outputTokens: 5,
      tokens: 70,
    });
  });

  it('adds input and output where one of them is told', () => {
    expect(estimate().of(asking({ inputTokens: 40, maxOutputTokens: 5 }, { tokens: 70 }))).toMatchObject({
      inputTokens: 40,
      tokens: 45,
    });
    const given = (figures: object) =>
      estimate({ estimate: () => figures }).of(asking({ maxOutputTokens: 5 }, { tokens: 70 }));
    expect(given({ inputTokens: 1 })).toMatchObject({ inputTokens: 1, outputTokens: 5, tokens: 6 });
    expect(given({ outputTokens: 2 })).toMatchObject({ inputTokens: 70, outputTokens: 2, tokens: 72 });
    expect(given({ inputTokens: 1, outputTokens: 2, tokens: 9 })).toMatchObject({ tokens: 9 });
    expect(given({})).toMatchObject({ tokens: 70 });
  });

  it.each([[-1], [Number.NaN], [Number.POSITIVE_INFINITY], [mostTokens + 1], ['5'], [null]])(
    'does not go by %s tokens',
    (wrong) => {
      const request = { inputTokens: wrong, maxOutputTokens: wrong };
      expect(estimate().of(asking(request, { tokens: 7 }))).toMatchObject({
        inputTokens: 7,
        outputTokens: 1024,
        tokens: 7,
      });
      expect(
        estimate({ estimate: () => ({ cost: wrong as number, tokens: wrong as number }) }).of(
          asking({}, { tokens: 7 }),
        ),
      ).toMatchObject({
        tokens: 7,
        cost: 0,
      });
    },
  );

  it.each([[0], [0.5], [mostTokens]])('goes by %d tokens', (right) => {
    expect(estimate().of(asking({ inputTokens: right, maxOutputTokens: right }))).toMatchObject({
      inputTokens: right,
      outputTokens: right,
    });
  });

  it('costs by the prices of a million tokens, or what the host says', () => {
    const prices = { input: 2, output: 10 };
    expect(estimate({ prices }).of(asking({ inputTokens: 1e6, maxOutputTokens: 3e6 })).cost).toBe(32);
    expect(estimate({ prices, estimate: () => ({ cost: 0.25 }) }).of(asking({ inputTokens: 1e6 })).cost).toBe(0.25);
    expect(estimate().of(asking({ inputTokens: 1e6, maxOutputTokens: 3e6 })).cost).toBe(0);
  });
});

describe('what was consumed', () => {
  it('is what was reported, with its cost', () => {
    expect(estimate({ prices: { input: 2, output: 10 } }).actual({ promptTokens: 1000, completionTokens: 50 })).toEqual(
      {
        requests: 1,
        inputTokens: 1000,
        outputTokens: 50,
        tokens: 1050,
        cost: 0.0025,
      },
    );
  });

  it.each([
    [{ promptTokens: -1, completionTokens: 0 }],
    [{ promptTokens: 0, completionTokens: -1 }],
    [{ promptTokens: 2 ** 60, completionTokens: 0 }],
    [{ promptTokens: 0, completionTokens: 2 ** 60 }],
  ])('cannot be %o', (usage) => {
    expect(estimate().actual(usage)).toBeUndefined();
  });
});

describe('what answers have taught', () => {
  const [item, other] = [asking({ model: 'm' }), asking({ model: 'other' })];
  const output = (by: RequestEstimate, of = item): number => by.of(of).outputTokens;

  it('is an average in which the last answer weighs a fifth, for each model and tenant', () => {
    const by = estimate({ output: 'average' });
    for (const [length, average] of [
      [100, 100],
      [200, 120],
      [20, 100],
    ] as const) {
      by.learn(averageKey(item), length);
      expect(output(by)).toBe(average);
    }
    expect(output(by, other)).toBe(1024);
    expect(output(by, asking({ model: 'm' }, { fairnessId: 'b' }))).toBe(1024);
  });

  it('is no more than what the request allows itself', () => {
    const by = estimate({ output: 'average' });
    expect(output(by, asking({ model: 'm', maxOutputTokens: 30 }))).toBe(30);
    by.learn(averageKey(item), 100);
    expect(output(by, asking({ model: 'm', maxOutputTokens: 30 }))).toBe(30);
    expect(output(by, asking({ model: 'm', maxOutputTokens: 300 }))).toBe(100);
  });

  it('stands in for what a request does not say by `max-tokens`', () => {
    const by = estimate();
    by.learn(averageKey(item), 100);
    expect([output(by), output(by, asking({ model: 'm', maxOutputTokens: 300 })), output(by, other)]).toEqual([
      100, 300, 1024,
    ]);
  });

  it('is forgotten when there are more than ten thousand pairs, and learnt anew', () => {
    const by = estimate({ output: 'average' });
    by.learn(averageKey(item), 100);
    for (let i = 1; i < 10_000; i++) by.learn(`key ${i}`, 1);
    by.learn(averageKey(item), 100);
    expect(output(by)).toBe(100);
    by.learn('one too many', 7);
    expect(output(by)).toBe(1024);
    by.learn(averageKey(item), 100);
    expect(output(by)).toBe(100);
  });
});

describe('the model of a request', () => {
  it.each([
    ['m', 'm'],
    [7, ''],
    [undefined, ''],
  ])('%s is %j', (model, expected) => {
    expect(modelOf(asking({ model }))).toBe(expected);
  });
});
