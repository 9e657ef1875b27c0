import { describe, expect, it, vi } from 'vitest';
import {
  type Constraint,
  circuitBreaker,
  concurrencyDetector,
  EndpointPool,
  edf,
  explainWait,
  FlowConfigError,
  type FlowController,
  type FlowControllerOptions,
  type FlowRequest,
  type Lease,
  mostBudgetLeft,
  type Outcome,
  quotaDetector,
  sessionLimit,
} from '../../../src/index.js';
import type { ManualClock } from '../../../src/testing/index.js';
import type { QuotaDetector, QuotaDetectorOptions } from '../../../src/types/index.js';
import { dropOf, key, leaseOf, makeFlow, turns } from '../../support/flow.js';

interface Asked extends FlowRequest {
  readonly model?: string;
  readonly inputTokens?: number;
  readonly maxOutputTokens?: number;
}

interface World {
  readonly detector: QuotaDetector;
  readonly flow: FlowController;
  readonly clock: ManualClock;
  readonly pool: EndpointPool;
}

function world(
  options: QuotaDetectorOptions,
  servers: readonly string[] = [],
  rest: Partial<FlowControllerOptions> = {},
): World {
  const detector = quotaDetector({ random: () => 0, travel: 0, ...options });
  const pool = new EndpointPool();
  for (const name of servers) pool.add(name, { labels: { account: name.slice(0, 1) } });
  const { flow, clock } = makeFlow({
    constraints: [detector],
    defaultRequestTtl: 0,
    ...(servers.length > 0 && { pool }),
    ...rest,
  });
  return { detector, flow, clock, pool };
}

const perMinute = (unit: 'requests' | 'tokens' | 'inputTokens' | 'outputTokens', limit: number) =>
  ({ groups: [{ quotas: [{ unit, limit }] }] }) satisfies QuotaDetectorOptions;

function ask(flow: FlowController, request: Partial<Asked> = {}, priority = 0): Promise<Outcome> {
  return flow.enqueue({ byteSize: 1, ...request } as FlowRequest, key('a', priority));
}

function now(flow: FlowController, request: Partial<Asked> = {}): Lease {
  return leaseOf(flow.tryEnqueue({ byteSize: 1, ...request } as FlowRequest, key()));
}

function figuresOf({ detector, clock }: World): Record<string, unknown>[] {
  return detector
    .quotas(clock.now())
    .quotas.map(({ group, unit, limit, used, reserved }) => ({ group, unit, limit, used, reserved }));
}

const remaining = (left: number, resetIn = '60s', limit = 10): Headers =>
  new Headers({
    'x-ratelimit-limit-requests': String(limit),
    'x-ratelimit-remaining-requests': String(left),
    'x-ratelimit-reset-requests': resetIn,
  });

