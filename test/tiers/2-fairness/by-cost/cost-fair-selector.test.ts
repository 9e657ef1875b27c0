import { describe, expect, it } from 'vitest';
import type { CostFairSelector } from '../../../../src/tiers/2-fairness/by-cost/cost-fair-selector.js';
import type { FlowSelector } from '../../../../src/tiers/2-fairness/fairness-policy.js';
import {
  type VirtualTokenCounterOptions,
  virtualTokenCounter,
} from '../../../../src/tiers/2-fairness/virtual-token-counter.js';
import type { ItemView } from '../../../../src/tiers/views.js';
import { fakeItem } from '../../../support/fake-item.js';
import { byPrompt } from './backlogged.js';
import { FakeBand, FakeFlow, treeOf, usage } from './fake-band.js';

function make(options: VirtualTokenCounterOptions = {}, weights: Record<string, number> = {}) {
  const band = new FakeBand(virtualTokenCounter({ ...byPrompt, ...options }), { weights });
  const selector = band.selector as Required<FlowSelector> & CostFairSelector;
  const tree = treeOf(band);
  return {
    ...{ band, selector },
    leaf: (name: string) => tree.leaf(name),
    names: () => Array.from(tree.shares(), ({ name }) => name),
    order: (count: number) => Array.from({ length: count }, () => band.serve()?.flow.fairnessId ?? '-').join(''),
  };
}

/** A second flow of a fairness ID, whose requests have these arrival numbers. */
function flowOf(fairnessId: string, ...sequences: number[]): FakeFlow {
  const flow = new FakeFlow(fairnessId, 1);
  for (const sequence of sequences) flow.queue.push(fakeItem({ fairnessId, sequence, tokens: 10 }));
  return flow;
}

describe('a request that goes', () => {
  it('lifts no leaf when it had waited, though it was the last of its flow', () => {
    const { band, leaf, order } = make();
    for (const name of ['a', 'b', 'b', 'b']) band.add(name, { tokens: 10 });
    expect(order(3)).toBe('abb');
    // The floor is at 10 by now, and a stayed at 10 though b was picked there.
    expect([leaf('a').counter, leaf('b').counter]).toEqual([10, 20]);
    band.add('late', { tokens: 5 });
    expect(order(1)).toBe('late');
    expect(leaf('late').counter).toBe(15);
  });

  it('lifts its leaf when it never waited', () => {
    const { band, leaf } = make();
    for (let i = 0; i < 3; i++) band.add('a', { tokens: 10 });
    for (let i = 0; i < 3; i++) band.serve();
    band.pass('b', { tokens: 1 });
    expect(leaf('b').counter).toBe(21);
  });

  it.each<[string, (selector: FlowSelector, band: FakeBand) => void]>([
    ['another flow became active', (_selector, band) => void band.add('other', { tokens: 1 })],
    ['a request was cancelled', (_selector, band) => band.cancel('b', 1)],
    ['a request ended', (_selector, band) => band.settle(band.pass('passing', { tokens: 0.5 }), usage(0.5))],
  ])('has not waited when its flow emptied before, and %s since', (_, happen) => {
    const { band, selector, leaf } = make();
    band.add('a', { tokens: 1 });
    for (let i = 0; i < 5; i++) band.add('b', { tokens: 10 });
    for (let i = 0; i < 3; i++) band.serve();
    const flow = band.flow('a');
    expect(flow.waiting).toBe(0);
    flow.queue.push(fakeItem({ fairnessId: 'a', sequence: 50, tokens: 1 }));
    selector.flowActivated?.(flow);
    const item = flow.queue.shift() as ItemView;
    selector.flowDeactivated?.(flow);
    leaf('a').counter = 0;
    happen(selector, band);
    selector.dispatched?.(flow, item, 0);
    expect(leaf('a').counter).toBeGreaterThan(10);
  });
});

