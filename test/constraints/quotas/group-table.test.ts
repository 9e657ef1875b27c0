import { describe, expect, it } from 'vitest';
import { GroupTable } from '../../../src/constraints/quotas/group-table.js';
import { windowsOf } from '../../../src/constraints/quotas/quota-group.js';
import type { ResolvedGroup } from '../../../src/constraints/quotas/quota-options.js';
import { fakeEndpoint } from '../../support/fake-pool.js';

const bare: ResolvedGroup = {
  by: 'pool',
  perModel: false,
  quotas: [{ unit: 'requests', limit: 5, per: 1000, window: 'gcra' }],
  learn: true,
};
const [k1, k2] = [fakeEndpoint('k1', { labels: { account: 'A' } }), fakeEndpoint('k2', { labels: { account: 'B' } })];

function table(...templates: Partial<ResolvedGroup>[]): GroupTable {
  return new GroupTable(
    templates.map((template) => ({ ...bare, ...template })),
    windowsOf(0),
  );
}

/** The names of the groups of a request. */
function names(of: GroupTable, endpoint = k1, model: string | undefined = ''): string[] {
  return of.of(endpoint, model, 0).map(({ name }) => name);
}

describe('a group', () => {
  it('is the pool, an endpoint, or what the label of an endpoint says', () => {
    const all = table({ by: 'pool' }, { by: 'endpoint' }, { by: 'label', label: 'account' });
    expect(names(all, k1)).toEqual(['the pool', 'k1', 'account A']);
    expect(names(all, k2)).toEqual(['the pool', 'k2', 'account B']);
    expect(names(all, fakeEndpoint('k3'))).toEqual(['the pool', 'k3']);
    expect(all.of(k1, '', 0)[0]).toBe(all.of(k2, '', 0)[0]);
    expect(all.of(k1, '', 0)).toBe(all.of(k1, '', 0));
  });

  it('may be of one endpoint, or of one value of the label, alone', () => {
    const all = table({ by: 'endpoint', is: 'k2' }, { by: 'label', label: 'account', is: 'A' });
    expect([names(all, k1), names(all, k2)]).toEqual([['account A'], ['k2']]);
  });

  it('has its own name, with whom it is of where that is not one alone', () => {
    const of = (template: Partial<ResolvedGroup>): string[] => names(table({ name: 'the key', ...template }), k1, 'm');
    expect([
      of({}),
      of({ by: 'endpoint' }),
      of({ by: 'endpoint', is: 'k1' }),
      of({ by: 'label', label: 'account' }),
    ]).toEqual([['the key'], ['the key k1'], ['the key'], ['the key A']]);
    expect([of({ perModel: true }), of({ models: ['m'] })]).toEqual([['the key for m'], ['the key']]);
  });

  it('is of every model by itself, with one for requests without a model', () => {
    const each = table({ perModel: true });
    expect([names(each, k1, 'm'), names(each, k2, 'n'), names(each, k1, '')]).toEqual([
      ['the pool for m'],
      ['the pool for n'],
      ['the pool for requests without a model'],
    ]);
    expect([...each.all()]).toHaveLength(3);
  });

  it('is of some models, or of families of them', () => {
    const some = table({ models: ['o3', 'gpt-4o*'] });
    const name = ['the pool for o3, gpt-4o*'];
    expect(['o3', 'o3-mini', 'gpt-4o', 'gpt-4o-mini', 'gpt-4', ''].map((model) => names(some, k1, model))).toEqual([
      name,
      [],
      name,
      name,
      [],
      [],
    ]);
    expect([...some.all()]).toHaveLength(1);
  });

  it('that tells models apart is none of a request of which no model is asked', () => {
    const all = table({}, { perModel: true }, { models: ['*'] });
    expect(all.of(k1, undefined, 0).map(({ name }) => name)).toEqual(['the pool']);
    expect(names(all, k1, 'm')).toEqual(['the pool', 'the pool for m', 'the pool for *']);
  });

  it('of equal options beside another is another', () => {
    const twins = table({}, {});
    const [first, second] = twins.of(k1, '', 0);
    expect([first?.name, second?.name, first === second]).toEqual(['the pool', 'the pool', false]);
  });

  it('is found anew when the labels of an endpoint change', () => {
    const accounts = table({ by: 'label', label: 'account' });
    const endpoint = { ...k1 };
    expect(names(accounts, endpoint)).toEqual(['account A']);
    Object.assign(endpoint, { labels: { account: 'C' } });
    expect(names(accounts, endpoint)).toEqual(['account C']);
  });
});

describe('the models of clients', () => {
  it('have groups of their own up to a thousand, and share one beyond', () => {
    const each = table({ perModel: true });
    for (let i = 0; i < 1500; i++) each.of(k1, `m${i}`, 0);
    expect([...each.all()]).toHaveLength(1001);
    expect(each.of(k1, 'm1400', 0)).toBe(each.of(k1, 'm1499', 0));
    expect(each.of(k1, 'm999', 0)).not.toBe(each.of(k1, 'm998', 0));
  });

  it('make no difference where no group tells them apart', () => {
    const one = table({});
    expect(one.of(k1, 'm', 0)).toBe(one.of(k1, 'n', 0));
  });
});

describe('endpoints that come and go', () => {
  it('leave behind the groups of which something is used, and the others are ended', () => {
    const ended: string[] = [];
    const local = windowsOf(0);
    const each = new GroupTable([{ ...bare, by: 'endpoint' }], (quota, group) =>
      Object.assign(local(quota, group), { retire: () => ended.push(group) }),
    );
    const used = each.of(k1, '', 0)[0];
    used?.hold({ requests: 1, inputTokens: 0, outputTokens: 0, tokens: 0, cost: 0 }, 0);
    for (let i = 1; i < 10_000; i++) each.of(fakeEndpoint(`e${i}`), '', 0);
    expect([[...each.all()].length, ended.length]).toEqual([10_000, 0]);
    const next = each.of(fakeEndpoint('next'), '', 0);
    expect([[...each.all()].map(({ name }) => name), ended.length]).toEqual([['k1', 'next'], 9999]);
    expect([each.of(k1, '', 0)[0] === used, next.map(({ name }) => name)]).toEqual([true, ['next']]);
  });

  it('are swept more seldom the more of them are in use', () => {
    const each = table({ by: 'endpoint' });
    const amounts = { requests: 1, inputTokens: 0, outputTokens: 0, tokens: 0, cost: 0 };
    const add = (from: number, to: number): void => {
      for (let i = from; i < to; i++) each.of(fakeEndpoint(`e${i}`), '', 0)[0]?.hold(amounts, 0);
    };
    add(0, 10_001);
    // All ten thousand are in use: the next sweep is at twice as many.
    for (let i = 10_001; i < 20_000; i++) each.of(fakeEndpoint(`e${i}`), '', 0);
    expect([...each.all()]).toHaveLength(20_000);
    each.of(fakeEndpoint('last'), '', 0);
    expect([...each.all()]).toHaveLength(10_002);
  });
});
