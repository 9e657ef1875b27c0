import { describe, expect, it } from 'vitest';
import type { Budgets } from '../../../src/spending/index.js';
import { fileOf, loadFor } from '../support/gateway.js';

function budgetsOf(budgets: object, flowControl: object = {}): Budgets {
  const { constraints, flow } = loadFor(fileOf(['http://127.0.0.1:1'], { budgets, flowControl }, 9), undefined);
  expect(flow.constraints ?? []).toEqual(constraints);
  return constraints[0] as Budgets;
}

const told = (budgets: Budgets, id: string): unknown[] =>
  budgets.budgetsOf(id, 0).map(({ group, unit, limit, perMs, calendar }) => [group, unit, limit, calendar ?? perMs]);

const plans = {
  team: [
    { tokens: '200k', per: 'minute' },
    { cost: 50, per: 'month', zone: 'Europe/Berlin' },
  ],
  free: [{ requests: 5, per: 'day' }, { inputTokens: 10 }, { outputTokens: 20, per: '1h' }],
  company: [{ requests: '1k', per: 'week' }],
};
const prices = { '*': { input: 1, output: 2 } };

describe('budgets of plans', () => {
  it('are of each tenant that has the plan, with all below it, and of whoever has no other', () => {
    const tenants = { acme: 'company', 'acme/search': 'team', '*': 'free' };
    const budgets = budgetsOf({ plans, prices }, { tenants, flows: { own: { weight: 3 } } });
    expect(told(budgets, 'acme/search')).toEqual([
      ['team acme/search', 'tokens', 200_000, 60_000],
      ['team acme/search', 'cost', 50, 'month'],
      ['company acme', 'requests', 1000, 'week'],
    ]);
    expect(told(budgets, 'acme')).toEqual([['company acme', 'requests', 1000, 'week']]);
    expect(told(budgets, 'stranger')).toEqual([
      ['free stranger', 'requests', 5, 'day'],
      ['free stranger', 'inputTokens', 10, 60_000],
      ['free stranger', 'outputTokens', 20, 3_600_000],
    ]);
    expect(told(budgets, 'own')).toEqual([]);
  });

  it('are not there without any', () => {
    expect(budgetsOf({ plans: {} }, { plans: { team: { weight: 1 } }, tenants: { a: 'team' } })).toBeUndefined();
  });

  it.each<[object, string]>([
    [{ cost: 5 }, 'budgets.prices: expected prices by model, because a budget is in cost'],
    [
      { tokens: 5, requests: 3 },
      'budgets.plans.p[0]: expected an amount of one of requests, tokens, inputTokens, outputTokens, cost; got requests, tokens',
    ],
    [{ per: 'day' }, 'budgets.plans.p[0]: expected an amount of one of'],
    [{ tokens: 5, per: 'year' }, 'budgets.plans.p[0].per: expected a duration above 0'],
    [{ tokens: 5, per: 'day', zone: 'Mars' }, 'budgets.plans.p[0].zone: expected a time zone'],
    [{ tokens: 0 }, 'budgets.plans.p[0].tokens'],
  ])('are checked: %j', (budget, message) => {
    expect(() => budgetsOf({ plans: { p: [budget] } }, { tenants: { a: 'p' } })).toThrow(message);
  });

  it('take no price that is none', () => {
    const wrong = { plans: { p: [{ cost: 5 }] }, prices: { m: { input: -1, output: 1 } } };
    expect(() => budgetsOf(wrong, { tenants: { a: 'p' } })).toThrow('budgets.prices.m.input');
  });
});