describe('flows of one fairness ID', () => {
  it('share a leaf, and go by the arrival of their first requests', () => {
    const { selector, leaf } = make();
    const [first, second] = [flowOf('a', 5), flowOf('a', 3)];
    for (const flow of [first, second]) selector.flowActivated?.(flow);
    expect(selector.pick(0)).toBe(second);
    second.queue.shift();
    selector.flowDeactivated?.(second);
    expect([selector.pick(0), leaf('a').isActive]).toEqual([first, true]);
    first.queue.shift();
    selector.flowDeactivated?.(first);
    expect([selector.pick(0), leaf('a').isActive]).toEqual([undefined, false]);
  });

  it('leave the leaf its place among equals by whichever request stands first', () => {
    const { selector } = make();
    const [a, b] = [flowOf('a', 2, 9), flowOf('b', 5)];
    for (const flow of [a, b]) selector.flowActivated?.(flow);
    expect(selector.pick(0)).toBe(a);
    const cancelled = a.queue.shift() as ItemView;
    selector.itemRemoved?.(a, cancelled);
    expect(selector.pick(0)).toBe(b);
  });
});

describe('a flow that is held back', () => {
  it('keeps its counter, and one that was parked is lifted as any that returns', () => {
    for (const isParked of [false, true]) {
      const { band, selector, leaf } = make();
      for (const name of ['a', 'b', 'b', 'b']) band.add(name, { tokens: 10 });
      const flow = band.flow('a');
      selector.flowDeactivated?.(flow, isParked);
      expect(leaf('a').heldFlows).toBe(isParked ? 0 : 1);
      for (let i = 0; i < 3; i++) band.serve();
      selector.flowActivated?.(flow);
      expect([leaf('a').counter, leaf('a').heldFlows]).toEqual([isParked ? 20 : 0, 0]);
    }
  });

  it('holds nothing any more once its last request is cancelled', () => {
    const { band, leaf } = make();
    for (let i = 0; i < 2; i++) band.add('a', { tokens: 10 });
    band.hold('a');
    band.cancel('a', 0);
    expect(leaf('a').heldFlows).toBe(1);
    const held = leaf('a');
    band.cancel('a', 0);
    expect([held.heldFlows, held.isForgotten]).toEqual([0, true]);
  });

  it('lets others come as they do when nobody is held back', () => {
    const { band, leaf } = make();
    for (const name of ['a', 'b', 'b', 'b']) band.add(name, { tokens: 10 });
    band.hold('a');
    for (let i = 0; i < 3; i++) band.serve();
    band.add('late', { tokens: 5 });
    expect([leaf('late').counter, leaf('late').heldFlows, leaf('a').heldFlows]).toEqual([20, 0, 1]);
  });

  it('counts once, and not as one that is back when it never went', () => {
    const { band, leaf, selector } = make();
    band.add('a', { tokens: 10 });
    band.hold('a');
    band.add('b', { tokens: 10 });
    expect(leaf('a').heldFlows).toBe(1);
    band.releaseHeld('a');
    expect([leaf('a').heldFlows, selector.pick(0)?.fairnessId]).toEqual([0, 'a']);
  });
});

