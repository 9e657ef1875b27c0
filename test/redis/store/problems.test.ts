/** What is wrong with a store or a client is said in words that help; meanwhile the fallback is in force. */
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterEach, describe, expect, it } from 'vitest';
import { FlowConfigError, FlowController, quotaDetector } from '../../../src/index.js';
import {
  type RedisClient,
  type SharedConcurrency,
  type StoreProblem,
  sharedBudgets,
  sharedConcurrency,
  sharedQuotas,
} from '../../../src/redis/index.js';
import { problemOf } from '../../../src/redis/store/store-problem.js';
import { freePort } from '../../support/free-port.js';
import { Store, storeKinds } from '../support/stores.js';
import { describeWithStores, until } from '../support/with-store.js';

const fast = { refreshInterval: '40ms', leaseDuration: '300ms', callTimeout: '200ms', maxConcurrency: 8 } as const;

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function ioredis(options: string | number | object): Redis {
  const client = new Redis(options as never);
  client.on('error', () => {});
  ends.push(() => client.disconnect());
  return client;
}

/** A replica that expects one other. */
function replica(
  client: RedisClient,
  pool: string,
  options: object = {},
): { shared: SharedConcurrency; problems: StoreProblem[] } {
  const shared = sharedConcurrency(client, { pool, replicas: 2, ...fast, ...options });
  const problems: StoreProblem[] = [];
  shared.on('problem', (problem) => problems.push(problem));
  ends.push(() => shared.close());
  return { shared, problems };
}

async function expectProblem(
  client: RedisClient,
  pool: string,
  code: string,
  ...says: readonly RegExp[]
): Promise<void> {
  const { shared, problems } = replica(client, pool);
  const found = (): StoreProblem | undefined => problems.find((problem) => problem.code === code);
  await until(
    () => found() !== undefined,
    () => problems,
  );
  const { message } = found()!;
  for (const words of [new RegExp(`pool "${pool}"`), ...says]) expect(message).toMatch(words);
  // It had no answer for a lease: its part of the limit among the replicas that were expected is in force.
  await until(
    () => shared.limit === 4,
    () => shared.status,
  );
}

