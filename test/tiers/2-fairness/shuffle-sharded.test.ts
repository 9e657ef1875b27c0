import { describe, expect, it } from 'vitest';
import { edf, FlowController, shuffleSharded } from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { Random } from '../../property/random.js';
import { dial } from '../../support/flow.js';
import { byPrompt } from './by-cost/backlogged.js';
import { FakeBand, serveAll, shardedOf, treeOf } from './by-cost/fake-band.js';

describe('shuffleSharded', () => {
  it('keeps a light tenant from waiting for a heavy one', () => {
    const band = new FakeBand(shuffleSharded(byPrompt));
    for (let i = 0; i < 1000; i++) band.add('elephant', { tokens: 100 });
    band.add('mouse', { tokens: 1 });
    const order = Array.from({ length: 20 }, () => band.serve()?.flow.fairnessId);
    expect(order.indexOf('mouse')).toBeLessThanOrEqual(8);
  });

  it('makes nothing for a tenant that lasts', () => {
    const band = new FakeBand(shuffleSharded({ ...byPrompt, queues: 8, handSize: 2 }), { collects: true });
    for (let i = 0; i < 2000; i++) {
      band.add(`tenant ${i}`, { tokens: 1 });
      const served = band.serve();
      if (served !== undefined) band.settle(served, { promptTokens: 1, completionTokens: 0 });
    }
    const { flows, places, tree } = shardedOf(band);
    expect([flows.size, places.size]).toEqual([0, 0]);
    expect([...tree.shares()].length).toBeLessThanOrEqual(8);
  });

  it('puts a request into the queue of its hand where the least work waits', () => {
    const band = new FakeBand(shuffleSharded({ ...byPrompt, queues: 4, handSize: 4 }));
    for (const tokens of [40, 30, 20, 10, 5]) band.add('a', { tokens });
    const { shards } = shardedOf(band);
    expect(shards.map(({ work }) => work).sort((a, b) => a - b)).toEqual([15, 20, 30, 40]);
  });

  it('keeps the standing of a flow that is held back, and lifts one that was parked as any that returns', () => {
    for (const isParked of [false, true]) {
      const band = new FakeBand(shuffleSharded({ ...byPrompt, handSize: 1 }));
      for (let i = 0; i < 3; i++) band.add('o', { tokens: 100 });
      band.selector.flowDeactivated?.(band.flow('o'), isParked);
      for (let i = 0; i < 10; i++) band.add('p', { tokens: 100 });
      for (let i = 0; i < 6; i++) {
        expect(band.selector.pick(0)?.fairnessId).toBe('p');
        band.serve();
      }
      band.selector.flowActivated?.(band.flow('o'));
      expect(serveAll(band)).toBe(isParked ? 'o o p o p p p' : 'o o o p p p p');
    }
  });

  it('keeps nothing for what is cancelled while it is held back', () => {
    const band = new FakeBand(shuffleSharded({ ...byPrompt, handSize: 1 }));
    for (let i = 0; i < 2; i++) band.add('o', { tokens: 100 });
    band.hold('o');
    const { tree, held } = shardedOf(band);
    const heldIn = (): number[] => Array.from(tree.shares(), ({ heldFlows }) => heldFlows);
    expect([heldIn(), held.size]).toEqual([[2], 2]);
    band.cancel('o', 0);
    expect([heldIn(), held.size]).toEqual([[1], 1]);
    band.cancel('o', 0);
    expect([heldIn(), held.size]).toEqual([[], 0]);
  });

  it('leaves the order inside a flow to the ordering policy, also where its requests stand in several queues', async () => {
    const clock = new ManualClock();
    const detector = dial(1, true);
    const fairness = shuffleSharded({ queues: 8, handSize: 4 });
    const flow = new FlowController({
      clock,
      saturationDetector: detector,
      bands: [{ priority: 0, fairness, ordering: edf() }],
    });
    const random = new Random(3);
    const ttls: number[] = [];
    const order: number[] = [];
    flow.on('dispatched', ({ item }) => order.push(item.ttlMs));
    for (let i = 0; i < 200; i++) {
      const ttlMs = 1000 + random.int(100_000);
      ttls.push(ttlMs);
      void flow.enqueue({ byteSize: 1, ttlMs, tokens: random.int(100) }, { fairnessId: 'a' });
    }
    detector.turnTo(0);
    expect(order).toEqual(ttls.sort((a, b) => a - b));
    expect(flow.stats()).toMatchObject({ waiting: 0, pluginErrors: 0 });
  });

  it('charges what a request is predicted to cost when it goes', () => {
    const band = new FakeBand(shuffleSharded());
    band.pass('a', { tokens: 10 });
    expect(Array.from(treeOf(band).shares(), ({ received }) => received)).toEqual([10 + 2 * 256]);
  });

  it('deals by the salt', () => {
    const queueOf = (salt: string): unknown => {
      const band = new FakeBand(shuffleSharded({ salt, queues: 1000, handSize: 1 }));
      band.pass('a');
      return Array.from(treeOf(band).shares(), ({ name }) => name);
    };
    expect(queueOf('secret')).toEqual(queueOf('secret'));
    expect(queueOf('secret')).not.toEqual(queueOf(''));
  });

  it.each([
    [{ queues: 0 }, 'queues'],
    [{ queues: 65_537, handSize: 1 }, 'queues: expected an integer from 1 to 65536'],
    [{ queues: 1e9, handSize: 1 }, 'queues: expected an integer from 1 to 65536'],
    [{ queues: -100 }, 'queues'],
    [{ queues: 100, handSize: 0 }, 'handSize'],
    [{ queues: 100, handSize: 101 }, 'handSize'],
    [{ queues: 3, handSize: 4 }, 'handSize: expected at most 3, the number of queues; got 4'],
    [
      { queues: 512, handSize: 8 },
      'handSize: expected fewer cards: 512 queues and hands of 8 take more than the 60 bits of a hash; got 8',
    ],
    [{ policy: 'round-robin' as 'least-service' }, 'policy'],
    [{ salt: 1 as never }, 'salt'],
  ])('refuses %j', (options, path) => {
    expect(() => shuffleSharded(options)).toThrowError(`shuffleSharded: ${path}`);
  });

  it.each([
    [1024, 6],
    [128, 8],
    [12, 12],
  ])('takes %i queues and hands of %i', (queues, handSize) => {
    const band = new FakeBand(shuffleSharded({ queues, handSize }));
    band.add('a');
    expect(band.serve()?.flow.fairnessId).toBe('a');
  });
});
