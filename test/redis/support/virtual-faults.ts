/**
 * Replicas on a real store in virtual time, and what can happen to both: what is over the limit, and how soon all seats
 * can be used again.
 */
import type { Redis } from 'ioredis';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { type IoRedisClient, type SharedConcurrency, sharedConcurrency } from '../../../src/redis/index.js';
import { VirtualWorld } from './virtual-world.js';

export const spans = { refresh: 1_000, lease: 5_000, drain: 20_000, forget: 60_000, longest: 20_000 };
export const limit = 64;

export interface VirtualReplica {
  readonly name: string;
  readonly shared: SharedConcurrency;
  isCut: boolean;
  /** Which of two stores it reaches. */
  side: '' | ':other';
  isDead: boolean;
  wanted: number;
  /** What the detector sees. */
  readonly pool: { readonly endpoints: []; inFlightRequests: number; readonly inFlightTokens: number };
}

/** One run as a fault sees it. */
export interface VirtualStage {
  readonly live: readonly VirtualReplica[];
  readonly random: () => number;
  /** So much time goes by. */
  pass(ms: number): Promise<void>;
  join(name?: string): VirtualReplica;
  kill(replica: VirtualReplica): void;
  /** The store, or a second one, has no state any more. */
  flush(): Promise<void>;
  save(): Promise<() => Promise<void>>;
  /** A second store begins with what the first one has. */
  split(): Promise<void>;
  jump(ms: number): Promise<void>;
  setStoreAway(isAway: boolean): void;
}

export interface VirtualFinding {
  readonly mostOver: number;
  /** From the end of the fault until all seats could be used, and none more were. */
  readonly backMs: number;
}

let runs = 0;

export async function virtualFault(
  redis: Redis,
  seed: number,
  count: number,
  isDemandSteady: boolean,
  play: (stage: VirtualStage) => Promise<void>,
): Promise<VirtualFinding> {
  const world = new VirtualWorld(redis);
  const random = seededRandom(seed * 7_919 + 17);
  const pool = `fault-${process.pid}-${runs++}`;
  const key = `headgate:{${pool}}:lease`;
  let live: VirtualReplica[] = [];
  let isAway = false;
  let inFlight = 0;
  let mostOver = 0;
  let badUntilMs = 0;
  let lackingSinceMs: number | undefined;
  let names = 0;

  function look(): void {
    // Seats that move while they are in use are not lost.
    const usable = live.reduce((sum, each) => sum + Math.max(each.shared.limit, each.pool.inFlightRequests), 0);
    if (usable >= limit) lackingSinceMs = undefined;
    else lackingSinceMs ??= world.now();
    const isLacking = lackingSinceMs !== undefined && world.now() - lackingSinceMs > spans.refresh;
    if (isLacking || inFlight > limit) badUntilMs = world.now();
    mostOver = Math.max(mostOver, inFlight - limit);
    world.setTimeout(look, 100);
  }

  function join(name = `replica-${names++}`): VirtualReplica {
    const client: IoRedisClient = world.client(() => ({
      isCut: replica.isCut || replica.isDead || isAway,
      latencyMs: 1 + 4 * random(),
    }));
    // The script has one key.
    const reached: IoRedisClient = {
      evalsha: (digest, keys, first = '', ...rest) => client.evalsha(digest, keys, first + replica.side, ...rest),
      eval: (text, keys, first = '', ...rest) => client.eval(text, keys, first + replica.side, ...rest),
    };
    const shared = sharedConcurrency(reached, {
      pool,
      replica: name,
      replicas: 6,
      maxConcurrency: limit,
      refreshInterval: spans.refresh,
      leaseDuration: spans.lease,
      drainDuration: spans.drain,
      forgetAfter: spans.forget,
      clock: world,
      random,
    });
    const view: VirtualReplica['pool'] = { endpoints: [], inFlightRequests: 0, inFlightTokens: 0 };
    const replica: VirtualReplica = {
      name,
      shared,
      isCut: false,
      side: '',
      isDead: false,
      wanted: 2 * limit,
      pool: view,
    };
    shared.attach({ stats: () => ({ waiting: Math.max(0, replica.wanted - view.inFlightRequests) }) });
    shared.subscribe?.(() => dispatch(replica));
    live.push(replica);
    return replica;
  }

  function dispatch(replica: VirtualReplica): void {
    const { pool: view, shared } = replica;
    while (!replica.isDead && view.inFlightRequests < replica.wanted) {
      if (shared.saturation(view, world.now()) >= 1) return;
      view.inFlightRequests++;
      inFlight++;
      mostOver = Math.max(mostOver, inFlight - limit);
      world.setTimeout(
        () => {
          view.inFlightRequests--;
          inFlight--;
          dispatch(replica);
        },
        spans.longest * (0.05 + 0.95 * random()),
      );
    }
  }

  function demand(isHungry: boolean): void {
    for (const replica of live) {
      replica.wanted = isHungry || isDemandSteady ? 2 * limit : Math.floor(random() ** 2 * limit);
      dispatch(replica);
    }
  }

  const stage: VirtualStage = {
    get live() {
      return live;
    },
    random,
    async pass(ms) {
      const endMs = world.now() + ms;
      while (world.now() < endMs) {
        await world.run(Math.min(endMs, world.now() + 10_000));
        demand(false);
      }
    },
    join,
    kill(replica) {
      replica.isDead = true;
      live = live.filter((each) => each !== replica);
    },
    flush: async () => void (await redis.del(key)),
    async save() {
      const saved = await redis.dumpBuffer(key);
      return async () => void (await redis.restore(key, 0, saved, 'REPLACE'));
    },
    split: async () => void (await redis.copy(key, `${key}:other`)),
    async jump(ms) {
      world.storeOffsetMs += ms;
      const left = Number(await redis.call('PEXPIRETIME', key)) - world.storeNowMs();
      if (left <= 0) await redis.del(key);
    },
    setStoreAway: (next) => {
      isAway = next;
    },
  };

  for (let i = 0; i < count; i++) join();
  look();
  await world.run(15_000);
  await stage.pass(10_000 + 10_000 * random());
  await play(stage);
  demand(true);
  const endedAtMs = world.now();
  await world.run(endedAtMs + spans.lease + spans.drain + spans.forget + 60_000);
  for (const replica of live) stage.kill(replica);
  return { mostOver, backMs: Math.max(0, badUntilMs - endedAtMs) };
}
