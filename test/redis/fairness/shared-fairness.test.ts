/** Four replicas, tenants pinned to some of them, in virtual time on a real store. */
import type { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import {
  concurrencyDetector,
  deficitRoundRobin,
  FlowConfigError,
  FlowController,
  type FlowFairnessPolicy,
  roundRobin,
  virtualTokenCounter,
} from '../../../src/index.js';
import { type SharedFairness, sharedFairness } from '../../../src/redis/index.js';
import { VirtualWorld } from '../support/virtual-world.js';
import { describeWithClient } from '../support/with-store.js';

const tenants: Readonly<Record<string, readonly number[]>> = { a: [0, 1, 2, 3], b: [0, 1], c: [1, 2, 3], d: [0, 3] };
const serviceMs = 200;
const seats = 10;
const warmUpMs = 20_000;
const lastsMs = 120_000;

let runs = 0;

/** The share of each tenant in what all replicas served. */
async function sharesOf(
  redis: Redis,
  isExchanged: boolean,
  isCut = false,
): Promise<{ shares: number[]; exchanges: number }> {
  const world = new VirtualWorld(redis);
  const served = new Map(Object.keys(tenants).map((tenant) => [tenant, 0]));
  const name = `fair-${process.pid}-${runs++}`;
  const made: SharedFairness[] = [];
  for (let replica = 0; replica < 4; replica++) {
    const policy = virtualTokenCounter({ cost: 'requests' });
    const client = world.client(() => ({ isCut }));
    const fairness = isExchanged ? sharedFairness(client, policy, { name, clock: world, random: () => 0.5 }) : policy;
    if (isExchanged) made.push(fairness as SharedFairness);
    const flow = new FlowController({
      clock: world,
      saturationDetector: concurrencyDetector({ maxConcurrency: seats }),
      defaultBand: { fairness, requestTtl: 0 },
    });
    const ask = async (tenant: string): Promise<void> => {
      const outcome = await flow.enqueue({ byteSize: 1 }, { fairnessId: tenant, priority: 0 });
      if (outcome.type !== 'Dispatched') throw new Error(outcome.type);
      void ask(tenant);
      world.setTimeout(() => {
        outcome.lease.release();
        if (world.now() > warmUpMs) served.set(tenant, served.get(tenant)! + 1);
      }, serviceMs);
    };
    for (const [tenant, replicas] of Object.entries(tenants)) {
      if (replicas.includes(replica)) for (let i = 0; i < 30; i++) void ask(tenant);
    }
  }
  await world.run(lastsMs);
  const sum = [...served.values()].reduce((a, b) => a + b, 0);
  for (const fairness of made) fairness.close();
  return {
    shares: [...served.values()].map((count) => count / sum),
    exchanges: made.reduce((count, { exchanges }) => count + exchanges, 0),
  };
}

describeWithClient('fairness over four replicas', { timeout: 120_000 }, (redis) => {
  it('is uneven for tenants that are pinned to some, where each replica is fair by itself', async () => {
    const { shares } = await sharesOf(redis(), false);
    for (const [index, expected] of [0.375, 0.167, 0.291, 0.167].entries())
      expect(shares[index]).toBeCloseTo(expected, 2);
  });

  it('is even when replicas exchange once a second what flows have received', async () => {
    const { shares, exchanges } = await sharesOf(redis(), true);
    for (const share of shares) expect(Math.abs(share - 0.25)).toBeLessThanOrEqual(0.01);
    // One call for each replica and second.
    expect(exchanges).toBeLessThanOrEqual((4 * lastsMs) / 1_000);
    expect(exchanges).toBeGreaterThan(400);
  });

  it('is local while the store is away, and nothing stops', async () => {
    const { shares, exchanges } = await sharesOf(redis(), true, true);
    expect(exchanges).toBe(0);
    for (const [index, expected] of [0.375, 0.167, 0.291, 0.167].entries())
      expect(shares[index]).toBeCloseTo(expected, 2);
  });

  it('can be had with every policy that shares by cost, and with no other', () => {
    const band = { priority: 0, waiting: 0, waitingBytes: 0, firstActive: undefined, activeFlows: () => [] };
    const of = (policy: Parameters<typeof sharedFairness>[1]): unknown => {
      const fairness = sharedFairness(redis(), policy, { name: 'x' });
      fairness.close();
      return fairness.createSelector(band);
    };
    expect(() => of(deficitRoundRobin())).not.toThrow();
    expect(() => of(roundRobin() as FlowFairnessPolicy)).toThrow(FlowConfigError);
  });
});
