/** Quotas of senders: by fairness ID and by level of its path, on a manual clock and a calendar of the test. */
import { describe, expect, it, vi } from 'vitest';
import { toHttpResponse } from '../../../src/adapters/http/index.js';
import {
  type Constraint,
  type EndpointView,
  explainDrop,
  explainWait,
  type FlowControllerOptions,
  type FlowRequest,
  type Outcome,
  quotaDetector,
} from '../../../src/index.js';
import {
  type BudgetOptions,
  type Budgets,
  type BudgetsOptions,
  budgets,
  type PricesByModel,
} from '../../../src/spending/index.js';
import { audit, ManualClock } from '../../../src/testing/index.js';
import { dropOf, key, leaseOf, makeFlow, turns } from '../../support/flow.js';

const beganAtMs = Date.parse('2028-02-29T23:00:00Z');
const hourMs = 3_600_000;

function world(options: BudgetsOptions, rest: Partial<FlowControllerOptions> = {}) {
  const clock = new ManualClock();
  const detector = budgets({ wallClock: () => beganAtMs + clock.now(), ...options });
  const { flow } = makeFlow({ constraints: [detector], clock, ...rest });
  const ask = (fairnessId: string, request: object = {}, priority = 0): Promise<Outcome> =>
    flow.enqueue({ byteSize: 1, ...request } as FlowRequest, key(fairnessId, priority));
  const now = (fairnessId: string, request: object = {}) =>
    leaseOf(flow.tryEnqueue({ byteSize: 1, ...request } as FlowRequest, key(fairnessId)));
  return { clock, detector, flow, ask, now };
}

const byFlow = (...quotas: BudgetOptions['limits']): BudgetsOptions => ({
  budgets: [{ by: 'flow', limits: quotas }],
});

const spentOf = (detector: Budgets, fairnessId: string): unknown[] =>
  detector.budgetsOf(fairnessId, 0).map(({ owner, used, reserved }) => [owner, used, reserved]);

describe('a budget by flow', () => {
  it('is of each fairness ID for itself, over all bands, and waits for its window', async () => {
    const { clock, ask, now, flow } = world(byFlow({ unit: 'requests', limit: 2, per: '10s' }));
    now('a').release();
    now('a').release();
    now('b').release();
    const order: string[] = [];
    void ask('a', {}, 5).then(() => order.push('a'));
    await ask('b').then(() => order.push('b'));
    clock.advance(4999);
    await turns();
    expect(order).toEqual(['b']);
    expect(explainWait(flow, () => true)?.text).toContain('waits for 1 request of its budget, in');
    clock.advance(1);
    await turns();
    expect(order).toEqual(['b', 'a']);
    audit(flow);
  });

  it('has all of its limit at once, because no provider counts it later', () => {
    const { now, detector } = world(byFlow({ unit: 'requests', limit: 100, per: '1s' }));
    for (let i = 0; i < 100; i++) now('a').release();
    expect(detector.budgetsOf('a', 0)).toMatchObject([{ group: 'tenant a', used: 100, owner: 'a', limit: 100 }]);
  });

  it.each([1000, 0, -1000])('never delays another sender, whose requests have priority %i', async (priority) => {
    const { ask, now } = world(byFlow({ unit: 'requests', limit: 1 }), { defaultRequestTtl: 0 });
    now('a').release();
    void ask('a');
    void ask('a', {}, 7);
    await turns();
    expect((await ask('b', {}, priority)).type).toBe('Dispatched');
  });

  it('never delays those that waited for the same endpoint when they have room before it', async () => {
    const { ask, now, clock } = world(byFlow({ unit: 'tokens', limit: 100, per: '100s' }), { defaultRequestTtl: 0 });
    const order: string[] = [];
    for (const [who, tokens] of [
      ['a', 100],
      ['b', 3],
      ['c', 2],
    ] as const) {
      now(who, { tokens: 100 }).report({ promptTokens: 100, completionTokens: 0 });
      void ask(who, { tokens }).then(() => order.push(`${who} ${clock.now()}`));
    }
    await turns();
    for (let i = 0; i < 100; i++) {
      clock.advance(1000);
      await turns();
    }
    expect(order).toEqual(['c 2000', 'b 3000', 'a 100000']);
  });

  it.each(['band', 'flow', 'none'] as const)(
    'lets others pass where requests wait behind each other by %s',
    async (holBlocking) => {
      const { ask, now } = world(byFlow({ unit: 'requests', limit: 1 }), { holBlocking, defaultRequestTtl: 0 });
      now('a').release();
      void ask('a');
      await turns();
      expect((await ask('b')).type).toBe('Dispatched');
    },
  );

  it('is not taught by answers, and does not rest when a provider refuses', () => {
    const { now, detector } = world(byFlow({ unit: 'requests', limit: 10 }));
    const lease = now('a');
    lease.answered({
      status: 429,
      headers: { 'retry-after': '60', 'x-ratelimit-limit-requests': '3', 'x-ratelimit-remaining-requests': '0' },
    });
    lease.release();
    expect(detector.budgetsOf('a', 0)).toMatchObject([{ limit: 10, used: 1, restsForMs: 0 }]);
    now('a').release();
  });

  it('stands beside the quotas of a provider, which learn as before', () => {
    const quotas = quotaDetector({ groups: [{}] });
    const own = budgets(byFlow({ unit: 'requests', limit: 10 }));
    const { flow } = makeFlow({ constraints: [own, quotas] });
    leaseOf(flow.tryEnqueue({ byteSize: 1 }, key('a'))).answered({
      status: 200,
      headers: { 'x-ratelimit-limit-requests': '3', 'x-ratelimit-remaining-requests': '0' },
    });
    expect(flow.figures().quotas?.quotas).toMatchObject([
      { group: 'tenant a', limit: 10, used: 0, reserved: 1, isLearnt: false },
      { group: 'the pool', limit: 3, isLearnt: true },
    ]);
    expect(own.budgetsOf('a', 0)).toMatchObject([{ group: 'tenant a', limit: 10, used: 0, reserved: 1, owner: 'a' }]);
  });
});

