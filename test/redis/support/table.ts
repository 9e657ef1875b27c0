/** The experiments of the scale-out table: replicas with real controllers on a real store, in virtual time. */
import type { Redis } from 'ioredis';
import { vi } from 'vitest';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { FlowController, type Lease } from '../../../src/index.js';
import { machineStore, type SharedConcurrency, type Store, sharedConcurrency } from '../../../src/redis/index.js';
import { type CallFate, VirtualWorld } from './virtual-world.js';

export interface Experiment {
  readonly seed: number;
  readonly refreshMs?: number;
  readonly leaseMs?: number;
  readonly drainMs?: number;
  readonly forgetMs?: number;
  /** Workers of one machine, which are one replica; a machine is cut off as a whole. @default 1 */
  readonly workers?: number;
  /** Share of the answers that get lost, 0…1. */
  readonly lost?: number;
  /** Chance of a replica each second to be cut off for 3 to 30 s. */
  readonly partitions?: number;
  /** Chance each second that some replica dies; another takes its place a second later. */
  readonly crashes?: number;
  /** Whether the requests of a replica that dies end with it; otherwise they run on in the model server. */
  readonly crashesEndRequests?: boolean;
  /** When the store loses everything. */
  readonly flushedAtMs?: number;
  /** For how long one replica is cut off from then on. */
  readonly flushCutsOffMs?: number;
  /** Changes the script: for the control that must fail. */
  readonly edit?: (text: string) => string;
  readonly lastsMs?: number;
}

export interface Finding {
  /** The most requests in flight above the limit. */
  readonly mostOver: number;
  /** Share of the time above it. */
  readonly timeOver: number;
  readonly utilization: number;
  readonly storeCalls: number;
}

const replicas = 6;
const limit = 64;
const load = 1.5;
const serviceMs = { from: 1_000, to: 20_000 };
const warmUpMs = 20_000;

/** Area under a step function. */
class Level {
  value = 0;
  most = 0;
  over = 0;
  used = 0;
  private sinceMs = 0;
  private readonly now: () => number;

  constructor(now: () => number) {
    this.now = now;
  }

  add(step: number): void {
    this.tick();
    this.value += step;
    this.most = Math.max(this.most, this.value);
  }

  tick(): void {
    const nowMs = this.now();
    const spanMs = Math.max(0, nowMs - Math.max(this.sinceMs, warmUpMs));
    if (this.value > limit) this.over += spanMs;
    this.used += spanMs * Math.min(this.value, limit);
    this.sinceMs = nowMs;
  }
}

interface Replica {
  readonly flow: FlowController;
  readonly shared: SharedConcurrency;
  running: number;
}

/** The place at which the running sum of `shares` passes `point`. */
function drawIndex(shares: readonly number[], point: number): number {
  let sum = 0;
  return shares.findIndex((share, index) => {
    sum += share;
    return point < sum || index === shares.length - 1;
  });
}

let experiments = 0;

/** The names of replicas decide between equal wants: they come from the seed. */
function drawNames(random: () => number): () => void {
  const names = vi.spyOn(globalThis.crypto, 'getRandomValues').mockImplementation((bytes) => {
    for (let i = 0; i < (bytes as Uint8Array).length; i++) (bytes as Uint8Array)[i] = 256 * random();
    return bytes;
  });
  return () => names.mockRestore();
}

