/** The faults, each at random moments of a run, and what they may cost at most. */
import { Redis } from 'ioredis';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { Store, type StoreKind } from '../support/stores.js';
import { type Counter, counters, type Limits, mostTokens, type ReplicaPlan } from './messages.js';
import type { Observer } from './observer.js';
import { FaultyProxy } from './proxy.js';

const refreshMs = 100;
const leaseMs = 1_000;
const longestMs = 300;
/** The longest request, and what a busy machine adds. */
const drainMs = 2_000;
const limit = 16;
const limits: Limits = { requests: limit, tokens: 3 * limit, 'endpoint a': 6, 'endpoint b': 12 };

/** One run as its faults see it. */
interface Stage {
  readonly store: Store;
  readonly proxies: readonly FaultyProxy[];
  readonly observer: Observer;
  readonly random: () => number;
  /** Starts one more replica. */
  join(): Promise<void>;
  /** A second store that copies the first. */
  spare(): Promise<Store>;
}

export interface Scenario {
  readonly name: string;
  /** The most above the limit, as a part of it. */
  readonly bound: number;
  /** The run is expected to exceed the limit. */
  readonly isControl?: boolean;
  readonly options?: readonly string[];
  play(stage: Stage): Promise<void>;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function command(store: Store, ...words: readonly string[]): Promise<void> {
  const client = new Redis(store.port);
  client.on('error', () => {});
  try {
    await client.call(words[0] as string, ...words.slice(1));
  } finally {
    client.disconnect();
  }
}

const lossy = { drop: 0.2, repeat: 0.1, swap: 0.1, delayMs: 80 };

function bad({ proxies }: Stage): void {
  for (const proxy of proxies) proxy.faults = lossy;
}

/** Between a tenth of a second and a second. */
const aWhile = ({ random }: Stage): Promise<void> => pause(100 + 900 * random());

export const scenarios: readonly Scenario[] = [
  { name: 'no fault', bound: 0, play: async () => pause(1_500) },
  {
    name: 'answers dropped, delayed, repeated and swapped',
    bound: 0,
    async play(stage) {
      bad(stage);
      await pause(1_500);
      for (const proxy of stage.proxies) proxy.sever();
      await pause(800);
    },
  },
  {
    name: 'store killed, back empty',
    bound: 0,
    async play(stage) {
      await aWhile(stage);
      await stage.store.kill();
      await pause(100 + 1_500 * stage.random());
      await stage.store.up();
      await pause(1_200);
    },
  },
  {
    name: 'store killed, back with its append-only file',
    bound: 0,
    options: ['--appendonly', 'yes', '--appendfsync', 'everysec'],
    async play(stage) {
      await aWhile(stage);
      await stage.store.kill();
      await pause(100 + 1_500 * stage.random());
      await stage.store.up();
      await pause(1_200);
    },
  },
  {
    name: 'store stopped for longer than a lease',
    bound: 0,
    async play(stage) {
      await aWhile(stage);
      stage.store.pause();
      await pause(leaseMs * (1.1 + 2 * stage.random()));
      stage.store.resume();
      await pause(1_200);
    },
  },
  {
    name: 'store flushed, some answers lost',
    bound: 0,
    async play(stage) {
      if (stage.random() < 0.5) bad(stage);
      await aWhile(stage);
      await command(stage.store, 'FLUSHALL');
      await aWhile(stage);
      await command(stage.store, 'FLUSHALL');
      await pause(1_000);
    },
  },
  {
    name: 'clients paused',
    bound: 0,
    async play(stage) {
      await aWhile(stage);
      await command(stage.store, 'CLIENT', 'PAUSE', String(Math.round(200 + 1_500 * stage.random())), 'ALL');
      await pause(2_000);
    },
  },
  {
    name: 'failover to a copy',
    // What was granted by calls that the copy never heard of.
    bound: 1 / 2,
    async play(stage) {
      const spare = await stage.spare();
      await aWhile(stage);
      await stage.store.kill();
      await command(spare, 'REPLICAOF', 'NO', 'ONE');
      for (const proxy of stage.proxies) {
        proxy.target = spare.port;
        proxy.sever();
      }
      await pause(1_500);
    },
  },
  {
    name: 'replicas killed, others join',
    bound: 0,
    async play(stage) {
      for (let i = 0; i < 2 && stage.observer.size > 1; i++) {
        await aWhile(stage);
        stage.observer.kill(Math.floor(stage.random() * stage.observer.size));
        await stage.join();
      }
      await pause(1_000);
    },
  },
  {
    name: 'replicas cut off for a while',
    bound: 0,
    async play(stage) {
      const cut = stage.proxies.filter(() => stage.random() < 0.5);
      await aWhile(stage);
      for (const proxy of cut) {
        proxy.isCut = true;
        proxy.sever();
      }
      await pause(leaseMs * (0.5 + 3 * stage.random()));
      for (const proxy of cut) proxy.isCut = false;
      await pause(1_000);
    },
  },
];

export const control: Scenario = {
  name: 'control: without the step that covers lost answers',
  bound: 1,
  isControl: true,
  async play(stage) {
    bad(stage);
    await pause(3_000);
  },
};

/** What became of one limit. */
export interface CountResult {
  readonly mostOver: number;
  /** The most that it may be. */
  readonly bound: number;
  readonly taken: number;
}

export interface RunResult {
  readonly counts: ReadonlyMap<Counter, CountResult>;
  readonly replicas: number;
  /** Nothing was dispatched after the fault. */
  readonly isStuck: boolean;
  readonly problems: readonly string[];
}

function countsOf({ bound, isControl = false }: Scenario, { counts, joined }: Observer): Map<Counter, CountResult> {
  const results = new Map<Counter, CountResult>();
  for (const counter of counters) {
    const { mostOver, taken, limit: whole } = counts.get(counter)!;
    // A gate looks before it lets go: each replica may go over by its last request.
    const lastRequests = counter === 'tokens' ? joined * (mostTokens - 1) : 0;
    // The script of the control is changed for requests alone: the other limits see the same lost answers, and hold.
    const part = isControl && counter !== 'requests' ? 0 : bound;
    results.set(counter, { mostOver, taken, bound: part * whole + lastRequests });
  }
  return results;
}

const clients = ['ioredis', 'redis', 'iovalkey'] as const;
const hourMs = 3_600_000;

export async function runScenario(
  scenario: Scenario,
  seed: number,
  kind: StoreKind,
  observer: Observer,
): Promise<RunResult> {
  const random = seededRandom(seed * 7_919 + 17);
  const store = await Store.start(kind, scenario.options);
  const stores = [store];
  const replicas = 2 + Math.floor(random() * 7);
  const proxies: FaultyProxy[] = [];
  const pool = `faults-${seed}`;
  async function plan(): Promise<ReplicaPlan> {
    const proxy = new FaultyProxy(stores.at(-1)!.port, random);
    await proxy.listen();
    proxies.push(proxy);
    return {
      port: proxy.port,
      client: clients[Math.floor(random() * clients.length)] as (typeof clients)[number],
      pool,
      limits,
      seed: Math.floor(random() * 2 ** 31),
      refreshMs,
      leaseMs,
      drainMs,
      longestMs,
      skewMs: (random() < 0.5 ? -1 : 1) * hourMs * random(),
      isControl: scenario.isControl === true,
    };
  }
  const plans: ReplicaPlan[] = [];
  for (let i = 0; i < replicas; i++) plans.push(await plan());
  observer.begin(plans);
  const shuffleDemand = (): void => {
    for (let i = 0; i < observer.size; i++) observer.demand(i, Math.floor((random() ** 2 * 3 * limit) / 2));
  };
  shuffleDemand();
  const shuffling = setInterval(shuffleDemand, 400);
  const stage: Stage = {
    store,
    proxies,
    observer,
    random,
    join: async () => observer.add(await plan()),
    async spare() {
      const copy = await Store.start(kind, ['--replicaof', '127.0.0.1', String(store.port)]);
      stores.push(copy);
      return copy;
    },
  };
  try {
    // The store learns for one lease.
    await pause(leaseMs + 2 * refreshMs);
    // Processes that start for the first time take a while.
    for (let waited = 0; waited < 200 && !observer.hasTakenSince(1); waited++) await pause(100);
    await scenario.play(stage);
    const endedAtMs = performance.now();
    for (const proxy of proxies) proxy.faults = { drop: 0, repeat: 0, swap: 0, delayMs: 0 };
    for (let i = 0; i < observer.size; i++) observer.demand(i, limit);
    for (let waited = 0; waited < 200 && !observer.hasTakenSince(endedAtMs); waited++) await pause(100);
    const isStuck = !observer.hasTakenSince(endedAtMs);
    clearInterval(shuffling);
    await observer.end();
    return { counts: countsOf(scenario, observer), replicas, isStuck, problems: [...observer.problems] };
  } finally {
    clearInterval(shuffling);
    for (const proxy of proxies) proxy.close();
    await Promise.all(stores.map((each) => each.stop()));
  }
}
