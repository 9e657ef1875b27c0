/**
 * Replicas with a controller each, in virtual time on a real store, that share the quotas of one provider; and the
 * provider, which counts.
 */
import type { Redis } from 'ioredis';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { FlowController, type Lease, quotaDetector } from '../../../src/index.js';
import { type SharedQuotas, type SharedQuotasOptions, sharedQuotas } from '../../../src/redis/index.js';
import type { QuotaDetector, QuotaOptions } from '../../../src/types/index.js';
import { type CallFate, VirtualWorld } from '../support/virtual-world.js';

export interface Plan {
  readonly seed: number;
  readonly replicas: number;
  readonly quotas: readonly (QuotaOptions & { unit: 'requests' | 'tokens'; per: number })[];
  /** What is asked of what the tightest quota allows; 1.5 is half too much. */
  readonly load: number;
  readonly lastsMs: number;
  /** Tokens of a request, by a number from 0 to 1; and what it consumes of these. */
  readonly tokens: (random: number) => number;
  readonly consumes?: ((random: number) => number) | undefined;
  /** The part of the replies that get lost. */
  readonly lost?: number;
  /** The store cannot be reached, in ms of virtual time. */
  readonly away?: readonly [fromMs: number, toMs: number];
  /** The store loses everything then. */
  readonly flushedAtMs?: number;
  readonly options?: Partial<SharedQuotasOptions>;
  /** Every replica has the quota for itself: the control. */
  readonly isAlone?: boolean;
}

export interface Sent {
  readonly atMs: number;
  readonly tokens: number;
  consumed: number;
}

export interface Findings {
  readonly sent: readonly Sent[];
  readonly storeCalls: number;
  readonly replicas: readonly Replica[];
  /** How long each waited, ms. */
  readonly waits: readonly number[];
}

export interface Replica {
  readonly flow: FlowController;
  readonly detector: QuotaDetector;
  readonly shared: SharedQuotas;
}

let worlds = 0;

/** Keys expire by the real clock, which knows nothing of the virtual one. */
export function withoutExpiry(text: string): string {
  return text.replace(/^ *redis\.call\('PEXPIRE'.*$/m, '');
}

export async function play(redis: Redis, plan: Plan): Promise<Findings> {
  const {
    seed,
    replicas: count,
    quotas,
    load,
    lastsMs,
    lost = 0,
    away = [0, 0],
    options = {},
    tokens,
    consumes = () => 1,
  } = plan;
  const world = new VirtualWorld(redis);
  const random = seededRandom(seed);
  const name = `quotas-${process.pid}-${worlds++}`;
  const isAway = (): boolean => world.now() >= away[0] && world.now() < away[1];
  const fate = (): CallFate => ({ isCut: isAway(), isReplyLost: random() < lost, latencyMs: 1 + 4 * random() });
  const replicas = Array.from({ length: count }, (): Replica => {
    const shared = sharedQuotas(world.client(fate, withoutExpiry), {
      name,
      replicas: count,
      clock: world,
      random,
      ...options,
    });
    const detector = quotaDetector({
      groups: [{ name: 'provider', quotas: [...quotas] }],
      travel: 0,
      rejectInfeasible: false,
    });
    if (plan.isAlone !== true) detector.drawFrom(shared);
    return {
      flow: new FlowController({ constraints: [detector], clock: world, defaultRequestTtl: 0 }),
      detector,
      shared,
    };
  });
  const sent: Sent[] = [];
  const waits: number[] = [];

  async function serve({ flow }: Replica): Promise<void> {
    const size = tokens(random());
    const cameAtMs = world.now();
    const outcome = await flow.enqueue({ byteSize: 1, tokens: size }, { fairnessId: 'all', priority: 0 });
    if (outcome.type !== 'Dispatched') return;
    const one: Sent = { atMs: world.now(), tokens: size, consumed: size };
    sent.push(one);
    waits.push(world.now() - cameAtMs);
    const { lease }: { lease: Lease } = outcome;
    const consumed = Math.max(1, Math.round(size * consumes(random())));
    world.setTimeout(
      () => {
        one.consumed = consumed;
        lease.report({ promptTokens: consumed, completionTokens: 0 });
        lease.release();
      },
      200 + 3_000 * random(),
    );
  }

  const meanTokens = Array.from({ length: 1_000 }, () => tokens(random())).reduce((a, b) => a + b) / 1_000;
  const perSecond = Math.min(
    ...quotas.map(({ unit, limit, per }) => (limit / per) * (unit === 'requests' ? 1_000 : 1_000 / meanTokens)),
  );
  let weights = replicas.map(() => 1);
  function reshuffle(): void {
    weights = replicas.map(() => random() ** 2 + 0.02);
    world.setTimeout(reshuffle, 20_000);
  }
  function arrive(): void {
    const point = random() * weights.reduce((a, b) => a + b);
    let sum = 0;
    const index = weights.findIndex((weight) => {
      sum += weight;
      return point < sum;
    });
    void serve(replicas[index] as Replica);
    if (world.now() < lastsMs) world.setTimeout(arrive, (-Math.log(1 - random()) * 1_000) / (perSecond * load));
  }
  reshuffle();
  arrive();
  if (plan.flushedAtMs !== undefined) {
    await world.run(plan.flushedAtMs);
    const keys = await redis.keys(`headgate:{${name}:*`);
    if (keys.length > 0) await redis.del(...keys);
  }
  await world.run(lastsMs);
  return { sent, waits, storeCalls: world.storeCalls, replicas };
}

/**
 * The most by which what was sent ever exceeded burst + rate · span, over all spans of time: the naive bucket of the
 * provider, which sees the requests of all replicas. `amountOf` is what it counts.
 */
export function mostOver(
  sent: readonly Sent[],
  { limit, per, burst = limit }: QuotaOptions & { per: number },
  amountOf: (sent: Sent) => number,
): number {
  let level = 0;
  let atMs = 0;
  let most = 0;
  for (const one of sent) {
    level = Math.max(0, level - ((one.atMs - atMs) * limit) / per) + amountOf(one);
    atMs = one.atMs;
    most = Math.max(most, level - burst);
  }
  return most;
}