describe('a quota', () => {
  it('lets a burst of its limit go, and wakes the next one at the instant at which it fits', async () => {
    const { flow, clock, detector } = world(perMinute('requests', 60));
    for (let i = 0; i < 60; i++) now(flow).release();
    const dispatched: number[] = [];
    for (let i = 0; i < 3; i++) void ask(flow).then(() => dispatched.push(clock.now()));
    const asked = vi.spyOn(detector, 'withRoomFor');
    clock.advance(900);
    // Nobody asks before there is room.
    expect(asked).not.toHaveBeenCalled();
    for (let i = 0; i < 40; i++) {
      clock.advance(100);
      await turns();
    }
    expect(dispatched).toEqual([1000, 2000, 3000]);
  });

  it.each([
    ['a circuit breaker', () => circuitBreaker()],
    ['a limit of sessions', () => sessionLimit({ maxSessions: 5 })],
    ['a limit of incoming tokens', () => concurrencyDetector({ concurrencyMode: 'tokens', countIncoming: true })],
  ])('wakes a request beside %s that would let it pass', async (_, beside) => {
    for (const quotasFirst of [true, false]) {
      const [quotas, other] = [quotaDetector({ ...perMinute('requests', 60), travel: 0 }), beside() as Constraint];
      const { flow, clock } = makeFlow({
        constraints: quotasFirst ? [quotas, other] : [other, quotas],
        defaultRequestTtl: '5s',
      });
      for (let i = 0; i < 60; i++) now(flow).release();
      const waiting = { byteSize: 1 };
      const outcome = flow.enqueue(waiting, key());
      expect(explainWait(flow, waiting)?.text).toContain('1 request of');
      clock.advance(1000);
      expect(await outcome).toMatchObject({ type: 'Dispatched', queuedMs: 1000 });
    }
  });

  it.each(['gcra', 'fixed', 'sliding'] as const)(
    'of a %s window has one timer, whatever waits, and it runs only when somebody goes',
    async (window) => {
      const groups: NonNullable<QuotaDetectorOptions['groups']> = [
        { by: 'endpoint', quotas: [{ unit: 'requests', limit: 6, window }] },
      ];
      const bands = [{ priority: 1 }, { priority: 0 }, { priority: -1 }];
      const rest = { bands, defaultRequestTtl: '1h' } as const;
      const { flow, clock } = world({ groups }, ['a', 'b', 'c'], rest);
      const set = vi.spyOn(clock, 'setTimeout');
      const wentAt = new Set<number>();
      for (let i = 0; i < 90; i++) void ask(flow, {}, (i % 3) - 1).then(() => wentAt.add(clock.now()));
      await turns();
      // The other one is that of the times to live.
      expect(clock.pendingTimers).toBe(2);
      const [setBefore, wentBefore] = [set.mock.calls.length, wentAt.size];
      for (let i = 0; i < 180; i++) {
        clock.advance(1000);
        await turns();
        expect(clock.pendingTimers).toBe(2);
      }
      expect(flow.stats().waiting).toBeLessThan(60);
      expect(set.mock.calls.length - setBefore).toBe(wentAt.size - wentBefore);
      await flow.close();
    },
  );

  it('tells the span that was configured, however long its window is taken for', () => {
    for (const window of ['gcra', 'fixed', 'sliding'] as const) {
      const { detector, flow, clock } = world({
        travel: 250,
        groups: [{ quotas: [{ unit: 'requests', limit: 10, window }] }],
      });
      now(flow);
      expect(detector.quotas(clock.now()).quotas).toMatchObject([{ perMs: 60_000, limit: 10, reserved: 1 }]);
    }
  });

  it('reserves in the step that decides, so that two requests never pass on one balance', () => {
    const { flow } = world(perMinute('tokens', 100));
    now(flow, { tokens: 60 });
    expect(flow.tryEnqueue({ byteSize: 1, tokens: 60 }, key())).toBeUndefined();
    now(flow, { tokens: 40 });
  });

  it('is what explain names: how much of what is missing, of whom, and when there is room', () => {
    const w = world({ groups: [{ name: 'account A', quotas: [{ unit: 'inputTokens', limit: 18_000 }] }] });
    now(w.flow, { inputTokens: 17_820 });
    void ask(w.flow, { inputTokens: 1200 });
    expect(explainWait(w.flow, (request) => request.byteSize === 1)?.text).toMatch(
      /^band 0 waits for 1,200 input tokens of account A, in 3\.4 s/,
    );
  });

  it('takes from every quota of a group at once, or from none', () => {
    const quotas = [
      { unit: 'requests', limit: 10 },
      { unit: 'tokens', limit: 100 },
    ] as const;
    const w = world({ groups: [{ quotas: [...quotas] }] });
    now(w.flow, { tokens: 90 });
    expect(w.flow.tryEnqueue({ byteSize: 1, tokens: 20 }, key())).toBeUndefined();
    expect(figuresOf(w)).toMatchObject([{ reserved: 1 }, { reserved: 90 }]);
  });

  it('settles with what was reported, gives the rest back at once, and lets the next one go', async () => {
    const w = world(perMinute('tokens', 1000));
    const lease = now(w.flow, { tokens: 1000 });
    const next = ask(w.flow, { tokens: 700 });
    lease.report({ promptTokens: 100, completionTokens: 200 });
    lease.release();
    await turns();
    expect(w.clock.now()).toBe(0);
    expect(leaseOf(await next).isReleased).toBe(false);
    expect(figuresOf(w)).toMatchObject([{ used: 300, reserved: 700 }]);
  });

  it('charges at once what a request consumes beyond its estimate', () => {
    const w = world(perMinute('tokens', 1000));
    const lease = now(w.flow, { tokens: 100 });
    lease.report({ promptTokens: 400, completionTokens: 300 });
    expect(figuresOf(w)).toMatchObject([{ reserved: 700 }]);
    lease.report({ promptTokens: 400, completionTokens: 300 });
    expect(figuresOf(w)).toMatchObject([{ reserved: 700 }]);
  });

  it('lets the estimate stand without a report, and counts that', () => {
    const w = world(perMinute('tokens', 1000));
    now(w.flow, { tokens: 100 }).release();
    expect(figuresOf(w)).toMatchObject([{ used: 100, reserved: 0 }]);
    expect(w.detector.quotas(0)).toMatchObject({ unreported: 1 });
  });

  it('gives everything back when nothing was sent', () => {
    const w = world(perMinute('requests', 1));
    const lease = now(w.flow);
    lease.unsent();
    lease.release();
    expect(figuresOf(w)).toMatchObject([{ used: 0, reserved: 0 }]);
    now(w.flow);
  });

  it('ignores a report beyond 2^53, and counts it', () => {
    const w = world(perMinute('tokens', 1000));
    const lease = now(w.flow, { tokens: 100 });
    lease.report({ promptTokens: 2 ** 60 });
    lease.release();
    expect(figuresOf(w)).toMatchObject([{ used: 100 }]);
    expect(w.detector.quotas(0)).toMatchObject({ ignoredReports: 1 });
  });

  it('runs a request larger than the burst when all of it is free, and leaves a debt', async () => {
    const { flow, clock } = world(perMinute('tokens', 100));
    now(flow, { tokens: 50 });
    const large = ask(flow, { tokens: 250 });
    clock.advance(29_999);
    await turns();
    expect(flow.stats().waiting).toBe(1);
    clock.advance(1);
    expect((await large).type).toBe('Dispatched');
    const next = ask(flow, { tokens: 100 });
    clock.advance(149_000);
    await turns();
    expect(flow.stats().waiting).toBe(1);
    clock.advance(1001);
    expect((await next).type).toBe('Dispatched');
  });

  it('holds back what follows a request of far more than all that a sliding window can count, and settles it', async () => {
    const w = world({ groups: [{ quotas: [{ unit: 'tokens', limit: 10, window: 'sliding' }] }] });
    const lease = now(w.flow, { tokens: 6000 });
    expect(w.flow.tryEnqueue({ byteSize: 1, tokens: 1 }, key())).toBeUndefined();
    const next = ask(w.flow, { tokens: 3 });
    lease.report({ promptTokens: 5, completionTokens: 2 });
    lease.release();
    expect((await next).type).toBe('Dispatched');
    expect(figuresOf(w)).toMatchObject([{ used: 7, reserved: 3 }]);
  });

  it('reads below full however much is used, because it closes for requests and not for all', () => {
    const { flow, detector, pool } = world(perMinute('tokens', 100), ['k1']);
    now(flow, { tokens: 100 });
    expect(detector.fullness?.(pool.endpoints, 0)).toBeLessThan(1);
    now(flow, { tokens: 0 });
  });

  it('moves with the lease: where the request went in the end is charged', () => {
    const w = world({ groups: [{ by: 'endpoint', quotas: [{ unit: 'requests', limit: 5 }] }] }, ['k1', 'k2']);
    const lease = now(w.flow);
    const [from, to] = lease.endpoint?.id === 'k1' ? ['k1', 'k2'] : ['k2', 'k1'];
    lease.bind(to);
    expect(figuresOf(w)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ group: from, used: 0, reserved: 0 }),
        expect.objectContaining({ group: to, used: 0, reserved: 1 }),
      ]),
    );
    lease.release();
    expect(figuresOf(w).map(({ used, reserved }) => [used, reserved])).toEqual(
      expect.arrayContaining([
        [0, 0],
        [1, 0],
      ]),
    );
  });
});

