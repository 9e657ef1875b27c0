/** What replicas get over years of operation: restarts, idle ones, more replicas than seats, names used twice. */
import { describe, expect, it } from 'vitest';
import { localStore, type SharedConcurrencyOptions, type Store, sharedConcurrency } from '../../../src/redis/index.js';
import { replicaName } from '../../../src/redis/leases/replica-name.js';
import { ManualClock } from '../../../src/testing/index.js';

const clock = new ManualClock();
const limit = 64;
const secondMs = 1_000;

/** A replica with so much in flight and waiting as `demand` says; it takes what it may. */
class Replica {
  demand = 0;
  running = 0;
  readonly problems: string[] = [];
  /** Nothing reaches the store any more. */
  isDead = false;
  readonly shared: ReturnType<typeof sharedConcurrency>;

  constructor(store: Store, options: Partial<SharedConcurrencyOptions> = {}) {
    const reached: Store = {
      ...store,
      run: (...call) => (this.isDead ? new Promise(() => {}) : store.run(...call)),
    };
    const common = { pool: 'a', maxConcurrency: limit, clock, random: () => 0.5 };
    this.shared = sharedConcurrency(reached, { ...common, ...options });
    this.shared.attach({ stats: () => ({ waiting: Math.max(0, this.demand - this.running) }) });
    this.shared.on('problem', ({ code }) => this.problems.push(code));
  }

  /** Requests last less than a step. */
  step(): void {
    if (this.isDead) return;
    const running = { inFlightRequests: this.running, inFlightTokens: 0 };
    for (let turn = 0; turn < 2; turn++) {
      this.shared.saturation({ ...running, endpoints: [] } as never, clock.now());
      this.running = Math.min(this.demand, this.shared.limit);
      running.inFlightRequests = this.running;
    }
  }
}

async function pass(replicas: readonly Replica[], ms: number, seen: () => void = () => {}): Promise<void> {
  let most = 0;
  for (let passed = 0; passed < ms; passed += 100) {
    clock.advance(100);
    for (let turn = 0; turn < 12; turn++) await undefined;
    let running = 0;
    for (const replica of replicas) {
      replica.step();
      if (!replica.isDead) running += replica.running;
    }
    most = Math.max(most, running);
    seen();
  }
  expect(most).toBeLessThanOrEqual(limit);
}

const limits = (replicas: readonly Replica[]): number[] => replicas.map(({ shared }) => shared.limit);
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** Replicas that all want everything. */
async function hungry(
  store: Store,
  count: number,
  options: (index: number) => Partial<SharedConcurrencyOptions> = () => ({}),
): Promise<Replica[]> {
  const replicas = Array.from({ length: count }, (_, index) => new Replica(store, options(index)));
  for (const replica of replicas) replica.demand = limit;
  await pass(replicas, 10 * secondMs);
  return replicas;
}

describe('a pool that begins', () => {
  it('gives its first seats after a second', async () => {
    // A store that may have been another before: of the memory of this process more is known.
    const store = localStore({ clock });
    const memory = {};
    const us = (): number => (1e9 + clock.now()) * 1_000;
    const run: Store['run'] = async (script, keys, args) => script.local(memory, keys, args, us());
    const replica = new Replica({ ...store, run });
    replica.demand = limit;
    await pass([replica], secondMs - 100);
    expect(replica.shared.limit).toBe(0);
    await pass([replica], 200);
    expect(replica.shared.limit).toBe(limit);
  });
});

describe('a replica that restarts', () => {
  it.each([
    ['a name, kept by every incarnation', 'web-0'],
    ['no name', undefined],
  ])('again and again leaves the pool to the others, and has its part back when it stays up: %s', async (_, name) => {
    const store = localStore({ clock });
    const drainDuration = 20 * secondMs;
    const named = (index: number) => (name === undefined ? undefined : `web-${index}`);
    const replicas = await hungry(store, 3, (index) => ({ drainDuration, replica: named(index) }));
    for (let crashes = 0; crashes < 9; crashes++) {
      replicas[0]!.isDead = true;
      await pass(replicas, secondMs);
      replicas[0] = new Replica(store, { drainDuration, replica: name });
      replicas[0].demand = limit;
      await pass(replicas, 3 * secondMs);
      if (name !== undefined) expect(sum(limits(replicas.slice(1)))).toBeGreaterThanOrEqual(40);
    }
    // A lease until the last crash is noticed where there is no name; then the drain, and two refreshes.
    await pass(replicas, drainDuration + (name === undefined ? 5 : 0) * secondMs + 2 * secondMs);
    expect(sum(limits(replicas))).toBe(limit);
    for (const each of limits(replicas)) expect(each).toBeGreaterThanOrEqual(20);
  });

  it('without a name and not replaced keeps its safe share until it is forgotten', async () => {
    const store = localStore({ clock });
    const replicas = await hungry(store, 3, () => ({ drainDuration: '20s', forgetAfter: '2m' }));
    replicas[0]!.isDead = true;
    await pass(replicas, 60 * secondMs);
    expect(sum(limits(replicas.slice(1)))).toBe(limit - 21);
    await pass(replicas, 100 * secondMs);
    expect(sum(limits(replicas.slice(1)))).toBe(limit);
  });

  it('is told when another process has its name, and both stay within the limit', async () => {
    const store = localStore({ clock });
    const options = (index: number) => ({ drainDuration: '5s', replica: `web-${Math.min(index, 1)}` });
    const replicas = await hungry(store, 3, options);
    expect(replicas.map(({ problems }) => problems.includes('name-conflict'))).toEqual([false, true, true]);
    await pass(replicas, 30 * secondMs);
    expect(sum(limits(replicas))).toBe(limit);
    expect(replicas[1]!.shared.status[0]!.replica).not.toBe(replicas[2]!.shared.status[0]!.replica);
  });
});

