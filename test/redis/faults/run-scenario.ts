/** One run: a store, replicas behind proxies, a fault, and the time until everything is as before. */
import { seededRandom } from '../../../src/base/seeded-random.js';
import { Store, type StoreKind } from '../support/stores.js';
import { type Counter, counters, mostTokens, type ReplicaPlan } from './messages.js';
import type { Observer } from './observer.js';
import { FaultyProxy } from './proxy.js';
import type { Scenario, Stage } from './scenarios.js';
import {
  busyMs,
  callTimeoutMs,
  drainMs,
  forgetMs,
  leaseMs,
  limit,
  limits,
  longestMs,
  refreshMs,
  slowness,
} from './spans.js';

/** What became of one limit. */
interface CountResult {
  readonly mostOver: number;
  /** The most that it may be. */
  readonly bound: number;
  readonly taken: number;
}

export interface RunResult {
  readonly counts: ReadonlyMap<Counter | 'quota', CountResult>;
  readonly replicas: number;
  /** From the end of the fault until all seats could be used, and none more were. Infinity: not in time. */
  readonly backAfterMs: number;
  /** In words, at the end of the run. */
  readonly usable: readonly string[];
  readonly problems: readonly string[];
}

const clients = ['ioredis', 'redis', 'iovalkey'] as const;
const hourMs = 3_600_000;
/** All seats are back when they stay so for as long. */
const lookMs = 400 * slowness;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function countsOf(
  { over, isControl = false, quota }: Scenario,
  { counts, joined, spending }: Observer,
  replicas: number,
): Map<Counter | 'quota', CountResult> {
  const results = new Map<Counter | 'quota', CountResult>();
  for (const counter of counters) {
    const { mostOver, taken, limit: whole } = counts.get(counter)!;
    // A gate looks before it lets go: each replica may go over by its last request.
    const lastRequests = counter === 'tokens' ? joined * (mostTokens - 1) : 0;
    // The script of the control is changed for requests alone: the other limits see the same lost answers, and hold.
    const bound = isControl && counter !== 'requests' ? 0 : over.most({ counter, limit: whole, replicas });
    results.set(counter, { mostOver, taken, bound: bound + lastRequests });
  }
  if (quota !== undefined)
    results.set('quota', {
      mostOver: spending.mostOver(quota),
      taken: spending.times,
      bound: over.most({ counter: 'quota', limit: quota.burst, replicas: joined }),
    });
  return results;
}

/** How long it took until all seats could be used for a while; Infinity when it is not in time. */
async function whole(observer: Observer, endedAtMs: number, { back, isControl = false }: Scenario): Promise<number> {
  const patienceMs = isControl ? 0 : back.ms + busyMs;
  for (;;) {
    const nowMs = performance.now();
    const sinceMs = observer.wholeSinceMs;
    if (nowMs >= endedAtMs + Math.min(back.ms, patienceMs) + lookMs && nowMs >= sinceMs + lookMs)
      return Math.max(0, sinceMs - endedAtMs);
    if (nowMs >= endedAtMs + patienceMs + lookMs && sinceMs > endedAtMs + patienceMs) return Number.POSITIVE_INFINITY;
    await pause(20);
  }
}

export async function runScenario(
  scenario: Scenario,
  seed: number,
  kind: StoreKind,
  observer: Observer,
): Promise<RunResult> {
  const random = seededRandom(seed * 7_919 + 17);
  const store = await Store.start(kind, scenario.options);
  const stores = [store];
  const replicas = scenario.replicas ?? 2 + Math.floor(random() * 7);
  const proxies: FaultyProxy[] = [];
  let names = 0;
  async function plan(name = `replica-${names++}`): Promise<ReplicaPlan> {
    const proxy = new FaultyProxy(stores.at(-1)!.port, random);
    await proxy.listen();
    proxies.push(proxy);
    return {
      port: proxy.port,
      client: clients[Math.floor(random() * clients.length)] as (typeof clients)[number],
      pool: `faults-${seed}`,
      name,
      replicas: scenario.expected,
      limits,
      seed: Math.floor(random() * 2 ** 31),
      refreshMs,
      leaseMs,
      drainMs,
      forgetMs,
      longestMs,
      callTimeoutMs,
      skewMs: (random() < 0.5 ? -1 : 1) * hourMs * random(),
      script: scenario.script ?? 'as it is',
      quota: scenario.quota && { ...scenario.quota, replicas },
    };
  }
  const plans: ReplicaPlan[] = [];
  for (let i = 0; i < replicas; i++) plans.push(await plan());
  observer.begin(plans, 2 * refreshMs);
  const shuffleDemand = (): void => {
    for (let i = 0; i < observer.size; i++) observer.demand(i, Math.floor((random() ** 2 * 3 * limit) / 2));
  };
  shuffleDemand();
  const shuffling = setInterval(shuffleDemand, 400 * slowness);
  const stage: Stage = {
    store,
    proxies,
    observer,
    random,
    join: async (name) => observer.add(await plan(name)),
    async spare() {
      const copy = await Store.start(kind, ['--replicaof', '127.0.0.1', String(store.port)]);
      stores.push(copy);
      return copy;
    },
  };
  try {
    // Processes that start take a while.
    const complete = async (): Promise<void> => {
      while (!observer.isComplete) await pause(20);
    };
    await complete();
    // The store learns for one lease.
    await pause(leaseMs + 2 * refreshMs);
    for (let waited = 0; waited < 600 && !observer.hasTakenSince(1); waited++) await pause(100);
    await scenario.play(stage);
    clearInterval(shuffling);
    await complete();
    const endedAtMs = performance.now();
    for (const proxy of proxies) proxy.faults = { drop: 0, repeat: 0, swap: 0, delayMs: 0 };
    for (let i = 0; i < observer.size; i++) observer.demand(i, 3 * limit);
    const backAfterMs = await whole(observer, endedAtMs, scenario);
    const usable = [...observer.counts].map(([counter, count]) => `${count.usable} of ${count.limit} ${counter}`);
    await observer.end();
    const counts = countsOf(scenario, observer, replicas);
    return { counts, replicas, backAfterMs, usable, problems: [...observer.problems] };
  } finally {
    clearInterval(shuffling);
    for (const proxy of proxies) proxy.close();
    await Promise.all(stores.map((each) => each.stop()));
  }
}