describe('an estimate', () => {
  const quotas = [
    { unit: 'inputTokens', limit: 1e6 },
    { unit: 'outputTokens', limit: 1e6 },
    { unit: 'tokens', limit: 1e6 },
    { unit: 'cost', limit: 100 },
  ] as const;
  const prices = { input: 2, output: 10 };
  const reserved = (w: World): unknown[] => figuresOf(w).map((figure) => figure.reserved);

  it('is by max_tokens unless told otherwise', () => {
    const w = world({ groups: [{ quotas: [...quotas] }], prices });
    now(w.flow, { inputTokens: 500, maxOutputTokens: 1000 });
    expect(reserved(w)).toEqual([500, 1000, 1500, 0.011]);
  });

  it('learns how long answers of a model to a tenant are', () => {
    const w = world({ groups: [{ quotas: [...quotas] }], output: 'average' });
    const lease = now(w.flow, { inputTokens: 500, maxOutputTokens: 1000 });
    expect(reserved(w)).toEqual([500, 1000, 1500, 0]);
    lease.report({ promptTokens: 450, completionTokens: 80 });
    lease.release();
    now(w.flow, { inputTokens: 500, maxOutputTokens: 1000 });
    expect(reserved(w)).toEqual([500, 80, 580, 0]);
  });

  it('has a declared default for what nobody knows', () => {
    const w = world({ groups: [{ quotas: [...quotas] }], defaultOutputTokens: 300 });
    now(w.flow, { tokens: 70 });
    expect(reserved(w)).toEqual([70, 300, 70, 0]);
  });

  it("may be the host's own", () => {
    const w = world({
      groups: [{ quotas: [...quotas] }],
      estimate: () => ({ inputTokens: 1, outputTokens: 2, cost: 3 }),
    });
    now(w.flow);
    expect(reserved(w)).toEqual([1, 2, 3, 3]);
  });

  it('that is no number counts as none', () => {
    const w = world({ groups: [{ quotas: [...quotas] }], defaultOutputTokens: 5 });
    now(w.flow, { inputTokens: Number.NaN, maxOutputTokens: -1, tokens: 7 });
    expect(reserved(w)).toEqual([7, 5, 7, 0]);
  });
});