describe('seats', () => {
  it('beyond maxShare are left to others', async () => {
    const store = localStore({ clock });
    const replicas = await hungry(store, 2, (index) => (index === 0 ? { maxShare: 4 } : {}));
    expect(limits(replicas)).toEqual([4, 60]);
  });

  it('of idle replicas go to one that needs them, and come back at the first request', async () => {
    const store = localStore({ clock });
    const replicas = Array.from({ length: limit }, () => new Replica(store));
    await pass(replicas, 10 * secondMs);
    replicas[0]!.demand = limit;
    await pass(replicas, 3 * secondMs);
    expect(replicas[0]!.shared.limit).toBeGreaterThanOrEqual(58);
    replicas[1]!.demand = 1;
    await pass(replicas, 2 * secondMs);
    expect(replicas[1]!.shared.limit).toBe(1);
  });

  it('that are fewer than the replicas go round', async () => {
    const store = localStore({ clock });
    const seats = 8;
    const replicas = await hungry(store, 12, () => ({ maxConcurrency: seats }));
    const got = new Map<Replica, number>();
    let used = 0;
    let steps = 0;
    await pass(replicas, 120 * secondMs, () => {
      steps++;
      for (const replica of replicas) {
        used += replica.running;
        got.set(replica, (got.get(replica) ?? 0) + replica.running);
      }
    });
    const parts = replicas.map((replica) => (got.get(replica) ?? 0) / steps);
    const fair = seats / replicas.length;
    expect(Math.min(...parts)).toBeGreaterThan(fair / 1.5);
    expect(Math.max(...parts)).toBeLessThan(fair * 1.5);
    expect(used / steps / seats).toBeGreaterThan(0.8);
  });

  it('are given back by close(), and none is taken after it', async () => {
    const store = localStore({ clock });
    const replicas = await hungry(store, 2);
    await replicas[0]!.shared.close();
    expect(replicas[0]!.shared.limit).toBe(0);
    await pass(replicas, 2 * secondMs);
    expect(replicas[0]!.running).toBe(0);
  });
});

describe('a replica that leaves', () => {
  /** A store that keeps each call, and can be flushed. */
  function kept() {
    let memory = {};
    const calls: Parameters<Store['run']>[] = [];
    const run: Store['run'] = async (...call) => {
      calls.push(call);
      return call[0].local(memory, call[1], call[2], (1e9 + clock.now()) * 1_000);
    };
    const flush = (): void => {
      memory = {};
    };
    return { store: { ...localStore({ clock }), run }, calls, flush };
  }

  it('is known for a drain: its late call is not taken for one that the store has lost', async () => {
    const { store, calls } = kept();
    const [leaving, staying] = (await hungry(store, 2, (index) => ({ replica: `web-${index}` }))) as [Replica, Replica];
    leaving.demand = 0;
    await pass([leaving, staying], 2 * secondMs);
    const [late] = calls.filter(([, , args]) => args[0] === 'web-0').slice(-1) as [Parameters<Store['run']>];
    await leaving.shared.close();
    await pass([staying], secondMs);
    const epochs: unknown[] = [];
    staying.shared.on('epoch', (epoch) => epochs.push(epoch));
    await store.run(...late);
    await pass([staying], 3 * secondMs);
    expect(epochs).toEqual([]);
    expect(staying.shared.status[0]).toMatchObject({ replicas: 1 });
  });

  it('tells a store that was flushed what it has in flight', async () => {
    const { store, flush } = kept();
    const staying = [new Replica(store), new Replica(store)] as const;
    await pass(staying, 5 * secondMs);
    // It does not hear of who comes.
    staying[0].isDead = true;
    const leaving = new Replica(store);
    leaving.demand = limit;
    await pass([staying[1], leaving], 3 * secondMs);
    const { running } = leaving;
    expect(running).toBeGreaterThan(limit / 4);
    flush();
    await leaving.shared.close();
    staying[0].isDead = false;
    for (const each of staying) each.demand = limit;
    let most = 0;
    const used = (): number => staying[0].running + staying[1].running;
    await pass(staying, 50 * secondMs, () => {
      most = Math.max(most, used());
    });
    expect(most).toBe(limit - running);
    await pass(staying, 20 * secondMs);
    expect(used()).toBe(limit);
  });
});

describe('a replica is called', () => {
  const pod = { HOSTNAME: 'web-0', KUBERNETES_SERVICE_HOST: '10.0.0.1' };

  it.each([
    ['as it is told', 'mine', pod, 'mine', 'given'],
    ['as the environment says', undefined, { ...pod, HEADGATE_REPLICA: 'own' }, 'own', 'found'],
    ['like its pod', undefined, pod, 'web-0', 'found'],
    ['like its host and port', undefined, { HOSTNAME: 'box', PORT: '8080' }, 'box:8080', 'found'],
  ] as const)('%s', (_, given, env, name, origin) => {
    expect(replicaName(given, `pool of ${name}`, env)).toEqual({ name, origin });
  });

  it('by chance where nothing lasts', () => {
    expect(replicaName(undefined, 'a', { HOSTNAME: 'box' })).toMatchObject({ origin: 'random' });
    expect(replicaName(undefined, 'a', { HOSTNAME: 'a {box}', PORT: '1' })).toMatchObject({ origin: 'random' });
  });

  it('once in each process', () => {
    expect(replicaName(undefined, 'b', pod).name).toBe('web-0');
    expect(replicaName(undefined, 'b', pod).name).toBe('web-0.2');
  });
});
