/** What every ordering policy must keep. */
import { describe, expect, it } from 'vitest';
import type { ItemView, OrderingPolicy } from '../../src/index.js';
import { Random } from '../property/random.js';
import { fakeItem } from '../support/fake-item.js';
import { dial, key, makeFlow } from '../support/flow.js';

/** Few distinct values, so that ties are many; frozen, because views are not to be written to. */
function randomItems(seed: number, count: number): ItemView[] {
  const random = new Random(seed);
  return Array.from({ length: count }, (_, sequence) => {
    const enqueuedAtMs = random.int(4) * 10;
    const receivedAtMs = enqueuedAtMs - random.int(3) * 5;
    const target = random.pick([Number.POSITIVE_INFINITY, 0, 10, 20]);
    return Object.freeze(
      fakeItem({
        sequence,
        enqueuedAtMs,
        receivedAtMs,
        fairnessId: `f${random.int(3)}`,
        byteSize: random.int(3),
        tokens: random.int(3),
        ttlMs: random.pick([Number.POSITIVE_INFINITY, 10, 20, 30]),
        ttftDeadlineAtMs: receivedAtMs + target,
      }),
    );
  });
}

export function describeOrderingPolicy(name: string, make: () => OrderingPolicy): void {
  describe(`ordering policy ${name}`, () => {
    const { type, arrivalOrder, compare } = make();
    const items = randomItems(7, 40);
    const sign = (a: ItemView, b: ItemView): number => Math.sign(compare(a, b));

    it('has a type', () => {
      expect(type).toMatch(/^[a-z][a-z0-9-]*$/);
    });

    it('always answers with a number, for requests without deadlines too', () => {
      for (const a of items) for (const b of items) expect(Number.isNaN(compare(a, b))).toBe(false);
    });

    it('is an order: equal to itself, opposite when turned round, and transitive', () => {
      for (const a of items) {
        expect(compare(a, a) + 0).toBe(0);
        for (const b of items) {
          expect(sign(a, b) + sign(b, a)).toBe(0);
          for (const c of items) {
            if (sign(a, b) <= 0 && sign(b, c) <= 0) expect(sign(a, c)).toBeLessThanOrEqual(0);
          }
        }
      }
    });

    if (arrivalOrder === true)
      it('says arrivalOrder, and is nothing else', () => {
        for (const a of items) for (const b of items) expect(sign(a, b)).toBe(Math.sign(a.sequence - b.sequence));
      });

    it('lets requests go in its order, ties by arrival', () => {
      const random = new Random(3);
      const detector = dial(1, true);
      const { flow, clock } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, ordering: make() }] });
      const waiting: ItemView[] = [];
      const order: number[] = [];
      // Copies: a request's item lets go of the request when it leaves.
      flow.on('queued', ({ item }) => {
        const { fairnessId, byteSize, tokens, sequence, receivedAtMs, enqueuedAtMs, ttlMs, ttftDeadlineAtMs } = item;
        waiting.push(fakeItem({ fairnessId, byteSize, tokens, sequence, receivedAtMs, enqueuedAtMs, ttlMs, ttftDeadlineAtMs }));
      });
      flow.on('dispatched', ({ item }) => order.push(item.sequence));
      for (let i = 0; i < 60; i++) {
        if (random.chance(0.3)) clock.advance(random.int(20));
        void flow.enqueue(
          {
            byteSize: random.int(5),
            ttlMs: random.pick([0, 5000, 6000, 7000]),
            sloTtftMs: random.pick([undefined, 0, 50, 100]),
            receivedAtMs: clock.now() - random.int(3),
          },
          key(`f${random.int(4)}`),
        );
      }
      detector.turnTo(0);
      waiting.sort((a, b) => compare(a, b) || a.sequence - b.sequence);
      expect(order).toEqual(waiting.map(({ sequence }) => sequence));
      expect(flow.stats().pluginErrors).toBe(0);
    });
  });
}