describe('what a flow received', () => {
  it('is told, may be corrected from outside, and is ahead of those that go next', () => {
    const { band, selector } = make({}, { a: 2 });
    for (const name of ['a', 'a', 'b']) band.add(name, { tokens: 30 });
    band.serve();
    const [a, b] = [band.flow('a'), band.flow('b')];
    expect([selector.received(a), selector.received(b), selector.lead(a), selector.lead(b)]).toEqual([30, 0, 30, 0]);
    selector.charge(b, 10);
    expect([selector.lead(a), selector.received(b)]).toEqual([10, 0]);
  });

  it('counts by the weight that `weightOf` gives, as by one of the configuration', () => {
    const seen = [make({}, { prem: 4 }), make({ weightOf: (id) => (id === 'prem' ? 4 : 1) })].map(
      ({ band, selector, order }) => {
        for (let i = 0; i < 12; i++) for (const name of ['prem', 'std']) band.add(name, { tokens: 100 });
        // Served elsewhere exactly by their weights.
        selector.charge(band.flow('prem'), 400);
        selector.charge(band.flow('std'), 100);
        const even = ['prem', 'std'].map((name) => selector.lead(band.flow(name)));
        selector.charge(band.flow('prem'), 400);
        return [even, selector.lead(band.flow('prem')), order(10)];
      },
    );
    expect(seen[0]?.slice(0, 2)).toEqual([[0, 0], 400]);
    expect(seen[1]).toEqual(seen[0]);
  });

  it('counts by the weight of its flow while nothing of it waits', () => {
    const { band, selector, leaf } = make({ weightOf: () => 4 }, { a: 2 });
    selector.charge(band.flow('a'), 100);
    expect(leaf('a').counter).toBe(50);
  });

  it('is forgotten with the flow, once it makes no difference', () => {
    const { band, names, leaf } = make();
    band.settle(band.pass('a', { tokens: 10 }), usage(10));
    expect(names()).toEqual(['a']);
    const owing = leaf('a');
    band.collect(band.flow('a'), true);
    expect([names(), owing.isOrphan]).toEqual([['a'], true]);
    for (let i = 0; i < 2; i++) band.settle(band.pass('b', { tokens: 20 }), usage(20));
    expect([names(), owing.isForgotten]).toEqual([['b'], true]);
    // The same fairness ID once more: with another leaf.
    band.add('a', { tokens: 1 });
    expect(leaf('a')).not.toBe(owing);
  });
});

describe('figures of service', () => {
  it('are kept from the first question on, by the weights of requests', () => {
    const { band, selector } = make({ weightOf: (fairnessId) => (fairnessId === 'a' ? 3 : 1) });
    for (const name of ['a', 'b', 'b', 'a']) band.add(name, { tokens: 40 });
    expect(selector.service(0)?.flows.map(({ owed }) => owed)).toEqual([0, 0]);
    band.serve();
    band.add('c', { tokens: 40 });
    expect(selector.service(0)?.flows.map(({ fairnessId, received, owed }) => [fairnessId, received, owed])).toEqual([
      ['a', 40, 30],
      ['b', 0, 10],
      ['c', 0, 0],
    ]);
  });

  it('know a flow whose first request is not shown by its own weight', () => {
    const { band, selector } = make({ weightOf: () => 3 });
    selector.service(0);
    const hidden = new FakeFlow('hidden', 5);
    selector.flowActivated?.(hidden);
    expect(selector.pick(0)).toBe(hidden);
    for (let i = 0; i < 2; i++) band.add('a', { tokens: 80 });
    selector.dispatched?.(band.flow('a'), band.flow('a').head as ItemView, 0);
    expect(selector.service(0)?.flows.map(({ fairnessId, owed }) => [fairnessId, owed])).toEqual([
      ['hidden', 50],
      ['a', 30],
    ]);
  });

  it('follow reports and ends', () => {
    const { band, selector } = make();
    selector.service(0);
    const running = band.pass('a', { tokens: 10 });
    band.report(running, usage(25));
    expect(selector.service(0)?.flows).toEqual([{ fairnessId: 'a', settled: 0, received: 25, owed: 25 }]);
    band.settle(running, usage(30));
    expect(selector.service(0)?.flows).toEqual([{ fairnessId: 'a', settled: 30, received: 30, owed: 30 }]);
  });

  it('know the reports that were ignored', () => {
    const { band, selector } = make();
    const running = band.pass('a', { tokens: 10 });
    band.report(running, usage(25));
    band.report(running, usage(20));
    expect(selector.ignoredReports).toBe(1);
  });
});

describe('faults of foreign functions', () => {
  it('are told of by each call that they happen in', () => {
    const { band } = make({
      cost: () => {
        throw new Error('broken');
      },
    });
    const { selector } = band;
    const flow = band.flow('a');
    const item = fakeItem({ fairnessId: 'a', tokens: 10 });
    expect(() => selector.dispatched?.(flow, item, 0)).toThrow('broken');
    expect(() => band.report({ flow, item }, usage(5))).toThrow('broken');
    expect(() => band.settle({ flow, item }, usage(5))).toThrow('broken');
  });
});
