import { describe, expect, it } from 'vitest';
import { FifoQueue } from '../../src/base/queues/fifo-queue.js';
import { LongestQueues, loadPerWeight } from '../../src/tiers/longest-queues.js';
import { Random } from '../property/random.js';

interface Item {
  readonly sequence: number;
  readonly byteSize: number;
  isWaiting: boolean;
}

class Tenant {
  readonly items: Item[] = [];
  readonly queue = new FifoQueue<Item>();
  /** When it began to wait, among the others. */
  began = 0;
  readonly name: string;
  readonly weight: number;

  constructor(name: string, weight = 1) {
    this.name = name;
    this.weight = weight;
  }

  get waiting(): number {
    return this.items.length;
  }

  get waitingBytes(): number {
    return this.items.reduce((sum, { byteSize }) => sum + byteSize, 0);
  }
}

class World {
  readonly longestQueues: LongestQueues<Tenant, Item>;
  private sequence = 0;
  private began = 0;

  /** `isInOrder`: the tenants' own queues are in arrival order. */
  constructor(isInOrder = true) {
    this.longestQueues = new LongestQueues<Tenant, Item>(isInOrder ? ({ queue }) => queue : undefined);
  }

  add(tenant: Tenant, byteSize = 1): void {
    const item = { sequence: this.sequence++, byteSize, isWaiting: true };
    if (tenant.waiting === 0) tenant.began = this.began++;
    tenant.items.push(item);
    tenant.queue.push(item);
    this.longestQueues.added(item, tenant);
  }

  leave(tenant: Tenant, index = 0): void {
    const [item] = tenant.items.splice(index, 1) as [Item];
    item.isWaiting = false;
    tenant.queue.discard();
    this.longestQueues.left(tenant);
  }
}

describe.each([true, false])('a longestQueues, its queues in order: %s', (isInOrder) => {
  it('knows who has most waiting for its weight, of equals the one that began to wait last, through a long history', () => {
    const random = new Random(8);
    const world = new World(isInOrder);
    const tenants = Array.from({ length: 9 }, (_, i) => new Tenant(`${i}`, 1 + (i % 3)));
    for (let step = 0; step < 4000; step++) {
      const tenant = random.pick(tenants);
      if (tenant.waiting === 0 || random.chance(0.48)) world.add(tenant, random.int(5));
      else world.leave(tenant, random.int(tenant.waiting));
      const waiting = tenants.filter((each) => each.waiting > 0);
      for (const resource of ['requests', 'bytes'] as const) {
        const [most] = waiting.sort(
          (a, b) => loadPerWeight(b, resource) - loadPerWeight(a, resource) || b.began - a.began,
        );
        expect(world.longestQueues.most(resource)?.name).toBe(most?.name);
      }
      expect([...world.longestQueues.newestFirst(tenant)]).toEqual([...tenant.items].reverse());
    }
  });

  it('is of nobody while nothing waits, and after all have left', () => {
    const world = new World(isInOrder);
    const tenant = new Tenant('a');
    expect([world.longestQueues.most('requests'), [...world.longestQueues.newestFirst(tenant)]]).toEqual([
      undefined,
      [],
    ]);
    world.longestQueues.left(tenant);
    world.add(tenant);
    world.leave(tenant);
    expect([world.longestQueues.most('requests'), world.longestQueues.most('bytes')]).toEqual([undefined, undefined]);
  });
});
