/** What every usage-limit policy must keep. */
import { describe, expect, it } from 'vitest';
import { concurrencyDetector, type UsageLimitPolicy } from '../../src/index.js';
import { Random } from '../property/random.js';
import { key, leaseOf, makeFlow, request, turns } from '../support/flow.js';

function ceilingsOf(policy: UsageLimitPolicy, saturation: number, priorities: readonly number[]): number[] {
  const ceilings = priorities.map(() => 1);
  policy.computeLimits(saturation, priorities, ceilings);
  return ceilings;
}

function randomPriorities(random: Random): readonly number[] {
  const all = new Set(Array.from({ length: 1 + random.int(8) }, () => random.int(2000) - 1000));
  return Object.freeze([...all].sort((a, b) => b - a));
}

export function describeUsageLimitPolicy(name: string, make: () => UsageLimitPolicy): void {
  describe(`usage-limit policy ${name}`, () => {
    it('has a type', () => {
      expect(make().type).toMatch(/^[a-z][a-z0-9-]*$/);
    });

    it('sets a ceiling for every band, none rising as priority falls, and changes nothing else', () => {
      const random = new Random(1);
      const policy = make();
      for (let i = 0; i < 500; i++) {
        const priorities = randomPriorities(random);
        const ceilings = ceilingsOf(policy, random.next() * random.pick([0, 0.5, 1, 3]), priorities);
        expect(ceilings).toHaveLength(priorities.length);
        for (const [rank, ceiling] of ceilings.entries()) {
          expect(Number.isNaN(ceiling)).toBe(false);
          expect(ceiling).toBeLessThanOrEqual(ceilings[rank - 1] ?? Number.POSITIVE_INFINITY);
        }
        if (random.chance(0.3)) policy.dispatched?.(random.pick(priorities));
      }
    });

    it('leaves the highest band open on an idle pool, and the only one', () => {
      const random = new Random(2);
      for (let i = 0; i < 100; i++) expect(ceilingsOf(make(), 0, randomPriorities(random))[0]).toBeGreaterThan(0);
      expect(ceilingsOf(make(), 0, [0])[0]).toBeGreaterThan(0);
    });

    if (make().constant === true)
      it('says constant, and the saturation changes nothing', () => {
        const policy = make();
        const random = new Random(3);
        for (let i = 0; i < 100; i++) {
          const priorities = randomPriorities(random);
          expect(ceilingsOf(policy, random.next() * 2, priorities)).toEqual(ceilingsOf(policy, 0, priorities));
        }
      });

    it('lets the requests of every band go in the end', async () => {
      const { flow, clock } = makeFlow({
        saturationDetector: concurrencyDetector({ maxConcurrency: 10 }),
        usageLimitPolicy: make(),
        bands: [{ priority: 10 }, { priority: 0 }, { priority: -10 }],
        defaultRequestTtl: 0,
      });
      const all = Array.from({ length: 90 }, async (_, i) => {
        const lease = leaseOf(await flow.enqueue(request, key(`f${i % 4}`, [10, 0, -10, 5][i % 4])));
        await turns(3);
        lease.release();
      });
      for (let i = 0; i < 300 && flow.stats().released < 90; i++) {
        await turns(5);
        clock.advance(10);
      }
      await Promise.all(all);
      expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0, released: 90, pluginErrors: 0 });
    });
  });
}
