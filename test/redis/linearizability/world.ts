/** Replicas of the gateway in one process, each with a connection of its own, and what happens to them. */
import { Redis } from 'ioredis';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { FlowController } from '../../../src/index.js';
import { redisStore, type SharedConcurrency, sharedConcurrency } from '../../../src/redis/index.js';
import { Store, type StoreKind } from '../support/stores.js';
import { type CallFaults, type History, recorded, type Wire } from './recorded-store.js';

const limit = 16;
const longestMs = 80;
const spans = { refreshInterval: 25, leaseDuration: 200, drainDuration: 300, forgetAfter: 900, callTimeout: 40 };
const lossy: CallFaults = { lost: 0.1, repeated: 0.15, answerLost: 0.15, delayMs: 12 };

interface Replica {
  readonly name: string;
  readonly wire: Wire;
  readonly shared: SharedConcurrency;
  readonly flow: FlowController;
  readonly redis: Redis;
  wanted: number;
  asking: number;
}

export interface Play {
  readonly seed: number;
  /** It goes on until so many calls have reached the store. */
  readonly calls: number;
  /** What becomes of the store in between. */
  readonly store?: 'flushed' | 'killed';
  readonly edit?: (text: string) => string;
}

export interface Played {
  readonly history: History;
  readonly dispatched: number;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function play(
  kind: StoreKind,
  { seed, calls, store: fate, edit = (text) => text }: Play,
): Promise<Played> {
  const random = seededRandom(seed);
  const server = await Store.start(kind);
  const history: History = { replicas: 0, losesState: fate !== undefined, calls: [] };
  // No call that was repeated outlives the store's memory.
  const faults = fate === undefined ? lossy : { ...lossy, repeated: 0 };
  const replicas = new Set<Replica>();
  let dispatched = 0;
  let made = 0;

  /** A new replica, or a restart of one. */
  function start(before?: Replica): Replica {
    const redis = new Redis(server.port, {
      retryStrategy: () => 20,
      enableOfflineQueue: false,
      enableReadyCheck: false,
    });
    redis.on('error', () => {});
    const name = before?.name ?? `replica-${made++}`;
    const wire = recorded(redisStore(redis), history, faults, random, edit, name);
    const options = { pool: 'history', replica: name, maxConcurrency: limit, random, ...spans };
    const shared = sharedConcurrency(wire.store, options);
    const flow = new FlowController({ saturationDetector: shared, defaultRequestTtl: 0 });
    shared.attach(flow);
    const replica = { name, wire, shared, flow, redis, wanted: 0, asking: 0 };
    replicas.add(replica);
    return replica;
  }

  function ask(replica: Replica): void {
    while (replicas.has(replica) && replica.asking < replica.wanted) {
      replica.asking++;
      void request(replica).then(() => {
        replica.asking--;
        ask(replica);
      });
    }
  }

  async function request({ flow }: Replica): Promise<void> {
    const outcome = await flow.enqueue({ byteSize: 1 }, { fairnessId: 'all', priority: 0 });
    if (outcome.type !== 'Dispatched') return;
    dispatched++;
    await pause(longestMs * random());
    outcome.lease.release();
  }

  async function end(replica: Replica): Promise<void> {
    replicas.delete(replica);
    await replica.flow.close();
    await replica.shared.close();
    replica.redis.disconnect();
  }

  /** One of the things that happen to replicas. */
  function happen(): void {
    const [replica] = [...replicas].sort(() => random() - 0.5);
    if (replica === undefined) return;
    const die = random();
    if (die < 0.4) {
      replica.wire.isCut = true;
      setTimeout(() => {
        replica.wire.isCut = false;
      }, 700 * random());
    } else if (die < 0.6) {
      // It crashes, or stops in order; another takes its place.
      replica.wire.isCut = die < 0.5;
      void end(replica);
      start(random() < 0.5 ? replica : undefined);
    } else if (die < 0.8) {
      const next = limit - Math.floor(4 * random());
      for (const each of replicas) each.shared.setLimit(next);
    }
  }

  for (let i = 0; i < 5; i++) start();
  const admin = new Redis(server.port, { retryStrategy: () => 20 });
  admin.on('error', () => {});
  try {
    for (let step = 0; history.calls.length < calls; step++) {
      for (const replica of replicas) {
        replica.wanted = Math.floor(random() ** 2 * 1.5 * limit);
        ask(replica);
      }
      if (step % 2 === 1) happen();
      if (step % 8 === 6 && fate === 'flushed') await admin.flushall();
      if (step % 8 === 6 && fate === 'killed') await server.kill().then(() => server.up());
      await pause(120);
    }
    await Promise.all([...replicas].map(end));
    // Repetitions are late.
    await pause(10 * lossy.delayMs);
    return { history, dispatched };
  } finally {
    admin.disconnect();
    await server.stop();
  }
}
