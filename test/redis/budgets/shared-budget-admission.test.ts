/** Budgets in chunks, on a store of this process: no time passes but what the test says. */
import { expect, it } from 'vitest';
import { localStore, sharedBudgetAdmission, sharedBudgets } from '../../../src/redis/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { turns } from '../../support/flow.js';
import { calm } from '../topologies/every-part.js';
import { spend } from './chunk-world.js';

interface Request {
  readonly tokens: number;
}

const key = { fairnessId: 'tenant', priority: 0 };
const used = (promptTokens: number) => ({ promptTokens, completionTokens: 0 });

/** A day's 100 tokens, and replicas that buy 10 at a time. */
function setUp() {
  const clock = new ManualClock();
  const store = localStore({ clock });
  const options = {
    name: 'day',
    budgets: [{ name: 'tokens', limit: 100, per: '24h', cost: 'tokens' }],
    clock,
  } as const;
  const replica = () => sharedBudgetAdmission<Request>(store, { ...options, chunkSeconds: 8_640 });
  const exact = sharedBudgets<Request>(store, options);
  const left = async (): Promise<number> => Math.round((await exact.peek('tenant'))?.tokens ?? Number.NaN);
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    for (let turn = 0; turn < 4; turn++) await turns();
  };
  return { replica, left, pass };
}

it('what a request did not use is there for all replicas again, also what it took beyond a chunk', async () => {
  const { replica, left, pass } = setUp();
  const [one, two] = [replica(), replica()];
  const request = { tokens: 60 };
  // It is larger than a chunk: what is missing is bought, and is there when it comes again.
  expect(one.admit(request, key, calm)).toEqual({ reason: 'the budget is spent', cause: 'budget', retryAfterMs: 100 });
  await pass(100);
  expect(await left()).toBe(40);
  expect(one.admit(request, key, calm)).toBe('admit');
  await pass(0);
  // 60 for the request, and the next chunk.
  expect(await left()).toBe(30);
  one.released?.(request, key, used(10));
  await pass(1_000);
  expect(await left()).toBe(80);
  two.admit({ tokens: 60 }, key, calm);
  await pass(100);
  expect(two.admit({ tokens: 60 }, key, calm)).toBe('admit');
  await Promise.all([one.close(), two.close()]);
  expect(await left()).toBe(30);
});

it('what ended before the store was told costs what it used', async () => {
  const { replica, left, pass } = setUp();
  const one = replica();
  const request = { tokens: 60 };
  one.admit(request, key, calm);
  await pass(100);
  expect(one.admit(request, key, calm)).toBe('admit');
  one.released?.(request, key, undefined);
  await pass(1_000);
  await one.close();
  expect(await left()).toBe(100);
});

it('a request object that is sent twice is given back twice, and not more often', async () => {
  const { replica, left, pass } = setUp();
  const one = replica();
  const request = { tokens: 5 };
  for (let i = 0; i < 2; i++) expect(one.admit(request, key, calm)).toBe('admit');
  for (let i = 0; i < 3; i++) one.released?.(request, key, used(3));
  await pass(1_000);
  await one.close();
  expect(await left()).toBe(94);
});

it('what was bought for a large request that does not come again is given back after a refresh', async () => {
  const { replica, left, pass } = setUp();
  const one = replica();
  one.admit({ tokens: 60 }, key, calm);
  await pass(100);
  expect(await left()).toBe(40);
  await pass(1_100);
  expect(await left()).toBe(90);
  await one.close();
});

it('requests larger than a chunk go over the budget by chunks and a second of the rate at most, and use it up', async () => {
  const plan = { replicas: 4, limit: 600, burst: 60, estimate: 50, used: 50, requestMs: 3_000, lastsMs: 100_000 };
  const { mostOver, utilization } = await spend({ ...plan, perSecond: 20 });
  // All chunks are a quarter of the burst, and 10 tokens come back in a second. By their size alone it would be 200.
  expect(mostOver).toBeLessThanOrEqual(60 / 4 + 10);
  expect(utilization).toBeGreaterThan(0.9);
});

it('a budget is used up by requests that use a tenth of their estimates, and not by a tenth', async () => {
  const plan = { replicas: 2, limit: 600, burst: 60, estimate: 10, used: 1, perSecond: 40, lastsMs: 200_000 };
  const { mostOver, utilization } = await spend({ ...plan, requestMs: 5_000 });
  expect(utilization).toBeGreaterThan(0.9);
  expect(mostOver).toBe(0);
});