describe('groups', () => {
  it('share a quota between the endpoints of an account', async () => {
    const w = world({ groups: [{ by: 'label', label: 'account', quotas: [{ unit: 'requests', limit: 2 }] }] }, [
      'a1',
      'a2',
      'b1',
    ]);
    const leases = Array.from({ length: 4 }, () => now(w.flow));
    const byAccount = leases.map(({ endpoint }) => endpoint?.labels.account).sort();
    expect(byAccount).toEqual(['a', 'a', 'b', 'b']);
    expect(w.flow.tryEnqueue({ byteSize: 1 }, key())).toBeUndefined();
    const waiting = ask(w.flow);
    expect(explainWait(w.flow, (request) => request.byteSize === 1)?.text).toMatch(
      /^band 0 waits for 1 request of account [ab], in 30\.0 s/,
    );
    w.clock.advance(30_000);
    expect((await waiting).type).toBe('Dispatched');
  });

  it('count a family of models, and each model by itself', () => {
    const w = world({
      groups: [
        { models: ['gpt-4o*'], quotas: [{ unit: 'requests', limit: 1 }] },
        { perModel: true, quotas: [{ unit: 'requests', limit: 1 }] },
      ],
    });
    now(w.flow, { model: 'gpt-4o-mini' });
    expect(w.flow.tryEnqueue({ byteSize: 1, model: 'gpt-4o' } as FlowRequest, key())).toBeUndefined();
    now(w.flow, { model: 'o3' });
    expect(w.flow.tryEnqueue({ byteSize: 1, model: 'o3' } as FlowRequest, key())).toBeUndefined();
    expect(figuresOf(w).map(({ group }) => group)).toEqual([
      'the pool for gpt-4o*',
      'the pool for gpt-4o-mini',
      'the pool for gpt-4o',
      'the pool for o3',
    ]);
  });

  it('hold back only the flow whose request is too large, where placement says so', async () => {
    const { flow } = world(perMinute('tokens', 100), ['k1'], { holBlocking: 'flow' });
    now(flow, { tokens: 50 });
    void flow.enqueue({ byteSize: 1, tokens: 80 }, key('large'));
    const small = flow.enqueue({ byteSize: 1, tokens: 40 }, key('small'));
    expect((await small).type).toBe('Dispatched');
    expect(flow.stats().waiting).toBe(1);
  });

  it('keep the order of a band where a request without room holds back all behind it', async () => {
    const { flow, clock } = world(perMinute('tokens', 100));
    now(flow, { tokens: 50 });
    const order: string[] = [];
    void flow.enqueue({ byteSize: 1, tokens: 80 }, key('large')).then(() => order.push('large'));
    void flow.enqueue({ byteSize: 1, tokens: 40 }, key('small')).then(() => order.push('small'));
    clock.advance(18_000);
    await turns();
    expect(order).toEqual(['large']);
    clock.advance(24_000);
    await turns();
    expect(order).toEqual(['large', 'small']);
  });

  it('let go at once what fits, where ordering puts it before the request that has no room', async () => {
    const { flow } = world(perMinute('tokens', 100), [], { defaultBand: { ordering: edf() } });
    now(flow, { tokens: 50 });
    void flow.enqueue({ byteSize: 1, tokens: 80 }, key('a'));
    void flow.enqueue({ byteSize: 1, tokens: 40, ttlMs: 1000 }, key('a'));
    expect(flow.stats()).toMatchObject({ dispatched: 2, waiting: 1 });
  });

  it('let the picker choose by what is left', () => {
    const detector = quotaDetector({ groups: [{ by: 'endpoint', quotas: [{ unit: 'tokens', limit: 100 }] }] });
    const pool = new EndpointPool();
    for (const id of ['k1', 'k2']) pool.add(id);
    const { flow } = makeFlow({ constraints: [detector], pool, endpointPicker: mostBudgetLeft(detector) });
    const ids = [60, 10, 10, 10, 40].map((tokens) => now(flow, { tokens }).endpoint?.id);
    const [first, other] = ids[0] === 'k1' ? ['k1', 'k2'] : ['k2', 'k1'];
    expect(ids).toEqual([first, other, other, other, other]);
  });

  it('of subscriptions, which tell a share alone, place requests where the least is used, until the window is reset', async () => {
    const detector = quotaDetector({ wallClock: () => 0, travel: 0 });
    const pool = new EndpointPool();
    for (const id of ['k1', 'k2']) pool.add(id);
    const { flow, clock } = makeFlow({ constraints: [detector], pool, endpointPicker: mostBudgetLeft(detector) });
    const used: Record<string, string> = { k1: '0.2', k2: '0.6' };
    const next = (): string => {
      const lease = now(flow);
      const { id } = lease.endpoint!;
      const [name, resetAt] = ['anthropic-ratelimit-unified-5h', '1970-01-01T00:00:20.000Z'];
      const headers = { [`${name}-utilization`]: used[id]!, [`${name}-reset`]: resetAt };
      lease.answered({ status: 200, headers });
      lease.release();
      return id;
    };
    expect(new Set([next(), next()])).toEqual(new Set(['k1', 'k2']));
    expect([next(), next(), next()]).toEqual(['k1', 'k1', 'k1']);
    used.k1 = '0.9';
    expect([next(), next(), next()]).toEqual(['k1', 'k2', 'k2']);
    clock.advance(20_000);
    expect(detector.budgetLeft(pool.endpoints[0]!, { request: {} } as never, clock.now())).toBe(1);
  });

  it('are judged beside seats', () => {
    const constraints = [quotaDetector({ ...perMinute('tokens', 100), travel: 0 })];
    const { flow } = makeFlow({ maxConcurrency: 2, saturationDetector: undefined, constraints });
    now(flow, { tokens: 90 });
    expect(flow.tryEnqueue({ byteSize: 1, tokens: 20 }, key())).toBeUndefined();
    now(flow, { tokens: 10 });
    expect(flow.tryEnqueue({ byteSize: 1, tokens: 0 }, key())).toBeUndefined();
    expect(flow.figures().quotas?.quotas).toMatchObject([{ unit: 'tokens', reserved: 100 }]);
  });

  it('are shared by two controllers with one detector, each of which wakes when the other gives back', async () => {
    const detector = quotaDetector({ ...perMinute('tokens', 100), travel: 0 });
    const [a, b] = [makeFlow({ constraints: [detector] }), makeFlow({ constraints: [detector] })];
    const lease = now(a.flow, { tokens: 100 });
    const other = b.flow.enqueue({ byteSize: 1, tokens: 60 }, key());
    lease.unsent();
    lease.release();
    expect((await other).type).toBe('Dispatched');
  });
});

