/**
 * The faults, each at random moments of a run; what they may cost at most, and how soon all seats are back after them.
 * The table of docs/scale-out.md is made of this list, see `bounds.ts`.
 */
import { Redis } from 'ioredis';
import { jumpClock } from '../support/shifted-clock.js';
import type { Store } from '../support/stores.js';
import type { QuotaPlan, ReplicaPlan } from './messages.js';
import type { Observer } from './observer.js';
import type { FaultyProxy } from './proxy.js';
import {
  drainMs,
  forgetMs,
  leaseMs,
  nothing,
  refreshMs,
  type StatedExcess,
  type StatedReturn,
  slowness,
  within,
} from './spans.js';

/** One run as its faults see it. */
export interface Stage {
  readonly store: Store;
  readonly proxies: readonly FaultyProxy[];
  readonly observer: Observer;
  readonly random: () => number;
  /** Starts one more replica; with the name of one that has ended it is a restart. */
  join(name?: string): Promise<void>;
  /** A second store that copies the first. */
  spare(): Promise<Store>;
}

export interface Scenario {
  readonly name: string;
  readonly over: StatedExcess;
  readonly back: StatedReturn;
  /** How many replicas begin. @default 2 to 8 */
  readonly replicas?: number;
  /** The run is expected to exceed the limit on requests. */
  readonly isControl?: boolean;
  /** Of the store's command line. */
  readonly options?: readonly string[];
  readonly script?: ReplicaPlan['script'];
  /** Of the option `replicas`. */
  readonly expected?: number;
  readonly quota?: QuotaPlan;
  play(stage: Stage): Promise<void>;
}

const lasting = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const pause = (ms: number): Promise<void> => lasting(ms * slowness);

async function withClient<T>(store: Store, act: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(store.port);
  client.on('error', () => {});
  try {
    return await act(client);
  } finally {
    client.disconnect();
  }
}

const command = (store: Store, ...[name, ...words]: readonly [string, ...string[]]): Promise<unknown> =>
  withClient(store, (client) => client.call(name, ...words));

const lossy = { drop: 0.2, repeat: 0.1, swap: 0.1, delayMs: 80 * slowness };

function bad({ proxies }: Stage): void {
  for (const proxy of proxies) proxy.faults = lossy;
}

/** Between a tenth of a second and a second. */
const aWhile = ({ random }: Stage): Promise<void> => pause(100 + 900 * random());

async function restart(stage: Stage): Promise<void> {
  await aWhile(stage);
  await stage.store.kill();
  await pause(100 + 1_500 * stage.random());
  await stage.store.up();
}

function lead(proxies: readonly FaultyProxy[], store: Store): void {
  for (const proxy of proxies) {
    proxy.target = store.port;
    proxy.sever();
  }
}

function cut(proxies: readonly FaultyProxy[]): void {
  for (const proxy of proxies) {
    proxy.isCut = true;
    proxy.sever();
  }
}

function mend(proxies: readonly FaultyProxy[]): void {
  for (const proxy of proxies) proxy.isCut = false;
}

const appendOnly = ['--appendonly', 'yes', '--appendfsync', 'everysec'];
const onceMore: StatedExcess = { words: 'the limit', most: ({ limit }) => limit };

const quota: QuotaPlan = { perMinute: 24_000, burst: 400, largest: 40 };

