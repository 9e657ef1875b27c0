/** What budgets cost at most when a store fails: the rows of the table in docs/scale-out.md, each on a real store. */
import { Redis } from 'ioredis';
import { afterEach, expect, it } from 'vitest';
import {
  type BudgetTicket,
  type IoRedisClient,
  type RedisClient,
  type SharedBudgets,
  sharedBudgets,
} from '../../../src/redis/index.js';
import { Store } from '../support/stores.js';
import { describeWithStores } from '../support/with-store.js';

interface Request {
  readonly tokens: number;
}

const key = { fairnessId: 'tenant', priority: 0 };
const burst = 6_000;
/** One token a minute comes back: load of the machine changes nothing. */
const budgets = [{ name: 'tokens', limit: 60, per: '1h', burst, cost: 'tokens' }] as const;
const used = (promptTokens: number) => ({ promptTokens, completionTokens: 0 });

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function connect({ port }: Store): Redis {
  const client = new Redis({ port, retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => {});
  ends.push(() => client.disconnect());
  return client;
}

let names = 0;
const named = () => ({ name: `bounds-${names++}`, budgets, replicas: 2, callTimeout: '400ms' }) as const;

function exact(client: RedisClient, options: object): SharedBudgets<Request> {
  const made = sharedBudgets<Request>(client, { ...named(), ...options });
  ends.push(() => made.close());
  return made;
}

async function take(from: SharedBudgets<Request>, tokens: number): Promise<BudgetTicket> {
  const answer = await from.take({ tokens }, key);
  if (!answer.isTaken) throw new Error(answer.reason);
  return answer;
}

const left = async (from: SharedBudgets<Request>): Promise<number> => (await from.peek('tenant'))?.tokens ?? Number.NaN;

/** Takes 100 at a time until it is refused. Returns the sum. */
async function takeAll(from: SharedBudgets<Request>): Promise<{ sum: number; tickets: BudgetTicket[] }> {
  const tickets: BudgetTicket[] = [];
  for (;;) {
    const answer = await from.take({ tokens: 100 }, key);
    if (!answer.isTaken) return { sum: 100 * tickets.length, tickets };
    tickets.push(answer);
  }
}

/** A client of which single calls fare badly: the store gets them, or not, and the answer is lost. */
function frail(client: Redis, run: (call: () => Promise<unknown>, number: number) => Promise<unknown>): IoRedisClient {
  let calls = 0;
  return {
    evalsha: (...args) => run(() => client.evalsha(...args) as Promise<unknown>, calls++),
    eval: (...args) => client.eval(...args) as Promise<unknown>,
  };
}

const lost = new Promise<never>(() => {});

/** The store gets the first call, and its answer is lost. */
const firstIsLost = (client: Redis): IoRedisClient =>
  frail(client, (call, number) => {
    const answer = call();
    return number === 0 ? lost : answer;
  });

/** The script is known, so that the calls that follow are one each. */
async function warm(client: Redis): Promise<void> {
  await left(exact(client, { name: 'warm' }));
}

describeWithStores('an exact budget', (store) => {
  it('is charged once for a request whose answer was lost, and for what it used', async () => {
    const client = connect(store());
    await warm(client);
    const budget = exact(firstIsLost(client), {});
    const ticket = await take(budget, 1_000);
    expect(ticket.isLocal).toBe(true);
    await expect.poll(() => left(budget)).toBeCloseTo(5_000, -1);
    await ticket.settle(used(400));
    await expect.poll(() => left(budget)).toBeCloseTo(5_600, -1);
  });

  it('gets back what a refused request had taken whose answer was lost', async () => {
    const client = connect(store());
    await warm(client);
    const budget = exact(firstIsLost(client), { fallback: 'closed' });
    await expect(take(budget, 1_000)).rejects.toThrow('spent');
    await expect.poll(() => left(budget)).toBeCloseTo(6_000, -1);
  });

  it('sells nothing to a call that comes after its request has ended', async () => {
    const client = connect(store());
    await warm(client);
    let late: () => unknown = () => {};
    const weak = frail(client, (call, number) => {
      if (number > 0) return call();
      late = call;
      return lost;
    });
    const budget = exact(weak, {});
    const ticket = await take(budget, 1_000);
    await ticket.refund();
    await late();
    expect(await left(budget)).toBeCloseTo(6_000, -1);
  });

  it('counts a call once that a client sends twice, and tells the second what the first was told', async () => {
    const client = connect(store());
    await warm(client);
    const twice = frail(client, (call) => call().then(call));
    const budget = exact(twice, {});
    const ticket = await take(budget, 1_000);
    expect(ticket.isLocal).toBe(false);
    expect(await left(budget)).toBeCloseTo(5_000, -1);
    await ticket.settle(used(400));
    expect(await left(budget)).toBeCloseTo(5_600, -1);
  });

  it('keeps 4 kB of what it has sold, however much that was', async () => {
    const client = connect(store());
    const budget = exact(client, { name: 'small' });
    for (let i = 0; i < 400; i++) await (await take(budget, 1)).refund();
    expect(await client.hstrlen('headgate:{small:tenant}:tokens', 'm')).toBeLessThanOrEqual(4_096);
  });

  it('may be used once more when the store has lost everything, and refunds of before give nothing', async () => {
    const client = connect(store());
    const budget = exact(client, {});
    const { sum, tickets } = await takeAll(budget);
    await client.flushall();
    const again = await takeAll(budget);
    expect([sum, again.sum]).toEqual([burst, burst]);
    for (const ticket of tickets) await ticket.refund();
    expect(await left(budget)).toBeLessThan(100);
  });

  it('goes on where it was after a restart with an append-only file, and begins anew without', async () => {
    for (const [options, rest] of [
      [['--appendonly', 'yes', '--appendfsync', 'always'], 0],
      [[], burst],
    ] as const) {
      const own = await Store.start(store().kind, options);
      ends.push(() => own.stop());
      const budget = exact(connect(own), {});
      expect((await takeAll(budget)).sum).toBe(burst);
      await own.kill();
      await own.up();
      await expect.poll(() => left(budget), { timeout: 60_000 }).toBeCloseTo(rest, -1);
    }
  });

  it('is used at most once more, by all replicas together, while the store does not answer; and pays that back', async () => {
    const own = await Store.start(store().kind);
    ends.push(() => own.stop());
    const shared = named();
    const replicas = [exact(connect(own), shared), exact(connect(own), shared)] as const;
    expect((await takeAll(replicas[0])).sum).toBe(burst);
    own.pause();
    const alone = await Promise.all(replicas.map(takeAll));
    own.resume();
    expect(alone.map(({ sum }) => sum)).toEqual([burst / 2, burst / 2]);
    await Promise.all(alone.flatMap(({ tickets }) => tickets).map((ticket) => ticket.settle(used(100))));
    await expect.poll(() => left(replicas[0]), { timeout: 60_000 }).toBeCloseTo(-burst, -1);
  });
});