describe('a budget by path', () => {
  const quotas = [{ unit: 'requests', limit: 2 }] as const;

  it('is of each level, and a request counts in all of them', () => {
    const { now, detector } = world({ budgets: [{ by: 'path', limits: [...quotas] }] });
    now('acme/search/key-7').release();
    expect(spentOf(detector, 'acme/search/key-8')).toEqual([
      ['acme', 1, 0],
      ['acme/search', 1, 0],
      ['acme/search/key-8', 0, 0],
    ]);
  });

  it('counts paths of many names at eight levels and as a whole', () => {
    const { detector } = world({ budgets: [{ by: 'path', limits: [...quotas] }] });
    const deep = Array.from({ length: 5000 }, (_, i) => i).join('/');
    const owners = detector.budgetsOf(deep, 0).map(({ owner }) => owner);
    expect([owners.length, owners[7], owners[8] === deep]).toEqual([9, '0/1/2/3/4/5/6/7', true]);
  });

  it('is of those alone that a test names, so that plans differ', () => {
    const plans = new Map([
      ['acme', 'company'],
      ['acme/search', 'team'],
    ]);
    const of = (plan: string, limit: number): BudgetOptions => ({
      name: plan,
      by: 'path',
      is: (path) => plans.get(path) === plan,
      limits: [{ unit: 'requests', limit }],
    });
    const { now, flow, detector } = world({ budgets: [of('company', 3), of('team', 2)] });
    for (let i = 0; i < 9; i++) now('other').release();
    now('acme/search/1').release();
    now('acme/search/2').release();
    const outcome = flow.tryEnqueue({ byteSize: 1 }, key('acme/search/3'));
    expect(outcome).toBeUndefined();
    now('acme/sales').release();
    expect(detector.budgetsOf('acme/search/3', 0)).toMatchObject([
      { group: 'company acme', owner: 'acme', used: 3, limit: 3 },
      { group: 'team acme/search', owner: 'acme/search', used: 2, limit: 2 },
    ]);
    expect(flow.tryEnqueue({ byteSize: 1 }, key('acme/sales'))).toBeUndefined();
  });

  it('without room does not hold back senders below or beside it that have no part in it', async () => {
    const { ask, now } = world({ budgets: [{ by: 'flow', limits: [{ unit: 'requests', limit: 1 }] }] });
    now('acme').release();
    void ask('acme');
    await turns();
    expect((await ask('acme/search')).type).toBe('Dispatched');
  });
});

