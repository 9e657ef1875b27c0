import { Redis } from 'ioredis';
import { afterEach, expect, it } from 'vitest';
import { type Permit, type SharedSemaphore, sharedSemaphore } from '../../../src/redis/index.js';
import { Engine, engineKinds } from '../support/engines.js';
import { VirtualWorld } from '../support/virtual-world.js';
import { describeWithEngines, until } from '../support/with-engine.js';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function connect(port: number): Redis {
  const client = new Redis({ port, retryStrategy: () => 50 });
  client.on('error', () => {});
  ends.push(() => client.disconnect());
  return client;
}

/** Tries until there is a permit. */
async function acquire(semaphore: SharedSemaphore): Promise<Permit> {
  for (;;) {
    const permit = await semaphore.tryAcquire();
    if (permit !== undefined) return permit;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

let names = 0;

describeWithEngines('a shared semaphore', (engine) => {
  const semaphore = (name: string, limit = 4, ttl = '10s') =>
    sharedSemaphore(connect(engine().port), { name, limit, ttl, callTimeout: '60s' });

  it('gives out its seats, by weight, to all processes together', async () => {
    const name = `semaphore-${names++}`;
    const [a, b] = [semaphore(name), semaphore(name)];
    const wide = await a.tryAcquire(3);
    const narrow = await b.tryAcquire(1);
    expect(await b.tryAcquire(1)).toBeUndefined();
    await wide!.release();
    await wide!.release();
    const next = await b.tryAcquire(3);
    expect(next).toBeDefined();
    expect(await a.tryAcquire(1)).toBeUndefined();
    for (const permit of [narrow, next]) await permit!.release();
    expect(await connect(engine().port).keys(`*${name}*`)).toEqual([]);
  });

  it('lets in a permit wider than the limit when nobody else is', async () => {
    const shared = semaphore(`semaphore-${names++}`);
    const wide = await shared.tryAcquire(9);
    expect(wide).toBeDefined();
    expect(await shared.tryAcquire(1)).toBeUndefined();
    await wide!.release();
  });

  it('renews a permit that is held for longer than its time to live', async () => {
    const world = new VirtualWorld(connect(engine().port));
    const options = { name: `semaphore-${names++}`, limit: 1, ttl: '10m', clock: world } as const;
    const shared = sharedSemaphore(
      world.client(() => ({})),
      options,
    );
    const permits: unknown[] = [];
    for (let minutes = 0; minutes < 60; minutes += 4) {
      void shared.tryAcquire().then((permit) => permits.push(permit));
      await world.run(minutes * 60_000 + 1_000);
    }
    const [first, ...others] = permits;
    expect(first).toMatchObject({ seats: 1, isLost: false });
    expect(others).toEqual(new Array(14).fill(undefined));
  });

  it('takes back what a process that died held', async () => {
    const name = `semaphore-${names++}`;
    const dead = connect(engine().port);
    await sharedSemaphore(dead, { name, limit: 1, ttl: '300ms', callTimeout: '2s' }).tryAcquire();
    dead.disconnect();
    const shared = semaphore(name, 1);
    const permit = await acquire(shared);
    await permit.release();
  });

  it('knows that a permit was lost with the engine, and fails as it is told', async () => {
    const other = await Engine.start(engineKinds[0]!);
    ends.push(() => other.stop());
    const closed = sharedSemaphore(connect(other.port), { name: 'lost', limit: 1, ttl: '150ms', callTimeout: '100ms' });
    const open = sharedSemaphore(connect(other.port), {
      name: 'lost',
      limit: 1,
      fallback: 'open',
      callTimeout: '100ms',
    });
    // On a busy machine the first calls may find no connection yet.
    const permit = await acquire(closed);
    await other.kill();
    await until(() => permit.isLost);
    expect(await closed.tryAcquire()).toBeUndefined();
    expect(closed.problem?.message).toMatch(/semaphore "lost"/);
    const unknown = await open.tryAcquire();
    expect(unknown).toBeDefined();
    await unknown!.release();
  });
});

it('a semaphore refuses a limit of 0', () => {
  expect(() => sharedSemaphore(connect(1), { name: 'a', limit: 0 })).toThrow(/limit/);
});