describe('what cannot be served in time', () => {
  it('is told at once, with the true time to come back', async () => {
    const { flow } = world(perMinute('requests', 1));
    now(flow).release();
    const drop = dropOf(await flow.enqueue({ byteSize: 1, ttlMs: 59_000 }, key()));
    expect(drop).toMatchObject({ type: 'RejectedCapacity', reason: 'over-quota', retryAfterMs: 60_000, queuedMs: 0 });
    expect(drop.explanation?.text).toBe('band 0: there is no room in its time for 1 request of the pool');
    const waiting = flow.enqueue({ byteSize: 1, ttlMs: 61_000 }, key());
    expect(flow.stats().waiting).toBe(1);
    void waiting;
  });

  it('waits all the same when what is under way may come back before', () => {
    const { flow } = world(perMinute('tokens', 100));
    now(flow, { tokens: 100 });
    void flow.enqueue({ byteSize: 1, tokens: 50, ttlMs: 1000 }, key());
    expect(flow.stats().waiting).toBe(1);
  });

  it('waits to the end of its time where nobody wants to be told', async () => {
    const { flow, clock } = world({ ...perMinute('requests', 1), rejectInfeasible: false });
    now(flow).release();
    const outcome = flow.enqueue({ byteSize: 1, ttlMs: 1000 }, key());
    clock.advance(1000);
    expect(dropOf(await outcome).reason).toBe('ttl-expired');
  });

  it('is told while it waits, when a server wants nothing for hours', async () => {
    const { flow } = world({ groups: [{}] });
    const lease = now(flow);
    const waiting = [1, 2, 3].map(() => flow.enqueue({ byteSize: 1, ttlMs: 60_000 }, key()));
    lease.answered({ status: 429, headers: { 'retry-after': '7200' } });
    const drops = (await Promise.all(waiting)).map(dropOf);
    expect(drops.map(({ type, reason, retryAfterMs }) => [type, reason, retryAfterMs])).toEqual(
      Array(3).fill(['EvictedOther', 'over-quota', 7_200_000]),
    );
  });
});

