import { describe, expect, it } from 'vitest';
import {
  deficitRoundRobin,
  type FlowFairnessPolicy,
  hierarchical,
  type Lease,
  leastService,
  shuffleSharded,
  startTimeFairQueueing,
  virtualTokenCounter,
} from '../../../../src/index.js';
import { Random } from '../../../property/random.js';
import { dial, key, makeFlow } from '../../../support/flow.js';

const policies: readonly [name: string, make: () => FlowFairnessPolicy][] = [
  ['virtualTokenCounter', () => virtualTokenCounter()],
  ['startTimeFairQueueing', () => startTimeFairQueueing()],
  ['leastService', () => leastService()],
  ['deficitRoundRobin', () => deficitRoundRobin()],
  ['hierarchical', () => hierarchical()],
  ['shuffleSharded', () => shuffleSharded({ queues: 8, handSize: 3 })],
];

/** Whatever tenants are owed in a band below, a band above goes first. */
describe.each(policies)('under %s, over random histories', (_, make) => {
  it.each([1, 8])('no request goes while one of a higher band waits, with %i slots', (slots) => {
    for (const seed of [1, 2, 3]) {
      const random = new Random(seed);
      const priorities = [20, 10, 0, -5];
      const detector = dial(0, true);
      const { flow, clock } = makeFlow({
        saturationDetector: detector,
        bands: priorities.map((priority) => ({ priority, fairness: make() })),
      });
      const waiting = new Map(priorities.map((priority) => [priority, 0]));
      const count = (priority: number, by: number) => waiting.set(priority, (waiting.get(priority) ?? 0) + by);
      const running: Lease[] = [];
      let inverted = 0;
      let dispatched = 0;
      flow.on('queued', ({ item }) => count(item.priority, 1));
      flow.on('dropped', ({ outcome }) => count(outcome.priority, -1));
      flow.on('dispatched', ({ item, lease, queuedMs }) => {
        if (queuedMs > 0 || (waiting.get(item.priority) ?? 0) > 0) count(item.priority, -1);
        if (priorities.some((priority) => priority > item.priority && (waiting.get(priority) ?? 0) > 0)) inverted++;
        running.push(lease);
        dispatched++;
        if (running.length >= slots) detector.turnTo(1);
      });
      const aborts: AbortController[] = [];
      for (let step = 0; step < 1500; step++) {
        clock.advance(1 + random.int(5));
        const dice = random.next();
        if (dice < 0.55) {
          const abort = new AbortController();
          aborts.push(abort);
          const request = { byteSize: 1, tokens: 1 + random.int(1000), signal: abort.signal };
          void flow.enqueue(request, key(`t${random.int(6)}/${random.int(3)}`, random.pick(priorities)));
        } else if (dice < 0.6) {
          random.pick(aborts)?.abort();
        } else {
          const lease = running.splice(random.int(running.length), 1)[0];
          lease?.report({ promptTokens: random.int(1000), completionTokens: random.int(1000) });
          lease?.release();
          if (running.length < slots) detector.turnTo(0);
        }
      }
      expect(inverted).toBe(0);
      expect(dispatched).toBeGreaterThan(300);
      const sum = [...waiting.values()].reduce((total, each) => total + each, 0);
      expect(sum).toBe(flow.stats().waiting);
      expect(flow.stats().pluginErrors).toBe(0);
    }
  });
});
