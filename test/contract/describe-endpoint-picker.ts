/** What every endpoint picker must keep. */
import { describe, expect, it } from 'vitest';
import { concurrencyDetector, type EndpointPicker, EndpointPool, type Lease } from '../../src/index.js';
import { Random } from '../property/random.js';
import { fakeItem } from '../support/fake-item.js';
import { fakeEndpoint } from '../support/fake-pool.js';
import { key, leaseOf, makeFlow } from '../support/flow.js';

export function describeEndpointPicker(name: string, make: () => EndpointPicker): void {
  describe(`endpoint picker ${name}`, () => {
    it('has a type', () => {
      expect(make().type).toMatch(/^[a-z][a-z0-9-]*$/);
    });

    it('picks one of what it was given, and changes nothing in it', () => {
      const random = new Random(1);
      const picker = make();
      for (let i = 0; i < 300; i++) {
        const endpoints = Object.freeze(
          Array.from({ length: 1 + random.int(8) }, (_, index) =>
            Object.freeze(
              fakeEndpoint(`e${index}`, {
                inFlightRequests: random.int(4),
                inFlightTokens: random.int(100),
                dispatchedRequests: random.int(50),
                metrics: random.chance(0.5)
                  ? { waitingQueueSize: random.int(9), runningRequests: random.int(9), kvCacheUsage: random.next(), sampledAtMs: 0 }
                  : undefined,
              }),
            ),
          ),
        );
        expect(endpoints).toContain(picker.pick(endpoints, Object.freeze(fakeItem({ sequence: i })), i));
      }
    });

    it('works for a pool that changes, and is never at fault', () => {
      const random = new Random(2);
      const pool = new EndpointPool();
      for (const id of ['a', 'b', 'c']) pool.add(id);
      const { flow } = makeFlow({ pool, endpointPicker: make(), saturationDetector: concurrencyDetector({ maxConcurrency: 3 }) });
      const leases: Lease[] = [];
      for (let i = 0; i < 500; i++) {
        const id = `e${random.int(5)}`;
        if (random.chance(0.1) && !pool.remove(id)) pool.add(id);
        const outcome = flow.tryEnqueue({ byteSize: 1, tokens: random.int(9) }, key(`f${random.int(3)}`));
        if (outcome !== undefined) leases.push(leaseOf(outcome));
        else leases.splice(random.int(leases.length), 1)[0]?.release();
        for (const endpoint of pool.endpoints) expect(endpoint.inFlightRequests).toBeLessThanOrEqual(3);
      }
      expect(flow.stats().pluginErrors).toBe(0);
      expect(flow.stats().dispatched).toBeGreaterThan(100);
    });
  });
}