describe('learning from answers', () => {
  it('begins with one request, and then knows the quota', async () => {
    const w = world({}, ['k1']);
    const first = now(w.flow);
    const others = Array.from({ length: 20 }, () => ask(w.flow));
    expect(w.flow.stats()).toMatchObject({ inFlight: 1, waiting: 20 });
    first.answered({ status: 200, headers: remaining(9) });
    await turns();
    expect(w.flow.stats()).toMatchObject({ inFlight: 10, waiting: 11 });
    w.clock.advance(60_000);
    await turns();
    expect(w.flow.stats()).toMatchObject({ inFlight: 20, waiting: 1 });
    void others;
  });

  it('drops nobody by an end of a window that no answer has told yet', async () => {
    const w = world({}, ['k1'], { defaultRequestTtl: 30_000 });
    const first = now(w.flow);
    const others = [1, 2].map(() => ask(w.flow));
    first.answered({ status: 200, headers: remaining(0, '2s', 1) });
    w.clock.advance(2000);
    const second = leaseOf(await (others[0] as Promise<Outcome>));
    expect(w.flow.stats()).toMatchObject({ waiting: 1, rejected: 0, evicted: 0 });
    second.answered({ status: 200, headers: remaining(0, '2s', 1) });
    w.clock.advance(2000);
    expect((await (others[1] as Promise<Outcome>)).type).toBe('Dispatched');
  });

  it('lets everything go when the first answer tells of no quota, and invents none', () => {
    const w = world({}, ['k1']);
    now(w.flow).answered({ status: 200, headers: {} });
    for (let i = 0; i < 50; i++) now(w.flow);
    expect(w.detector.quotas(0).quotas).toEqual([]);
  });

  it('lets everything go once a host has ended a request without a word of its answer', () => {
    const w = world({}, ['k1']);
    now(w.flow).release();
    for (let i = 0; i < 50; i++) now(w.flow);
  });

  it('lets another one go ahead when the first brings no answer for ten seconds', async () => {
    const w = world({}, ['k1']);
    now(w.flow);
    const second = ask(w.flow);
    w.clock.advance(10_000);
    expect((await second).type).toBe('Dispatched');
  });

  it('believes a lower remaining at once, and a higher one not', () => {
    const w = world({ groups: [{ quotas: [{ unit: 'requests', limit: 10 }] }] });
    const lease = now(w.flow);
    lease.answered({ status: 200, headers: remaining(3) });
    expect(figuresOf(w)).toMatchObject([{ used: 6, reserved: 1 }]);
    lease.answered({ status: 200, headers: remaining(8) });
    expect(figuresOf(w)).toMatchObject([{ used: 6, reserved: 1 }]);
  });

  it('takes over a changed limit, but none above what is configured', () => {
    const w = world({ groups: [{ quotas: [{ unit: 'requests', limit: 10 }] }] });
    const lease = now(w.flow);
    for (const [told, limit] of [
      [6, 6],
      [8, 8],
      [500, 10],
    ] as const) {
      lease.answered({ status: 200, headers: { 'x-ratelimit-limit-requests': String(told) } });
      expect(figuresOf(w)).toMatchObject([{ limit }]);
    }
  });

  it('never touches another group', () => {
    const w = world({ groups: [{ by: 'endpoint', quotas: [{ unit: 'requests', limit: 10 }] }] }, ['k1', 'k2']);
    const lease = now(w.flow);
    now(w.flow);
    lease.answered({ status: 200, headers: remaining(0) });
    expect(figuresOf(w)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ group: lease.endpoint?.id, used: 9 }),
        expect.objectContaining({ group: lease.endpoint?.id === 'k1' ? 'k2' : 'k1', used: 0 }),
      ]),
    );
  });

  it('can be turned off', () => {
    const w = world({ groups: [{ learn: false, quotas: [{ unit: 'requests', limit: 10 }] }] });
    now(w.flow).answered({ status: 200, headers: remaining(0) });
    expect(figuresOf(w)).toMatchObject([{ used: 0, reserved: 1 }]);
  });

  it.each([
    ['negative', { 'x-ratelimit-limit-requests': '10', 'x-ratelimit-remaining-requests': '-4' }],
    ['no number', { 'x-ratelimit-limit-requests': '10', 'x-ratelimit-remaining-requests': 'NaN' }],
    ['a limit of 0', { 'x-ratelimit-limit-requests': '0' }],
    [
      'from 1970',
      { 'anthropic-ratelimit-requests-limit': '10', 'anthropic-ratelimit-requests-reset': '1970-01-01T00:00:00Z' },
    ],
    [
      'from 2100',
      { 'anthropic-ratelimit-requests-limit': '10', 'anthropic-ratelimit-requests-reset': '2100-01-01T00:00:00Z' },
    ],
  ])('ignores what cannot be right, and counts it: %s', (_, headers) => {
    const w = world({ groups: [{ quotas: [{ unit: 'requests', limit: 10 }] }] });
    now(w.flow).answered({ status: 200, headers: headers as Record<string, string> });
    expect(figuresOf(w)).toMatchObject([{ limit: 10, used: 0, reserved: 1 }]);
    expect(w.detector.quotas(0).ignoredFigures).toBe(1);
  });
});