describe('a budget of the calendar', () => {
  const perMonth = byFlow({ unit: 'tokens', limit: 100, per: 'month', zone: 'UTC' });

  it('waits until the month ends where the request may, and is there at once then', async () => {
    const { ask, now, clock } = world(perMonth, { defaultRequestTtl: '2h' });
    now('a', { tokens: 100 }).release();
    const outcome = ask('a', { tokens: 50 });
    const seen = vi.fn();
    void outcome.then(seen);
    clock.advance(hourMs - 1);
    await turns();
    expect(seen).not.toHaveBeenCalled();
    clock.advance(1);
    expect((await outcome).type).toBe('Dispatched');
  });

  it('drops at once what it has no room for in time, and says when there will be some', async () => {
    const { ask, now } = world(perMonth);
    now('a', { tokens: 100 }).release();
    const drop = dropOf(await ask('a', { tokens: 50 }));
    expect(drop).toMatchObject({ type: 'RejectedCapacity', reason: 'over-budget', retryAfterMs: hourMs, queuedMs: 0 });
    expect(explainDrop(drop)).toMatchObject({
      code: 'ERR_FLOW_BUDGET',
      status: 429,
      detail: 'The request was rejected: no room in time for 50 tokens of its budget.',
      retryAfterSeconds: 3600,
    });
    expect(drop.explanation?.text).toBe('rejected by budgets: no room in time for 50 tokens of its budget');
    const { status, headers, body } = toHttpResponse(drop);
    const resetsAt = JSON.parse(body).resets_at - Date.now() / 1000;
    expect([status, headers['x-should-retry'], Math.round(resetsAt / 60)]).toEqual([429, 'false', 60]);
    expect(body).not.toContain('"a"');
  });

  it('drops what waits as soon as it is certain that there will be no room in time', async () => {
    const { ask, now, clock } = world(perMonth, { defaultRequestTtl: '60s' });
    const lease = now('a', { tokens: 100 });
    const waiting = ask('a', { tokens: 50 });
    clock.advance(10_000);
    lease.report({ promptTokens: 90, completionTokens: 5 });
    lease.release();
    expect(dropOf(await waiting)).toMatchObject({ type: 'EvictedOther', reason: 'over-budget', queuedMs: 10_000 });
    expect(explainDrop(dropOf(await waiting)).code).toBe('ERR_FLOW_BUDGET');
  });

  it.each([
    [30, 7],
    [95, 7 + 60],
  ])(
    'settles a request that runs over its end there, and what is beyond its estimate after it: %i',
    (promptTokens, used) => {
      const { now, clock, detector } = world(perMonth);
      const lease = now('a', { tokens: 40 });
      clock.advance(hourMs);
      now('a', { tokens: 7 }).release();
      lease.report({ promptTokens, completionTokens: 5 });
      lease.release();
      expect(spentOf(detector, 'a')).toEqual([['a', used, 0]]);
    },
  );

  it('tells its span by its name', () => {
    expect(world(perMonth).detector.budgetsOf('a', 0)).toMatchObject([{ calendar: 'month', perMs: 30 * 24 * hourMs }]);
  });
});

describe('a budget in money', () => {
  const prices = { small: { input: 1, output: 2 }, large: { input: 10, output: 30 } };
  const inMoney = { ...byFlow({ unit: 'cost', limit: 1, per: 'day' }), prices };

  it('is charged by the prices of the model that was asked for', () => {
    const { now, detector } = world(inMoney);
    const small = now('a', { model: 'small', inputTokens: 1000, maxOutputTokens: 1000 });
    small.report({ promptTokens: 10_000, completionTokens: 20_000 });
    small.release();
    expect(spentOf(detector, 'a')).toEqual([['a', expect.closeTo(0.05), 0]]);
    const large = now('a', { model: 'large', inputTokens: 1000, maxOutputTokens: 1000 });
    large.report({ promptTokens: 10_000, completionTokens: 20_000 });
    large.release();
    expect(spentOf(detector, 'a')).toEqual([['a', expect.closeTo(0.75), 0]]);
  });

  it('takes the dearest price for a model without one, and says so once', () => {
    const written = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const { now, detector } = world(inMoney);
    for (const model of ['new', 'newer']) now('a', { model, inputTokens: 1e4, maxOutputTokens: 0 }).release();
    expect(spentOf(detector, 'a')).toEqual([['a', expect.closeTo(0.2), 0]]);
    expect(written).toHaveBeenCalledTimes(1);
    expect(written.mock.calls[0]?.join(' ')).toContain('the model "new" has no price, and costs as the dearest');
  });

  it('keeps the estimate where usage never comes', () => {
    const { now, detector } = world(inMoney);
    now('a', { model: 'large', inputTokens: 1000, maxOutputTokens: 1000 }).release();
    expect(spentOf(detector, 'a')).toEqual([['a', expect.closeTo(0.04), 0]]);
  });
});

