/** Budgets in chunks, on a store of this process: no time passes but what the test says. */
import { expect, it } from 'vitest';
import { localStore, sharedBudgetAdmission, sharedBudgets } from '../../../src/redis/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { turns } from '../../support/flow.js';
import { calm } from '../topologies/every-part.js';

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
  expect(one.admit(request, key, calm)).toBe('admit');
  await pass(0);
  // 60 for the request, and the next chunk.
  expect(await left()).toBe(30);
  one.released?.(request, key, used(10));
  await pass(1_000);
  expect(await left()).toBe(80);
  expect(two.admit({ tokens: 60 }, key, calm)).toBe('admit');
  await Promise.all([one.close(), two.close()]);
  expect(await left()).toBe(30);
});

it('what ended before the store was told costs what it used', async () => {
  const { replica, left, pass } = setUp();
  const one = replica();
  const request = { tokens: 60 };
  one.admit(request, key, calm);
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