describeWithStores('a problem of the store', (store) => {
  const admin = (): Redis => ioredis(store().port);

  it('names the right that the user lacks', async () => {
    await admin().call('ACL', 'SETUSER', 'narrow', 'on', '>secret', '~*', '+ping', '+info', '-@scripting');
    await expectProblem(
      ioredis({ port: store().port, username: 'narrow', password: 'secret' }),
      'acl',
      'permission',
      /EVALSHA/,
    );
  });

  it('names the key that holds another type', async () => {
    await admin().set('headgate:{typed}:lease', 'text');
    await expectProblem(
      admin(),
      'typed',
      'wrong-type',
      /headgate:\{typed\}:lease/,
      /delete it, or choose another prefix/,
    );
  });

  it.each(['inf', 'nan', '-inf', '12abc'])('names keys that hold %s, and reckons with none of them', async (odd) => {
    const client = admin();
    const nobody = `${odd} `.repeat(9).trim();
    await client.hset(`headgate:{odd${odd}}:lease`, '#', `${odd} ${nobody}`);
    await expectProblem(client, `odd${odd}`, 'wrong-type', /lease/, /no finite number/);

    const budgets = sharedBudgets(client, {
      name: `odd${odd}`,
      budgets: [{ name: 'requests', limit: 60, per: '1m' }],
      callTimeout: '2s',
    });
    ends.push(() => budgets.close());
    await client.set(`headgate:{odd${odd}:tenant}:requests`, odd);
    expect(await budgets.take({ byteSize: 1 }, { fairnessId: 'tenant', priority: 0 })).toMatchObject({ isLocal: true });
    expect(budgets.store.problem).toMatchObject({ code: 'wrong-type' });

    const quotas = sharedQuotas(client, { name: `odd${odd}`, callTimeout: '2s' });
    ends.push(() => quotas.close());
    const detector = quotaDetector({ groups: [{ quotas: [{ unit: 'requests', limit: 60, per: '1m' }] }] });
    detector.drawFrom(quotas);
    const flow = new FlowController({ constraints: [detector] });
    ends.push(() => flow.close());
    const spend = () => flow.enqueue({ byteSize: 1 }, { fairnessId: 'tenant', priority: 0 });
    await spend();
    const keys = (): Promise<string[]> => client.keys(`headgate:{odd${odd}:*:quota`);
    while ((await keys()).length === 0) await spend();
    await client.hset((await keys())[0]!, 't', odd);
    for (let i = 0; i < 60 && quotas.store.misses === 0; i++) await spend();
    expect(quotas.store.problem).toMatchObject({ code: 'wrong-type' });
  });

  it('names the memory that is used up', async () => {
    const client = admin();
    await client.config('SET', 'maxmemory', '1');
    ends.push(() => client.config('SET', 'maxmemory', '0'));
    await expectProblem(client, 'full', 'out-of-memory', /maxmemory/, /noeviction/);
  });

  it('says that a script was killed, and the next call repairs it', async () => {
    const client = admin();
    const { shared, problems } = replica(client, 'blocked');
    await until(
      () => shared.limit === 8,
      () => shared.status,
    );
    // Its name until 7.0, which all servers know.
    await admin().config('SET', 'lua-time-limit', '1');
    const [blocker, killer] = [ioredis(store().port), ioredis(store().port)];
    await Promise.all([blocker.ping(), killer.ping()]);
    const killed = blocker.eval('while true do end', 0).catch((error: Error) => error.message);
    await until(
      () => problems.length > 0,
      () => problems,
    );
    expect(['script-running', 'timeout']).toContain(problems[0]!.code);
    await until(
      () => shared.status[0]!.isExpired,
      () => shared.status,
    );
    expect(shared.limit).toBe(8); // the safe share of a replica that is alone
    await killer.call('SCRIPT', 'KILL');
    // In the words of this server, as a call of ours would hear it.
    const { code, message } = problemOf(new Error(String(await killed)), 'pool "blocked"', ['key']);
    expect(code).toBe('script-killed');
    expect(message).toMatch(/somebody killed the script .* the next call runs it again/);
    await until(
      () => !shared.status[0]!.isExpired,
      () => shared.status,
    );
  });

  it('says which limits two pools of one name have, and the smaller is in force', async () => {
    const client = admin();
    const [eight, six] = [replica(client, 'two'), replica(client, 'two', { maxConcurrency: 6 })];
    for (const { problems } of [eight, six]) {
      await until(
        () => problems.some(({ code }) => code === 'limit-mismatch'),
        () => problems,
      );
      expect(problems.find(({ code }) => code === 'limit-mismatch')!.message).toMatch(/some replicas say 6, others 8/);
    }
    await until(
      () => eight.shared.limit + six.shared.limit === 6,
      () => [eight.shared.limit, six.shared.limit],
    );
  });

  it('names a replica that takes no writes', async () => {
    const reader = await Store.start(storeKinds[0]!, ['--replicaof', '127.0.0.1', String(store().port)]);
    ends.push(() => reader.stop());
    await expectProblem(ioredis(reader.port), 'reader', 'read-only', /connect to the primary/);
  });
});

