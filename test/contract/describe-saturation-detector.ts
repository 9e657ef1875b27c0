/** What every saturation detector must keep. */
import { describe, expect, it } from 'vitest';
import { EndpointPool, type EndpointView, type PoolView, type SaturationDetector } from '../../src/index.js';
import { Random } from '../property/random.js';
import { fakeEndpoint, poolOf } from '../support/fake-pool.js';
import { key, leaseOf, makeFlow, request } from '../support/flow.js';

const nowMs = 10_000;

function randomEndpoint(random: Random, id: string): EndpointView {
  const metrics = {
    waitingQueueSize: random.int(12),
    runningRequests: random.int(12),
    kvCacheUsage: random.next(),
    sampledAtMs: nowMs - random.pick([0, 100, 5000]),
  };
  return Object.freeze(
    fakeEndpoint(id, {
      metrics: random.chance(0.85) ? Object.freeze(metrics) : undefined,
      inFlightRequests: random.int(30),
      inFlightTokens: random.int(5000),
      unsampledRequests: random.int(6),
      dispatchedRequests: random.int(100),
    }),
  );
}

function randomPool(random: Random): PoolView {
  return poolOf(...Array.from({ length: 1 + random.int(6) }, (_, i) => randomEndpoint(random, `e${i}`)));
}

/** The same pool with more of everything on one endpoint, as fresh as before. */
function busier(pool: PoolView, random: Random): PoolView {
  const index = random.int(pool.endpoints.length);
  return poolOf(
    ...pool.endpoints.map((endpoint, i) => {
      const { metrics } = endpoint;
      if (i !== index) return endpoint;
      return {
        ...endpoint,
        inFlightRequests: endpoint.inFlightRequests + random.int(5),
        inFlightTokens: endpoint.inFlightTokens + random.int(500),
        unsampledRequests: endpoint.unsampledRequests + random.int(3),
        metrics: metrics && {
          ...metrics,
          waitingQueueSize: metrics.waitingQueueSize + random.int(5),
          kvCacheUsage: metrics.kvCacheUsage + random.next() * 0.2,
        },
      };
    }),
  );
}

export function describeSaturationDetector(name: string, make: () => SaturationDetector): void {
  describe(`saturation detector ${name}`, () => {
    it('has a type', () => {
      expect(make().type).toMatch(/^[a-z][a-z0-9-]*$/);
    });

    it('reads a finite number from 0 up from any pool, and changes nothing in it', () => {
      const random = new Random(1);
      const detector = make();
      for (let i = 0; i < 300; i++) {
        const reading = detector.saturation(randomPool(random), nowMs);
        expect(reading).toBeGreaterThanOrEqual(0);
        expect(Number.isFinite(reading)).toBe(true);
      }
    });

    it('reads an empty pool as full', () => {
      expect(make().saturation(poolOf(), nowMs)).toBeGreaterThanOrEqual(1);
    });

    it('reads an idle pool as not full', () => {
      const idle = { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0, sampledAtMs: nowMs };
      const pool = poolOf(...['a', 'b', 'c'].map((id) => fakeEndpoint(id, { metrics: idle })));
      expect(make().saturation(pool, nowMs)).toBeLessThan(1);
    });

    it('never reads less where there is more to do', () => {
      const random = new Random(2);
      for (let i = 0; i < 300; i++) {
        const detector = make();
        const pool = randomPool(random);
        const before = detector.saturation(pool, nowMs);
        expect(detector.saturation(busier(pool, random), nowMs)).toBeGreaterThanOrEqual(before - 1e-12);
      }
    });

    it('filters from what it was given, in the same order', () => {
      const random = new Random(3);
      const detector = make();
      for (let i = 0; i < 200; i++) {
        const { endpoints } = randomPool(random);
        const frozen = Object.freeze([...endpoints]);
        const kept = detector.filter?.(frozen, nowMs) ?? frozen;
        expect([...kept]).toEqual(frozen.filter((endpoint) => kept.includes(endpoint)));
      }
    });

    if (make().subscribe !== undefined)
      it('takes back a subscription, once or twice', () => {
        const stop = make().subscribe?.(() => {});
        expect(() => {
          stop?.();
          stop?.();
        }).not.toThrow();
        expect(stop).toBeTypeOf('function');
      });

    it('lets every request of a queue go in the end', async () => {
      const pool = new EndpointPool();
      for (const id of ['a', 'b']) pool.add(id);
      const { flow, clock } = makeFlow({ pool, saturationDetector: make(), defaultRequestTtl: 0 });
      const report = (): void => {
        for (const { id } of pool.endpoints) pool.report(id, { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
      };
      report();
      const all = Array.from({ length: 400 }, async (_, i) =>
        leaseOf(await flow.enqueue({ ...request, tokens: i }, key(`f${i % 7}`))).release(),
      );
      for (let i = 0; i < 1000 && flow.stats().released < 400; i++) {
        clock.advance(10);
        report();
        await Promise.resolve();
      }
      await Promise.all(all);
      expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0, released: 400, pluginErrors: 0 });
    });
  });
}