export const scenarios: readonly Scenario[] = [
  { name: 'no fault', over: nothing, back: within(), play: async () => pause(1_000) },
  {
    name: 'answers lost, late, repeated, swapped',
    over: nothing,
    back: within(),
    async play(stage) {
      bad(stage);
      await pause(1_500);
      for (const proxy of stage.proxies) proxy.sever();
      await pause(800);
    },
  },
  {
    name: 'store stopped for longer than a lease',
    over: nothing,
    back: within(),
    async play(stage) {
      await aWhile(stage);
      stage.store.pause();
      await lasting(leaseMs * (1.1 + 2 * stage.random()));
      stage.store.resume();
    },
  },
  {
    name: 'clients of the store paused',
    over: nothing,
    back: within(),
    async play(stage) {
      await aWhile(stage);
      const pausedMs = Math.round(200 + 1_500 * stage.random());
      await command(stage.store, 'CLIENT', 'PAUSE', String(pausedMs * slowness), 'ALL');
      await pause(pausedMs);
    },
  },
  { name: 'store killed, back empty', over: nothing, back: within('lease'), play: restart },
  {
    name: 'store flushed twice, answers lost',
    over: nothing,
    back: within('lease'),
    async play(stage) {
      if (stage.random() < 0.5) bad(stage);
      await aWhile(stage);
      await command(stage.store, 'FLUSHALL');
      await aWhile(stage);
      await command(stage.store, 'FLUSHALL');
    },
  },
  {
    name: 'three restarts with an append-only file',
    over: nothing,
    back: within('lease'),
    options: appendOnly,
    async play(stage) {
      for (let i = 0; i < 3; i++) await restart(stage);
    },
  },
  {
    name: 'old snapshot after a rolling restart',
    over: nothing,
    back: within('lease', 'drain'),
    async play(stage) {
      await command(stage.store, 'SAVE');
      for (let left = stage.observer.size; left > 0; left--) {
        await stage.join(stage.observer.kill(0));
        await lasting(2 * refreshMs);
      }
      await lasting(leaseMs + drainMs);
      await restart(stage);
    },
  },
  {
    name: 'failover to a copy',
    over: { words: 'the last grants before it', most: ({ limit }) => limit / 2 },
    back: within('lease', 'drain'),
    async play(stage) {
      const spare = await stage.spare();
      await aWhile(stage);
      await stage.store.kill();
      await command(spare, 'REPLICAOF', 'NO', 'ONE');
      lead(stage.proxies, spare);
    },
  },
  {
    name: 'split brain, to its end',
    over: onceMore,
    back: within('longest'),
    async play(stage) {
      const spare = await stage.spare();
      await aWhile(stage);
      await command(spare, 'REPLICAOF', 'NO', 'ONE');
      const apart = stage.proxies.filter((_, index) => index % 2 === 0);
      lead(apart, spare);
      await lasting((leaseMs + drainMs + forgetMs) * (0.3 + stage.random()));
      lead(apart, stage.store);
    },
  },
  {
    name: 'store’s clock jumps by an hour',
    over: onceMore,
    back: within('lease', 'longest'),
    script: 'on a shifted clock',
    async play(stage) {
      await aWhile(stage);
      const direction = stage.random() < 0.5 ? -1 : 1;
      await withClient(stage.store, (client) => jumpClock(client, direction * 3_600));
    },
  },
  {
    name: 'replica in a crash loop',
    over: nothing,
    back: within('drain'),
    async play(stage) {
      await aWhile(stage);
      for (let i = 0; i < 5; i++) {
        await stage.join(stage.observer.kill(0));
        await pause(300 + 300 * stage.random());
      }
    },
  },
  {
    name: 'replicas killed, others join',
    over: nothing,
    back: within('lease', 'drain', 'forget'),
    async play(stage) {
      for (let i = 0; i < 2 && stage.observer.size > 1; i++) {
        await aWhile(stage);
        stage.observer.kill(Math.floor(stage.random() * stage.observer.size));
        await stage.join();
      }
    },
  },
  {
    name: 'replicas cut off',
    over: nothing,
    back: within(),
    async play(stage) {
      const some = stage.proxies.filter(() => stage.random() < 0.5);
      await aWhile(stage);
      cut(some);
      await lasting(leaseMs * (0.5 + 3 * stage.random()));
      mend(some);
    },
  },
  {
    name: 'replica cut off for longer than `forgetAfter`',
    over: { words: 'its safe share', most: ({ limit, replicas }) => Math.floor(limit / replicas) },
    back: within('longest'),
    async play(stage) {
      await aWhile(stage);
      const one = stage.proxies.slice(0, 1);
      cut(one);
      await lasting(leaseMs + drainMs + forgetMs + leaseMs * stage.random());
      mend(one);
    },
  },
  {
    name: '3 replicas become 6, store away',
    over: {
      words: '⌊limit / `replicas`⌋ each',
      most: ({ limit }) => 3 * Math.floor(limit / 6),
    },
    back: within('lease', 'longest'),
    replicas: 3,
    expected: 6,
    async play(stage) {
      await aWhile(stage);
      await stage.store.kill();
      for (let i = 0; i < 3; i++) await stage.join();
      await lasting(leaseMs * (1.5 + stage.random()));
      await stage.store.up();
    },
  },
  {
    name: 'requests larger than chunks of a quota',
    over: nothing,
    back: within(),
    quota,
    async play(stage) {
      bad(stage);
      await pause(3_000);
    },
  },
];

export const control: Scenario = {
  name: 'control: without the second rule, answers lost',
  over: onceMore,
  back: { words: '', ms: Number.POSITIVE_INFINITY },
  isControl: true,
  script: 'without step five',
  async play(stage) {
    bad(stage);
    await pause(3_000);
  },
};