describe.runIf(storeKinds.length > 0)('a problem of the client', () => {
  it('names a password that is wrong', async () => {
    const store = await Store.start(storeKinds[0]!, ['--requirepass', 'right']);
    ends.push(() => store.stop());
    await expectProblem(ioredis({ port: store.port, password: 'wrong' }), 'auth', 'auth', /rejects the password/);
    await expectProblem(ioredis(store.port), 'no-auth', 'auth', /set user and password/);
  });

  it.each(['ioredis', 'redis'])('names a store that is not there, for %s', async (name) => {
    const port = await freePort();
    if (name === 'ioredis')
      return expectProblem(ioredis(port), 'gone', 'unreachable', /ECONNREFUSED/, /URL of the client/);
    const client = createClient({ url: `redis://127.0.0.1:${port}` });
    ends.push(() => client.destroy());
    // Without a listener for errors node-redis would end the process; the replica has one.
    const { shared, problems } = replica(client, 'gone');
    client.connect().catch(() => {});
    await until(
      () => problems.some(({ cause }) => cause.includes('ECONNREFUSED')) || problems.length > 0,
      () => problems,
    );
    expect(problems[0]!.code).toBe('unreachable');
    await until(() => shared.limit === 4);
  });

  it('is told when something else answers', async () => {
    const { shared, problems } = replica({ evalsha: async () => ['no'], eval: async () => ['no'] }, 'odd');
    await until(() => problems.length > 0);
    expect(problems[0]).toMatchObject({ code: 'bad-reply' });
    await until(() => shared.limit === 4);
  });

  it.each([
    [
      'ERR Error running script: Write commands not allowed after non deterministic commands',
      'old-version',
      /Redis from 6\.2/,
    ],
    ['MOVED 1234 10.0.0.1:6379', 'cluster', /cluster client/],
    ['LOADING Redis is loading the dataset in memory', 'not-ready', /takes no writes/],
    ['CLUSTERDOWN The cluster is down', 'not-ready', /takes no writes/],
    ['The client is offline', 'unreachable', /cannot be reached/],
    ["Cluster isn't ready and enableOfflineQueue options is false", 'unreachable', /cannot be reached/],
    ['All the root nodes are unavailable', 'unreachable', /cannot be reached/],
    ['Failed to refresh slots cache.', 'unreachable', /cannot be reached/],
    ['All sentinels are unreachable and retry is disabled.', 'unreachable', /cannot be reached/],
  ])('is recognized by what the server says: %s', async (text, code, says) => {
    const fails = (): Promise<never> => Promise.reject(new Error(text));
    await expectProblem({ evalsha: fails, eval: fails }, 'said', code, says);
  });

  it('never leaves more commands in a client without connection than a bound', async () => {
    const client = ioredis(await freePort());
    const { shared } = replica(client, 'bounded', {
      refreshInterval: '1ms',
      leaseDuration: '10ms',
      callTimeout: '1ms',
    });
    await until(() => shared.status[0]!.store.isBreakerOpen);
    const { calls } = shared.status[0]!.store;
    expect(calls).toBeLessThan(10);
  });
});

describe('wrong options', () => {
  const client = { evalsha: async () => [], eval: async () => [] };

  it.each([
    [{}, 'pool'],
    [{ pool: 'a b', maxConcurrency: 1 }, 'pool'],
    [{ pool: 'a' }, 'maxConcurrency'],
    [{ pool: 'a', maxConcurrency: 1, maxTokens: 1 }, 'maxConcurrency'],
    [{ pool: 'a', maxConcurrency: 0 }, 'maxConcurrency'],
    [{ pool: 'a', maxConcurrency: 1, leaseDuration: '1s' }, 'leaseDuration'],
    [{ pool: 'a', maxConcurrency: 1, fallback: 'open' }, 'fallback'],
    [{ pool: 'a', maxConcurrency: 1, drain: '1s' }, ''],
  ])('are refused: %j', (options, path) => {
    const act = (): unknown => sharedConcurrency(client, options as never);
    expect(act).toThrow(FlowConfigError);
    try {
      act();
    } catch (error) {
      expect((error as FlowConfigError).issues[0]?.path ?? '').toContain(path);
    }
  });

  it('are refused: something that is no client', () => {
    expect(() => sharedConcurrency('redis://localhost' as never, { pool: 'a', maxConcurrency: 1 })).toThrow(
      /a client of redis, ioredis or iovalkey/,
    );
  });
});