describe('a provider that lies', () => {
  const lies = {
    'x-ratelimit-limit-requests': '0',
    'x-ratelimit-remaining-requests': '-5',
    'x-ratelimit-reset-requests': 'NaN',
    'anthropic-ratelimit-tokens-limit': '9007199254740993',
    'anthropic-ratelimit-tokens-remaining': 'Infinity',
    'anthropic-ratelimit-tokens-reset': '2100-01-01T00:00:00Z',
    'anthropic-ratelimit-requests-reset': '1970-01-01T00:00:00Z',
    'retry-after': '-3',
  };

  it.each([
    ['learnt', {}],
    ['configured', perMinute('requests', 10)],
  ])('changes no quota, is counted, and is written down once: %s', async (_, options) => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const { detector, flow, clock } = world(options);
    for (let i = 0; i < 3; i++) {
      const lease = now(flow);
      lease.answered({ status: 200, headers: lies });
      lease.release();
    }
    const { quotas, ignoredFigures } = detector.quotas(clock.now());
    expect(quotas.map(({ limit, used }) => [limit, used])).toEqual('groups' in options ? [[10, 3]] : []);
    expect(ignoredFigures).toBe(3 * 7);
    expect(warn.mock.calls).toEqual([
      [expect.stringMatching(/^headgate: a figure that answers told of .+ cannot be right.*"0"/)],
    ]);
  });

  it('about when to come back leaves the rest at its default, and nobody waits longer', () => {
    vi.spyOn(console, 'warn').mockImplementation(() => {});
    const { detector, flow, clock } = world(perMinute('requests', 10));
    now(flow).answered({ status: 429, headers: lies });
    expect(detector.quotas(clock.now())).toMatchObject({ refusals: 1, quotas: [{ restsForMs: 5000 }] });
  });

  it('about usage has the estimate stand, is counted, and is written down once', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const { detector, flow, clock } = world(perMinute('tokens', 1000));
    for (let i = 0; i < 2; i++) {
      const lease = now(flow, { tokens: 100 });
      lease.report({ promptTokens: 2 ** 60, completionTokens: 1 });
      lease.release();
    }
    expect(detector.quotas(clock.now())).toMatchObject({ ignoredReports: 2, quotas: [{ used: 200, reserved: 0 }] });
    expect(warn.mock.calls).toEqual([
      [expect.stringMatching(/^headgate: a report of usage cannot be right, and the estimate stands/)],
    ]);
  });

  it('and tells usage twice is charged the last figure, once', () => {
    const { detector, flow, clock } = world(perMinute('tokens', 1000));
    const lease = now(flow, { tokens: 100 });
    for (let i = 0; i < 2; i++) lease.report({ promptTokens: 60, completionTokens: 20 });
    lease.release();
    expect(detector.quotas(clock.now())).toMatchObject({ ignoredReports: 0, quotas: [{ used: 80, reserved: 0 }] });
  });
});