describe('many senders', () => {
  it('are told to exporters where most is used, a hundred at most', () => {
    const { flow, now, clock } = world(byFlow({ unit: 'requests', limit: 400, per: '1h' }));
    for (let sender = 1; sender <= 250; sender++) for (let i = 0; i < sender; i++) now(`sender-${sender}`).release();
    const told = flow.figures().quotas?.quotas ?? [];
    expect(told).toHaveLength(100);
    expect(told[0]).toMatchObject({ group: 'tenant sender-250', owner: 'sender-250', used: 250, limit: 400 });
    expect(told[99]).toMatchObject({ owner: 'sender-151', used: 151 });
    clock.advance(hourMs);
    now('sender-3').release();
    expect(flow.figures().quotas?.quotas[0]).toMatchObject({ owner: 'sender-3', used: 1 });
  });

  it('that end without a report are counted', () => {
    const { flow, now } = world(byFlow({ unit: 'tokens', limit: 1_000 }));
    now('a').release();
    const told = now('a');
    told.report({ promptTokens: 4, completionTokens: 2 });
    told.release();
    expect(flow.figures().quotas).toMatchObject({ unreported: 1, refusals: 0 });
  });

  it('are remembered while they use something, and are forgotten after that without a pause', () => {
    const { now, detector, clock } = world(byFlow({ unit: 'requests', limit: 5, per: '1s' }));
    const groups = () => Reflect.get(Reflect.get(detector, 'table'), 'groups').size;
    for (let i = 0; i < 30_000; i++) {
      now(`tenant ${i}`).release();
      if (i % 10 === 0) clock.advance(1);
    }
    // 2,000 of them use something; about as many again are not looked at yet.
    expect(groups()).toBeLessThanOrEqual(10_000 + 1);
    expect(spentOf(detector, 'tenant 29999')).toEqual([['tenant 29999', 1, 0]]);
  });
});

describe('senders without budget', () => {
  it('are not asked by walks, until their budgets have room', async () => {
    const { ask, now, flow, clock, detector } = world(byFlow({ unit: 'requests', limit: 1, per: '60s' }));
    for (let i = 0; i < 1000; i++) {
      now(`tenant ${i}`).release();
      void ask(`tenant ${i}`, { ttlMs: 120_000 });
    }
    await turns();
    const asked = vi.spyOn(detector as Budgets & { obstacle(): unknown }, 'obstacle');
    for (let i = 0; i < 100; i++) now(`other ${i}`).release();
    expect(asked.mock.calls.length).toBeLessThan(1000);
    expect(flow.stats().waiting).toBe(1000);
    audit(flow);
    clock.advance(60_000);
    await turns();
    expect(flow.stats().waiting).toBe(0);
  });
});

describe('the options of budgets', () => {
  const one = { unit: 'tokens', limit: 1 } as const;
  it.each<[object, string]>([
    [{ limits: [] }, 'budgets[0].limits: expected a limit at least; got []'],
    [{ limits: [{ ...one, per: 'year' }] }, 'or one of second, minute, hour, day, week, month; got "year"'],
    [{ limits: [{ ...one, zone: 'UTC' }] }, 'expected no zone, because only day, week and month have one'],
    [
      { limits: [{ ...one, per: 'day', zone: 'Mars' }] },
      'budgets[0].limits[0].zone: expected a time zone, such as "Europe/Berlin"; got "Mars"',
    ],
    [{ limits: [{ unit: 'cost', limit: 1 }] }, 'prices: expected prices by model, because a budget is in cost'],
    [{ is: 5, limits: [one] }, 'budgets[0].is: expected a function of a name; got 5'],
  ])('are checked: %o', (budget, message) => {
    expect(() => budgets({ budgets: [budget as BudgetOptions] })).toThrow(message);
  });

  it('take words for spans, and prices by model', () => {
    const per = (span: string) => budgets(byFlow({ ...one, per: span })).budgetsOf('a', 0)[0]?.perMs;
    expect(['second', 'minute', 'hour', '90s', 'week'].map(per)).toEqual([1000, 60_000, hourMs, 90_000, 168 * hourMs]);
    const priced = (prices: object) => () => budgets({ ...byFlow(one), prices: prices as PricesByModel });
    expect(priced({ m: { input: 1, output: -1 } })).toThrow('prices.m.output');
    expect(priced({ m: { input: 1 } })).toThrow('prices.m.output');
    expect(priced({ m: { input: 1, output: 2, cachedInput: 0.1 } })).not.toThrow();
  });
});

it("is the only constraint that gets a part of the engine: a host's own is asked by the contract alone", () => {
  const begin = vi.fn();
  const mine = { type: 'mine', begin, withRoomFor: (endpoints: readonly EndpointView[]) => endpoints };
  const { flow } = makeFlow({ constraints: [mine as unknown as Constraint] });
  leaseOf(flow.tryEnqueue({ byteSize: 1 }, key('a'))).release();
  expect(begin).not.toHaveBeenCalled();
});
