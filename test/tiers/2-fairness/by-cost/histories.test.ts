import { describe, expect, it } from 'vitest';
import {
  deficitRoundRobin,
  type FlowFairnessPolicy,
  hierarchical,
  leastService,
  shuffleSharded,
  startTimeFairQueueing,
  virtualTokenCounter,
} from '../../../../src/index.js';
import type { CostFairSelector } from '../../../../src/tiers/2-fairness/by-cost/cost-fair-selector.js';
import { byPrompt } from './backlogged.js';
import { treeOf } from './fake-band.js';
import { type History, type HistorySetup, live } from './history.js';

const names = ['a', 'b', 'c/1', 'c/2', 'c/2/x', 'd/1', 'd/1/y/z', 'e'];
const weights = { b: 2, 'c/1': 3, 'd/1': 4 };
const setup = { names, weights, steps: 1500 };

type Charge = 'predict' | 'stream' | 'settle';
type Make = (charge?: Charge) => FlowFairnessPolicy;

const floored: readonly [name: string, make: Make][] = [
  ['virtualTokenCounter', (charge) => virtualTokenCounter({ ...byPrompt, charge })],
  ['startTimeFairQueueing', (charge) => startTimeFairQueueing({ ...byPrompt, charge })],
  ['deficitRoundRobin', (charge) => deficitRoundRobin({ ...byPrompt, charge })],
  ['deficitRoundRobin with a small quantum', (charge) => deficitRoundRobin({ ...byPrompt, charge, quantum: 3 })],
  ['hierarchical', (charge) => hierarchical({ ...byPrompt, charge, weights: { c: 2 } })],
  [
    'hierarchical with rounds',
    (charge) => hierarchical({ ...byPrompt, charge, levels: ['deficit-round-robin', 'start-time-fair-queueing'] }),
  ],
  ['shuffleSharded', (charge) => shuffleSharded({ ...byPrompt, charge, queues: 5, handSize: 2 })],
  [
    'shuffleSharded with rounds',
    (charge) => shuffleSharded({ ...byPrompt, charge, queues: 5, handSize: 2, policy: 'deficit-round-robin' }),
  ],
];

const all: typeof floored = [
  ...floored,
  ['virtualTokenCounter as the paper lifts', (charge) => virtualTokenCounter({ ...byPrompt, charge, lift: 'vtc' })],
  ['leastService', (charge) => leastService({ ...byPrompt, charge })],
];

function book({ band }: History): CostFairSelector['book'] {
  return (band.selector as CostFairSelector).book;
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}

function differ(a: number, b: number): boolean {
  return Math.abs(a - b) > 1e-6;
}

/** What a running request must have been charged by now. */
function owed(charge: Charge, tokens: number, reported: number): number {
  if (charge === 'settle') return 0;
  if (charge === 'stream') return reported > 0 ? reported : tokens;
  return Math.max(tokens, reported);
}

describe.each(all)('%s, over random histories', (_, make) => {
  it.each(['predict', 'stream', 'settle'] as const)(
    'charges every request once, whatever becomes of it (%s)',
    (charge) => {
      for (const seed of [1, 2, 3]) {
        let wrong = 0;
        const history = live(make(charge), {
          ...setup,
          seed,
          slots: 8,
          afterStep: (now) => {
            const open = sum(now.running.map(({ item, reported }) => owed(charge, item.tokens, reported)));
            const { settledCost, openCost } = book(now);
            if (differ(settledCost, sum(now.settled.values())) || differ(openCost, open)) wrong++;
          },
        });
        expect(wrong).toBe(0);
        expect(history.order.length).toBeGreaterThan(200);
        expect(book(history).ignoredReports).toBeGreaterThan(5);
      }
    },
  );

  it.each([1, 8])('leaves nobody behind, with %i slots', (slots) => {
    for (const seed of [4, 5, 6]) {
      const { band, running } = live(make(), { ...setup, seed, slots, arrivals: 0.4 });
      for (const name of names) band.releaseHeld(name);
      for (const open of running) band.settle(open, { promptTokens: open.cost, completionTokens: 0 });
      let left = band.waiting;
      expect(left).toBeGreaterThan(0);
      for (; left > 0; left--) expect(band.serve()).toBeDefined();
      expect(band.serve()).toBeUndefined();
    }
  });
});

describe('a counter', () => {
  it('is what was charged by its weight, after every step: nothing is lost, nothing is charged twice', () => {
    let compared = 0;
    let wrong = 0;
    for (const charge of ['predict', 'stream', 'settle'] as const) {
      live(leastService({ ...byPrompt, charge }), {
        ...setup,
        seed: 7,
        slots: 8,
        afterStep: ({ band, running, settled }) => {
          for (const { name, counter, received } of treeOf(band).shares()) {
            const weight = (weights as Record<string, number>)[name] ?? 1;
            const open = running.filter(({ flow }) => flow.fairnessId === name);
            const charged = sum(open.map(({ item, reported }) => owed(charge, item.tokens, reported)));
            compared++;
            if (differ(received, (settled.get(name) ?? 0) + charged) || differ(counter * weight, received)) wrong++;
          }
        },
      });
    }
    expect(wrong).toBe(0);
    expect(compared).toBeGreaterThan(10_000);
  });
});

/** Idle flows are forgotten at once, or never; two thirds of the time nothing waits, or nearly so. */
function liveTwice(make: Make, seed: number, slots: number): { kept: History; forgotten: History } {
  const history: HistorySetup = { ...setup, seed, slots, steps: 10_000 };
  return {
    kept: live(make(), { ...history, collects: false }),
    forgotten: live(make(), { ...history, collects: true }),
  };
}

describe.each(floored)('%s', (_, make) => {
  it.each([1, 8])('dispatches alike whether it forgets at once or never, with %i slots', (slots) => {
    for (const seed of [8, 9, 10, 11, 12]) {
      const { kept, forgotten } = liveTwice(make, seed, slots);
      expect(kept.order.length).toBeGreaterThan(1000);
      expect(forgotten.order.join()).toBe(kept.order.join());
    }
  });
});

describe.each([
  [
    'virtualTokenCounter as the paper lifts',
    (): FlowFairnessPolicy => virtualTokenCounter({ ...byPrompt, lift: 'vtc' }),
  ],
  ['leastService', (): FlowFairnessPolicy => leastService(byPrompt)],
])('%s, the control', (_, make) => {
  it('dispatches otherwise once it has forgotten', () => {
    const { kept, forgotten } = liveTwice(make, 8, 1);
    expect(forgotten.order.join()).not.toBe(kept.order.join());
  });
});