describe('a server that puts requests off', () => {
  it('gets nothing until the instant that it told, then one request, then all', async () => {
    const w = world({ groups: [{ quotas: [{ unit: 'requests', limit: 100 }] }] });
    const lease = now(w.flow);
    for (let i = 0; i < 5; i++) void ask(w.flow);
    expect(w.flow.stats().inFlight).toBe(6);
    lease.answered({ status: 429, headers: { 'retry-after-ms': '1500' } });
    const granted: Lease[] = [];
    w.flow.on('dispatched', ({ lease: next }) => granted.push(next));
    for (let i = 0; i < 5; i++) void ask(w.flow);
    w.clock.advance(1499);
    await turns();
    expect(granted).toHaveLength(0);
    w.clock.advance(1);
    await turns();
    expect(granted).toHaveLength(1);
    granted[0]?.answered({ status: 200, headers: {} });
    await turns();
    expect(granted).toHaveLength(5);
  });

  it('rests for 5 s where it does not say, twice as long each time that goes on, up to the most', async () => {
    const w = world({ groups: [{}], maxCooldown: '30s' });
    const rests: number[] = [];
    for (let i = 0; i < 5; i++) {
      const lease = leaseOf(await ask(w.flow));
      lease.answered({ status: 529, headers: {} });
      lease.release();
      const begunAtMs = w.clock.now();
      const next = ask(w.flow);
      while (w.flow.stats().waiting > 0) w.clock.advance(100);
      rests.push(w.clock.now() - begunAtMs);
      const probe = leaseOf(await next);
      probe.unsent();
      probe.release();
    }
    expect(rests).toEqual([5000, 10_000, 20_000, 30_000, 30_000]);
  });

  it('is not given a shorter rest by an earlier answer, and requests that went together count once', () => {
    const w = world({ groups: [{ quotas: [{ unit: 'requests', limit: 100 }] }] });
    const [a, b, c] = [now(w.flow), now(w.flow), now(w.flow)];
    a.answered({ status: 429, headers: { 'retry-after': '60' } });
    b.answered({ status: 429, headers: { 'retry-after': '2' } });
    c.answered({ status: 429, headers: {} });
    expect(w.detector.quotas(0)).toMatchObject({ refusals: 3, quotas: [{ restsForMs: 60_000 }] });
  });

  it('gets the request at its old place, or another group gets it', async () => {
    const w = world({ groups: [{ by: 'endpoint', quotas: [{ unit: 'requests', limit: 100 }] }] }, ['k1', 'k2']);
    const lease = now(w.flow);
    lease.answered({ status: 429, headers: { 'retry-after': '60' } });
    const again = leaseOf(await lease.requeue());
    expect(again.endpoint?.id).not.toBe(lease.endpoint?.id);
  });

  it('that does so for ever makes nobody wait for ever', async () => {
    const w = world({ groups: [{}] }, [], { defaultRequestTtl: 60_000 });
    let lease = leaseOf(await ask(w.flow));
    let outcome: Outcome | undefined;
    for (let i = 0; i < 100 && outcome === undefined; i++) {
      lease.answered({ status: 429, headers: {} });
      const next = lease.requeue();
      for (let waitedMs = 0; waitedMs < 61_000 && w.flow.stats().waiting > 0; waitedMs += 1000) w.clock.advance(1000);
      const got = await next;
      if (got.type === 'Dispatched') lease = got.lease;
      else outcome = got;
    }
    expect(outcome).toMatchObject({ reason: 'over-quota', retryAfterMs: 80_000 });
  });
});

describe('options', () => {
  it.each([
    [{ groups: [{ quotas: [{ unit: 'request', limit: 1 }] }] }, 'groups[0].quotas[0].unit'],
    [{ groups: [{ quotas: [{ unit: 'requests', limit: 0 }] }] }, 'groups[0].quotas[0].limit'],
    [{ groups: [{ quotas: [{ unit: 'requests', limit: 1, per: 'soon' }] }] }, 'groups[0].quotas[0].per'],
    [
      { groups: [{ quotas: [{ unit: 'requests', limit: 1, window: 'fixed', burst: 2 }] }] },
      'groups[0].quotas[0].burst',
    ],
    [{ output: 'most' }, 'output'],
    [{ cooldwon: 3 }, 'cooldwon'],
  ])('that cannot be right are told: %j', (options, path) => {
    let caught: unknown;
    try {
      quotaDetector(options as QuotaDetectorOptions);
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(FlowConfigError);
    expect((caught as FlowConfigError).issues.map((issue) => issue.path)).toEqual([path]);
  });

  it.each<[QuotaDetectorOptions, string]>([
    [
      { groups: [{ quotas: [{ unit: 'requests', limit: 1, window: 'fixed', burst: 2 }] }] },
      'groups[0].quotas[0].burst: expected no burst, because only a gcra window has one; got one of a fixed window',
    ],
    [{ groups: [{ by: 'label' }] }, 'groups[0].label: expected the name of the label that the group is by; got none'],
    [
      { groups: [{ by: 'endpoint', label: 'x' }] },
      'groups[0].label: expected no label, because the group is by none; got "x"',
    ],
    [{ groups: [{ is: 'x' }] }, 'groups[0].is: expected nothing, because the group is the whole pool; got "x"'],
  ])('of a group that contradict each other are told: %j', (options, told) => {
    expect(() => quotaDetector(options)).toThrow(`quotaDetector: ${told}`);
  });

  it('may name one endpoint, or one value of a label', () => {
    expect(quotaDetector({ groups: [{ by: 'endpoint', is: 'k1' }] }).type).toBe('quota-detector');
    expect(quotaDetector({ groups: [{ by: 'label', label: 'account', is: 'A' }] }).type).toBe('quota-detector');
  });
});
