import { Redis } from 'ioredis';
import { afterEach, expect, it } from 'vitest';
import { concurrencyDetector, FlowConfigError, FlowController, type FlowRequest } from '../../../src/index.js';
import { sharedBudgets } from '../../../src/redis/index.js';
import { freePort } from '../../support/free-port.js';
import { Store, storeKinds } from '../support/stores.js';
import { describeWithStores, until } from '../support/with-store.js';

interface Request extends FlowRequest {
  readonly tokens: number;
}

const key = { fairnessId: 'tenant', priority: 0 };
const rates = [
  { name: 'requests', limit: 60, per: '1h', burst: 10 },
  { name: 'tokens', limit: 36_000, per: '1h', burst: 6_000, cost: 'tokens' },
] as const;
const request = (tokens: number): Request => ({ byteSize: 1, tokens });

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function connect(port: number): Redis {
  const client = new Redis({ port, enableOfflineQueue: true, retryStrategy: () => 50 });
  client.on('error', () => {});
  ends.push(() => client.disconnect());
  return client;
}

let names = 0;
const options = () => ({ name: `budgets-${names++}`, budgets: rates, callTimeout: '2s' }) as const;

describeWithStores('shared budgets', (store) => {
  it('are taken together or not at all', async () => {
    const shared = options();
    const [a, b] = [
      sharedBudgets<Request>(connect(store().port), shared),
      sharedBudgets<Request>(connect(store().port), shared),
    ];
    for (let i = 0; i < 3; i++)
      expect(await (i % 2 ? a : b).take(request(2_000), key)).toMatchObject({ isTaken: true, isLocal: false });
    // 6,000 tokens are spent, but 7 requests are left: the refusal takes none of them.
    expect(await a.take(request(1_000), key)).toMatchObject({ isTaken: false });
    expect((await b.peek('tenant'))!.requests).toBeCloseTo(7, 0);
  });

  it('are kept for a payer whose name is half a surrogate pair', async () => {
    const budgets = sharedBudgets<Request>(connect(store().port), options());
    const odd = { ...key, fairnessId: 'a}\ud800' };
    expect(await budgets.take(request(1_000), odd)).toMatchObject({ isTaken: true, isLocal: false });
    expect((await budgets.peek(odd.fairnessId))!.tokens).toBeLessThan(5_500);
  });

  it('say when a request would pass: after its tokens have come back', async () => {
    const budgets = sharedBudgets<Request>(connect(store().port), options());
    await budgets.take(request(6_000), key);
    const refusal = await budgets.take(request(100), key);
    // 36,000 tokens an hour: 100 of them in 10 s.
    expect(refusal).toMatchObject({ isTaken: false, reason: 'the budget is spent' });
    const { retryAfterMs } = refusal as { retryAfterMs: number };
    expect(retryAfterMs).toBeGreaterThan(8_000);
    expect(retryAfterMs).toBeLessThanOrEqual(10_000);
  });

  it('refuse for ever what costs more than a burst', async () => {
    const budgets = sharedBudgets<Request>(connect(store().port), options());
    expect(await budgets.take(request(6_001), key)).toMatchObject({
      isTaken: false,
      retryAfterMs: undefined,
      reason: /6000/ as never,
    });
  });

  it('charge the difference at the end, and give all back for what never ran, once', async () => {
    const budgets = sharedBudgets<Request>(connect(store().port), options());
    const left = async (): Promise<number> => (await budgets.peek('tenant'))!.tokens!;
    const first = await budgets.take(request(1_000), key);
    if (!first.isTaken) throw new Error('refused');
    await first.settle({ promptTokens: 1_000, completionTokens: 500 });
    await first.settle({ promptTokens: 9_000, completionTokens: 0 });
    expect(await left()).toBeCloseTo(4_500, -1);
    const second = await budgets.take(request(4_000), key);
    if (!second.isTaken) throw new Error('refused');
    await second.refund();
    expect(await left()).toBeCloseTo(4_500, -1);
  });

  it('hide names in keys where that is asked for', async () => {
    const client = connect(store().port);
    const budgets = sharedBudgets<Request>(client, { ...options(), hashKeys: true });
    await budgets.take(request(1), { fairnessId: 'sk-secret', priority: 0 });
    expect((await client.keys('*')).join(' ')).not.toContain('sk-secret');
  });

  it('stand before a controller: refused requests are drops, dropped ones are refunded, the others settle at release', async () => {
    const budgets = sharedBudgets<Request>(connect(store().port), options());
    const flow = new FlowController<Request>({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
    const gate = budgets.guard(flow);
    const left = async (): Promise<number> => (await budgets.peek('tenant'))!.tokens!;
    const running = await gate.enqueue(request(3_000), key);
    if (running.type !== 'Dispatched') throw new Error(running.type);
    const waits = new AbortController();
    const waiting = gate.enqueue({ ...request(2_000), signal: waits.signal }, key);
    await until(() => flow.stats().waiting === 1);
    const refused = await gate.enqueue(request(2_000), key);
    expect(refused).toMatchObject({
      type: 'RejectedCapacity',
      reason: 'over-budget',
      policy: 'shared-budgets',
      detail: 'the budget is spent',
    });
    waits.abort();
    expect((await waiting).type).toBe('EvictedContextCancelled');
    running.lease.report({ promptTokens: 1_000, completionTokens: 500 });
    running.lease.release();
    let now = 0;
    while (now < 4_400) now = await left();
    expect(now).toBeCloseTo(4_500, -1);
  });

  it('go on by this replica’s own part while the store is away, and charge it later', async () => {
    const other = await Store.start(storeKinds[0]!);
    ends.push(() => other.stop());
    const budgets = sharedBudgets<Request>(connect(other.port), { ...options(), replicas: 2, callTimeout: '1s' });
    const problems: string[] = [];
    budgets.onProblem(({ code }) => problems.push(code));
    expect(await budgets.take(request(1_000), key)).toMatchObject({ isLocal: false });
    await other.kill();
    const first = await budgets.take(request(1_500), key);
    expect(first).toMatchObject({ isTaken: true, isLocal: true });
    // Half of the limit is this replica's.
    expect(await budgets.take(request(2_000), key)).toMatchObject({ isTaken: false });
    expect(problems[0]).toMatch(/unreachable|timeout/);
    await other.up();
    const left = async (): Promise<number | undefined> => (await budgets.peek('tenant'))?.tokens;
    await expect.poll(left).toBeDefined();
    if (first.isTaken) await first.settle({ promptTokens: 1_500, completionTokens: 0 });
    await expect.poll(left).toBeCloseTo(4_500, -1);
  });

  it('are refused without budgets, and with a limit of 0', () => {
    const client = connect(store().port);
    expect(() => sharedBudgets(client, { name: 'a', budgets: [{ name: 'b', limit: 0 }] })).toThrow(FlowConfigError);
    expect(() =>
      sharedBudgets(client, { name: 'a', budgets: [{ name: 'b', limit: 1, cost: 'euro' as never }] }),
    ).toThrow(/cost/);
  });
});

it('budgets name the store that is not there', async () => {
  const budgets = sharedBudgets(connect(await freePort()), {
    name: 'gone',
    budgets: [{ name: 'b', limit: 10 }],
    fallback: 'closed',
  });
  const problems: string[] = [];
  budgets.onProblem(({ message }) => problems.push(message));
  expect(await budgets.take({}, key)).toMatchObject({ isTaken: false });
  expect(problems[0]).toMatch(/budgets "gone"/);
});
