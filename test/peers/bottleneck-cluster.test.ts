/**
 * What the cluster tests of Bottleneck ask, asked of shared state: several clients, each with a connection of its own,
 * on one store. expected.json says which of their 37 questions have no answer here, and why.
 */
import { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { concurrencyDetector, FlowController, maxOf, type SaturationDetector } from '../../src/index.js';
import {
  type SharedBudgetsOptions,
  type SharedConcurrency,
  type SharedConcurrencyOptions,
  sharedBudgets,
  sharedConcurrency,
} from '../../src/redis/index.js';
import { describeWithStores, until } from '../redis/support/with-store.js';
import { freePort } from '../support/free-port.js';

const leaseMs = 500;
const drainMs = 700;
const forgetMs = 900;
const timing = {
  refreshInterval: '50ms',
  leaseDuration: leaseMs,
  callTimeout: leaseMs,
  drainDuration: drainMs,
  forgetAfter: forgetMs,
} as const;

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function connect(port: number): Redis {
  const redis = new Redis({ port, retryStrategy: () => 50 });
  redis.on('error', () => {});
  ends.push(() => redis.disconnect());
  return redis;
}

const passed = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let pools = 0;
const newName = (): string => `cluster-${pools++}`;

/** What the tasks of all clients of a cluster did. */
class Tasks {
  begun: string[] = [];
  running = 0;
  /** The most that ran at one time. */
  most = 0;

  async run(name: string, ms: number): Promise<void> {
    this.begun.push(name);
    this.most = Math.max(this.most, ++this.running);
    await passed(ms);
    this.running--;
  }
}

/** One limiter of the cluster: a controller with its part of the pool's limit. */
class Client {
  readonly shared: SharedConcurrency;
  readonly flow: FlowController;
  readonly redis: Redis;
  readonly own: Tasks = new Tasks();
  private readonly all: Tasks;

  constructor(redis: Redis, options: SharedConcurrencyOptions, all = new Tasks(), local?: SaturationDetector) {
    this.redis = redis;
    this.all = all;
    this.shared = sharedConcurrency(redis, { ...timing, ...options });
    this.flow = new FlowController({ saturationDetector: local ? maxOf(this.shared, local) : this.shared });
    this.shared.attach(this.flow);
    ends.push(() => this.shared.close());
  }

  /** Resolves at its end. */
  async schedule(name: string, ms = 0): Promise<void> {
    const tasks = [this.own, this.all];
    await this.flow.run({ byteSize: 1 }, { fairnessId: 'a', priority: 0 }, () =>
      Promise.all(tasks.map((each) => each.run(name, ms))),
    );
  }

  /** One that runs until it is told to end. */
  async hold(): Promise<() => void> {
    const outcome = await this.flow.enqueue({ byteSize: 1 }, { fairnessId: 'a', priority: 0 });
    if (outcome.type !== 'Dispatched') throw new Error(outcome.reason);
    return () => outcome.lease.release();
  }

  /** The process dies: nothing more reaches the store. */
  die(): void {
    this.redis.disconnect();
  }

  get waiting(): number {
    return this.flow.stats().waiting;
  }

  get replicas(): number {
    return this.shared.status[0]?.replicas ?? 0;
  }
}

async function together(clients: readonly Client[]): Promise<void> {
  await Promise.all(clients.map(async (client) => (await client.hold())()));
  await until(
    () => clients.every(({ replicas }) => replicas === clients.length),
    () => clients.map(({ replicas }) => replicas),
  );
}

const rate = (limit: number, per: string, burst = limit): SharedBudgetsOptions['budgets'][number] => {
  return { name: 'jobs', limit, per, burst };
};
const payer = (fairnessId: string) => ({ fairnessId, priority: 0 });

/** Takes as much as there is. */
async function takeAll(budgets: ReturnType<typeof sharedBudgets>, of: string): Promise<number> {
  for (let taken = 0; ; taken++) if (!(await budgets.take({}, payer(of))).isTaken) return taken;
}

describeWithStores('a cluster, as Bottleneck has one', (store) => {
  const redis = (): Redis => connect(store().port);
  const clients = (count: number, options: Omit<SharedConcurrencyOptions, 'pool'>): Client[] => {
    const [pool, all] = [newName(), new Tasks()];
    return Array.from({ length: count }, () => new Client(redis(), { ...options, pool }, all));
  };
  const spender = (
    options: Partial<SharedBudgetsOptions> & Pick<SharedBudgetsOptions, 'budgets'>,
    client = redis(),
  ) => {
    const budgets = sharedBudgets(client, { name: newName(), callTimeout: '2s', ...options });
    ends.push(() => budgets.close());
    return budgets;
  };
  const keysOf = (name: string): Promise<string[]> => redis().keys(`*${name}*`);

  describe('connections', () => {
    it('is ready when the store has answered: what came before waits, and goes then', async () => {
      store().pause();
      const [client] = clients(1, { maxConcurrency: 2 }) as [Client];
      const task = client.schedule('a');
      await passed(200);
      expect([client.waiting, client.own.begun]).toEqual([1, []]);
      store().resume();
      await task;
      expect(client.own.begun).toEqual(['a']);
    });

    it('resolves when it has disconnected, and leaves the connection to its host', async () => {
      const [a, b] = clients(2, { maxConcurrency: 2 }) as [Client, Client];
      await together([a, b]);
      await a.shared.close();
      expect(await a.redis.ping()).toBe('PONG');
      await until(() => b.replicas === 1);
      void a.schedule('late').catch(() => {});
      await passed(200);
      expect(a.waiting).toBe(1);
    });

    it('takes a connection that another limiter has', async () => {
      const client = redis();
      const two = [0, 1].map(() => new Client(client, { pool: newName(), maxConcurrency: 1 }));
      await Promise.all(two.map((each) => each.schedule('a')));
      expect(two.map(({ own, replicas }) => [own.begun, replicas])).toEqual([
        [['a'], 1],
        [['a'], 1],
      ]);
    });

    it.each([
      ['a limiter’s connection for a group of keys', ['pool', 'keys']],
      ['a group’s connection for a limiter', ['keys', 'pool']],
      ['a group’s connection for another group', ['keys', 'keys']],
    ])('takes %s', async (_, kinds) => {
      const client = redis();
      for (const kind of kinds) {
        if (kind === 'pool') {
          const limiter = new Client(client, { pool: newName(), maxConcurrency: 1 });
          await limiter.schedule('a');
          expect(limiter.own.begun).toEqual(['a']);
        } else {
          const group = spender({ budgets: [rate(1, '1h')] }, client);
          expect([await takeAll(group, 'A'), await takeAll(group, 'B')]).toEqual([1, 1]);
        }
      }
    });

    it('survives a connection that fails, and says why', async () => {
      const port = await freePort();
      const lost = new Client(connect(port), { pool: newName(), maxConcurrency: 2, fallback: 1 });
      const problems: string[] = [];
      lost.shared.on('problem', ({ message }) => problems.push(message));
      await lost.schedule('a');
      expect(problems.join()).toContain('ECONNREFUSED');
      expect(lost.own.begun).toEqual(['a']);
    });
  });

  describe('keys', () => {
    it('have the name of the limiter in them', async () => {
      const pool = newName();
      await new Client(redis(), { pool, maxConcurrency: 2 }).schedule('a');
      expect(await keysOf(pool)).toEqual([`headgate:{${pool}}:lease`]);
    });

    it('end after the time that is set', async () => {
      const pool = newName();
      await new Client(redis(), { pool, maxConcurrency: 2, forgetAfter: '5m' }).schedule('a');
      const ttlS = await redis().ttl(`headgate:{${pool}}:lease`);
      expect(ttlS).toBeGreaterThanOrEqual(290);
      expect(ttlS).toBeLessThanOrEqual(310);
    });

    it('of a group end by default', async () => {
      const name = newName();
      const group = spender({ name, budgets: [rate(1, '1m')] });
      await group.take({}, payer('one'));
      const ttlS = await redis().ttl((await keysOf(name))[0]!);
      expect(ttlS).toBeGreaterThan(50);
      expect(ttlS).toBeLessThanOrEqual(121);
    });

    it('of a group are apart, and end with what they count', async () => {
      const name = newName();
      const group = spender({ name, budgets: [rate(2, '200ms')] });
      for (const of of ['one', 'two', 'three']) expect(await takeAll(group, of)).toBeGreaterThanOrEqual(2);
      expect(await keysOf(name)).not.toEqual([]);
      await expect.poll(() => keysOf(name)).toEqual([]);
    });

    it('that ended are made again by nobody who only lives', async () => {
      const name = newName();
      const group = spender({ name, budgets: [rate(1, '100ms')] });
      const ticket = await group.take({}, payer('one'));
      if (ticket.isTaken) await ticket.settle(undefined);
      await expect.poll(() => keysOf(name)).toEqual([]);
      await passed(300);
      expect(await keysOf(name)).toEqual([]);
    });

    it('that are lost are no failure', async () => {
      const [a, b] = clients(2, { maxConcurrency: 2 }) as [Client, Client];
      await together([a, b]);
      await redis().flushall();
      await Promise.all([a.schedule('a'), b.schedule('b')]);
      expect([a.own.begun, b.own.begun]).toEqual([['a'], ['b']]);
      // Both know that all was forgotten, and are known again.
      await until(() => [a, b].every(({ shared, replicas }) => shared.status[0]!.epochChanges > 0 && replicas === 2));
    });
  });

  describe('limits', () => {
    it('a seat that one gives back goes to another', async () => {
      const [a, b] = clients(2, { maxConcurrency: 2 }) as [Client, Client];
      const releases = [await a.hold(), await a.hold()];
      const third = b.schedule('3');
      await passed(300);
      expect(b.own.begun).toEqual([]);
      releases[0]!();
      await third;
      releases[1]!();
    });

    it('a limit that is new replaces what was set: the smallest holds for all', async () => {
      const [pool, all] = [newName(), new Tasks()];
      const old = new Client(redis(), { pool, maxConcurrency: 2 }, all);
      await Promise.all([old.schedule('1', 100), old.schedule('2', 100)]);
      expect(all.most).toBe(2);
      await new Client(redis(), { pool, maxConcurrency: 1 }, all).schedule('3');
      await passed(300);
      all.most = 0;
      await Promise.all([old.schedule('4', 100), old.schedule('5', 100)]);
      expect(all.most).toBe(1);
    });

    it('what was missed of a rate is there at once', async () => {
      const group = spender({ budgets: [rate(2, '100ms', 62)] });
      expect(await takeAll(group, 'a')).toBeGreaterThanOrEqual(62);
      await passed(500);
      // Ten have come back, and some more while they were asked for.
      const back = await takeAll(group, 'a');
      expect(back).toBeGreaterThanOrEqual(10);
      expect(back).toBeLessThan(40);
      await passed(3_300);
      const { jobs } = (await group.peek('a'))!;
      expect(jobs).toBe(62);
    });

    it.each([3, 2])('local limits before a shared one of %i: neither is exceeded', async (maxConcurrency) => {
      const [pool, all] = [newName(), new Tasks()];
      const [one, two] = [1, 2].map(
        (own) => new Client(redis(), { pool, maxConcurrency }, all, concurrencyDetector({ maxConcurrency: own })),
      ) as [Client, Client];
      await together([one, two]);
      await Promise.all([
        ...['1', '2', '3'].map((name) => one.schedule(name, 150)),
        ...['4', '5', '6'].map((name) => two.schedule(name, 150)),
      ]);
      expect([one.own.begun, two.own.begun]).toEqual([
        ['1', '2', '3'],
        ['4', '5', '6'],
      ]);
      expect(one.own.most).toBe(1);
      expect(two.own.most).toBeLessThanOrEqual(2);
      expect(all.most).toBeGreaterThan(1);
      expect(all.most).toBeLessThanOrEqual(maxConcurrency);
    });

    it('those that have least get what comes free', async () => {
      const all = clients(4, { maxConcurrency: 3 });
      const [a, b, c, d] = all as [Client, Client, Client, Client];
      await together(all);
      const short = await a.hold();
      const long = [await a.hold(), await b.hold()];
      const waiting = [c.schedule('D', 20), d.schedule('E', 20), c.schedule('F', 20), d.schedule('G', 20)];
      await passed(200);
      expect([c.waiting, d.waiting]).toEqual([2, 2]);
      short();
      await Promise.all(waiting);
      expect([c.own.begun, d.own.begun]).toEqual([
        ['D', 'F'],
        ['E', 'G'],
      ]);
      for (const release of long) release();
    });

    it('two seats that come free go to two that wait', async () => {
      const all = clients(4, { maxConcurrency: 3 });
      const [a, b, c, d] = all as [Client, Client, Client, Client];
      await together(all);
      const [two, one] = [[await a.hold(), await a.hold()], await b.hold()];
      const waiting = [c.hold(), d.hold()];
      await passed(200);
      expect([c.waiting, d.waiting]).toEqual([1, 1]);
      for (const release of two) release();
      // Both hold theirs at the same time.
      for (const release of await Promise.all(waiting)) release();
      one();
    });
  });

  describe('clients that are gone', () => {
    it('seats of tasks that nobody ends come back', async () => {
      const [a, b] = clients(2, { maxConcurrency: 2 }) as [Client, Client];
      await together([a, b]);
      await a.hold();
      const own = await b.hold();
      a.die();
      const [second, startedAtMs] = [b.hold(), performance.now()];
      (await second)();
      own();
      expect(performance.now() - startedAtMs).toBeGreaterThan(drainMs);
    });

    it('one that does not answer is forgotten', async () => {
      const [a, b] = clients(2, { maxConcurrency: 2 }) as [Client, Client];
      await together([a, b]);
      a.die();
      await until(() => b.replicas === 1);
      // With all that it had.
      await until(() => b.shared.status[0]?.safeShare === 2);
    });

    it('one that does not answer keeps the seats of what may still run', async () => {
      const [a, b] = clients(2, { maxConcurrency: 1, drainDuration: '60s' }) as [Client, Client];
      await together([a, b]);
      const release = await a.hold();
      a.die();
      const task = b.schedule('b');
      await passed(leaseMs + drainMs + forgetMs);
      expect([b.own.begun, b.waiting]).toEqual([[], 1]);
      expect(b.shared.status[0]?.held).toBe(1);
      release();
      void task.catch(() => {});
    });

    it('one whose last task must have ended is forgotten with it', async () => {
      const [a, b] = clients(2, { maxConcurrency: 1 }) as [Client, Client];
      await together([a, b]);
      await a.hold();
      a.die();
      await b.schedule('b');
      expect(b.replicas).toBe(1);
    });

    it('one that waits and does not answer is passed over', async () => {
      const all = clients(3, { maxConcurrency: 1 });
      const [a, b, c] = all as [Client, Client, Client];
      await together(all);
      const release = await a.hold();
      const lost = b.schedule('5');
      const last = c.schedule('6');
      await passed(200);
      b.die();
      release();
      await last;
      expect([b.own.begun, c.own.begun]).toEqual([[], ['6']]);
      void lost.catch(() => {});
    });
  });
});