export async function experiment(redis: Redis, plan: Experiment): Promise<Finding> {
  const {
    refreshMs = 1_000,
    leaseMs = 5_000,
    drainMs = 0,
    forgetMs = 600_000,
    lost = 0,
    partitions = 0,
    crashes = 0,
    lastsMs = 600_000,
    crashesEndRequests = false,
    workers = 1,
    edit,
  } = plan;
  const world = new VirtualWorld(redis);
  const random = seededRandom(plan.seed);
  const restoreNames = drawNames(seededRandom(plan.seed + 1));
  const inFlight = new Level(() => world.now());
  const pool = `table-${process.pid}-${experiments++}`;
  const cutUntilMs = new Array<number>(replicas).fill(0);
  const live: (Replica | undefined)[] = [];

  const machines = new Map<number, Store>();
  const spans = { drainDuration: drainMs, forgetAfter: forgetMs };
  const options = { pool, clock: world, random, refreshInterval: refreshMs, leaseDuration: leaseMs, ...spans };
  const ofWorkers = { refreshInterval: 100, leaseDuration: leaseMs / 2 };

  function machineOf(index: number): Store {
    const first = index - (index % workers);
    const fate = (): CallFate => {
      const isCut = world.now() < (cutUntilMs[first] ?? 0);
      return { isCut, isReplyLost: random() < lost, latencyMs: 1 + 4 * random() };
    };
    const machine = machines.get(first) ?? machineStore(world.client(fate, edit), options);
    machines.set(first, machine);
    return machine;
  }

  function start(index: number): void {
    const fate = (): CallFate => {
      const isCut = live[index] !== replica || world.now() < (cutUntilMs[index] ?? 0);
      return { isCut, isReplyLost: random() < lost, latencyMs: 1 + 4 * random() };
    };
    const shared =
      workers > 1
        ? sharedConcurrency(machineOf(index), { ...options, ...ofWorkers, maxConcurrency: limit })
        : sharedConcurrency(world.client(fate, edit), { ...options, maxConcurrency: limit });
    const flow = new FlowController({ saturationDetector: shared, clock: world, defaultRequestTtl: 0 });
    shared.attach(flow);
    const replica: Replica = { flow, shared, running: 0 };
    live[index] = replica;
  }

  async function serve(index: number): Promise<void> {
    const replica = live[index] as Replica;
    const outcome = await replica.flow.enqueue({ byteSize: 1 }, { fairnessId: 'all', priority: 0 });
    if (outcome.type !== 'Dispatched' || live[index] !== replica) return;
    inFlight.add(1);
    const { lease }: { lease: Lease } = outcome;
    replica.running++;
    world.setTimeout(
      () => {
        if (replica.running === 0) return;
        replica.running--;
        inFlight.add(-1);
        lease.release();
      },
      serviceMs.from + (serviceMs.to - serviceMs.from) * random(),
    );
  }

  /** A replica stops at once: nothing of it calls any more. */
  function crash(index: number): void {
    const dead = live[index];
    live[index] = undefined;
    if (dead !== undefined && crashesEndRequests) {
      inFlight.add(-dead.running);
      dead.running = 0;
    }
    world.setTimeout(() => start(index), 1_000);
  }

  let shares: number[] = [];
  function reshuffle(): void {
    const drawn = Array.from({ length: replicas }, () => random() ** 3 + 0.01);
    const sum = drawn.reduce((a, b) => a + b);
    shares = drawn.map((each) => each / sum);
    world.setTimeout(reshuffle, 60_000);
  }

  const meanServiceMs = (serviceMs.from + serviceMs.to) / 2;
  const gapMs = meanServiceMs / (limit * load);
  function arrive(): void {
    const index = drawIndex(shares, random());
    if (live[index] !== undefined) void serve(index);
    world.setTimeout(arrive, -Math.log(1 - random()) * gapMs);
  }

  function everySecond(): void {
    for (let index = 0; index < replicas; index++) {
      const isUp = live[index] !== undefined && world.now() >= (cutUntilMs[index] ?? 0);
      if (isUp && random() < partitions) cutUntilMs[index] = world.now() + 3_000 + 27_000 * random();
      else if (isUp && random() < crashes / replicas) crash(index);
    }
    world.setTimeout(everySecond, 1_000);
  }

  for (let index = 0; index < replicas; index++) start(index);
  reshuffle();
  arrive();
  if (partitions > 0 || crashes > 0) world.setTimeout(everySecond, warmUpMs);
  if (plan.flushedAtMs !== undefined) {
    await world.run(plan.flushedAtMs);
    await redis.del(`headgate:{${pool}}:lease`);
    cutUntilMs[0] = world.now() + (plan.flushCutsOffMs ?? 0);
  }
  await world.run(lastsMs);
  restoreNames();
  inFlight.tick();
  const spanMs = lastsMs - warmUpMs;
  return {
    mostOver: Math.max(0, inFlight.most - limit),
    timeOver: inFlight.over / spanMs,
    utilization: inFlight.used / (spanMs * limit),
    storeCalls: world.storeCalls,
  };
}
