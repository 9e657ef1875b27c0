import { describe, expect, it } from 'vitest';
import { type FlowFairnessPolicy, hierarchical, shuffleSharded, virtualTokenCounter } from '../../../../src/index.js';
import type { FlowService, ServiceFigures } from '../../../../src/tiers/2-fairness/service-figures.js';
import { byPrompt } from './backlogged.js';
import { FakeBand, usage } from './fake-band.js';
import { type History, live } from './history.js';

const minuteMs = 60_000;

function figuresOf(band: FakeBand): ServiceFigures {
  const figures = band.selector.service?.(band.nowMs);
  if (figures === undefined) throw new Error('no figures');
  return figures;
}

function serviceOf(band: FakeBand, fairnessId: string): FlowService | undefined {
  return figuresOf(band).flows.find((flow) => flow.fairnessId === fairnessId);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Serves `count` requests, each of which ends at once with what it was predicted to cost. */
function serve(band: FakeBand, count: number): void {
  for (let i = 0; i < count; i++) {
    const served = band.serve();
    if (served !== undefined) band.settle(served, usage(served.item.tokens));
  }
}

describe('what is owed', () => {
  it('is an equal part of every cost, to all that wait', () => {
    const band = new FakeBand(virtualTokenCounter(byPrompt));
    figuresOf(band);
    for (const name of ['a', 'b', 'c', 'a', 'b', 'c']) band.add(name, { tokens: 300 });
    serve(band, 1);
    expect(['a', 'b', 'c'].map((name) => serviceOf(band, name))).toEqual([
      { fairnessId: 'a', settled: 300, received: 300, owed: 100 },
      { fairnessId: 'b', settled: 0, received: 0, owed: 100 },
      { fairnessId: 'c', settled: 0, received: 0, owed: 100 },
    ]);
    expect(figuresOf(band).fairnessIndex).toBeCloseTo(1 / 3);
    serve(band, 2);
    expect(figuresOf(band).fairnessIndex).toBeCloseTo(1);
  });

  it('goes by weight', () => {
    const band = new FakeBand(virtualTokenCounter(byPrompt), { weights: { b: 3 } });
    figuresOf(band);
    for (let i = 0; i < 8; i++) for (const name of ['a', 'b']) band.add(name, { tokens: 100 });
    serve(band, 4);
    expect([serviceOf(band, 'a')?.owed, serviceOf(band, 'b')?.owed]).toEqual([100, 300]);
  });

  it('is what it got, for a request that found nothing in its way', () => {
    const band = new FakeBand(virtualTokenCounter(byPrompt));
    figuresOf(band);
    band.settle(band.pass('a', { tokens: 70 }), usage(50));
    expect(serviceOf(band, 'a')).toMatchObject({ settled: 50, received: 50, owed: 50 });
  });

  it('goes from the top down where levels share: an organisation of many keys is owed what one of one key is', () => {
    const band = new FakeBand(hierarchical({ ...byPrompt, weights: { big: 3 } }));
    figuresOf(band);
    for (const name of ['acme/1', 'acme/2', 'acme/3', 'globex/1'])
      for (let i = 0; i < 10; i++) band.add(name, { tokens: 60 });
    serve(band, 12);
    for (const name of ['acme/1', 'acme/2', 'acme/3']) expect(serviceOf(band, name)?.owed).toBeCloseTo(120);
    expect(serviceOf(band, 'globex/1')?.owed).toBeCloseTo(360);
  });

  it('counts those that were waiting when the first question came', () => {
    const band = new FakeBand(virtualTokenCounter(byPrompt));
    for (const name of ['a', 'b']) for (let i = 0; i < 3; i++) band.add(name, { tokens: 10 });
    serve(band, 2);
    figuresOf(band);
    serve(band, 2);
    expect(figuresOf(band).flows.map(({ received, owed }) => [received, owed])).toEqual([
      [10, 10],
      [10, 10],
    ]);
  });
});

describe('the window', () => {
  it('reaches back to the beginning of the fifth minute, and those who are silent for it are forgotten', () => {
    const band = new FakeBand(virtualTokenCounter(byPrompt));
    figuresOf(band);
    band.settle(band.pass('early', { tokens: 10 }), usage(10));
    band.nowMs = 3.5 * minuteMs;
    band.settle(band.pass('late', { tokens: 20 }), usage(20));
    expect(figuresOf(band)).toMatchObject({ windowMs: 3.5 * minuteMs });
    expect(serviceOf(band, 'early')?.received).toBe(10);
    band.nowMs = 5.5 * minuteMs;
    expect(figuresOf(band)).toMatchObject({ windowMs: 4.5 * minuteMs, flows: [{ fairnessId: 'late', received: 20 }] });
    band.nowMs = 60 * minuteMs;
    expect(figuresOf(band).flows).toEqual([]);
  });

  it('keeps those who wait, however long nothing goes', () => {
    const band = new FakeBand(virtualTokenCounter(byPrompt));
    figuresOf(band);
    band.add('a', { tokens: 10 });
    band.nowMs = 60 * minuteMs;
    expect(figuresOf(band).flows.map(({ fairnessId }) => fairnessId)).toEqual(['a']);
    serve(band, 1);
    expect(serviceOf(band, 'a')).toMatchObject({ received: 10, owed: 10 });
  });
});

describe('more fairness IDs than are told apart', () => {
  it('are one account, and what they received and were owed is in no other', () => {
    const band = new FakeBand(virtualTokenCounter(byPrompt));
    figuresOf(band);
    for (let i = 0; i < 1500; i++) for (const tokens of [10, 30]) band.add(`tenant ${i}`, { tokens });
    serve(band, 1500);
    const { flows, others } = figuresOf(band);
    expect(flows).toHaveLength(1000);
    expect(sum(flows.map((flow) => flow.received)) + others.received).toBe(15_000);
    expect(sum(flows.map((flow) => flow.owed)) + others.owed).toBeCloseTo(15_000);
    expect(others.received).toBe(5000);
    expect(others.owed).toBeCloseTo(5000);
    serve(band, 1500);
    expect(figuresOf(band).others).toMatchObject({ received: 500 * 40, settled: 500 * 40 });
  });
});

const names = ['a', 'b', 'c/1', 'c/2', 'c/2/x', 'd/1'];
const policies: readonly [name: string, make: () => FlowFairnessPolicy][] = [
  ['virtualTokenCounter', () => virtualTokenCounter(byPrompt)],
  ['virtualTokenCounter that charges as it streams', () => virtualTokenCounter({ ...byPrompt, charge: 'stream' })],
  ['hierarchical', () => hierarchical({ ...byPrompt, weights: { c: 2 } })],
  ['shuffleSharded', () => shuffleSharded({ ...byPrompt, queues: 5, handSize: 2 })],
];

describe.each(policies)('%s, over random histories', (_, make) => {
  it('owes what was received in all, after every step, and has settled what ended', () => {
    let looks = 0;
    let wrong = 0;
    const afterStep = ({ band, settled, running }: History): void => {
      const { flows, others } = figuresOf(band);
      const received = sum(flows.map((flow) => flow.received)) + others.received;
      const owed = sum(flows.map((flow) => flow.owed)) + others.owed;
      looks++;
      if (Math.abs(received - owed) > 1e-6 * Math.max(received, 1)) wrong++;
      if (Math.abs(sum([...settled.values()]) - sum(flows.map((flow) => flow.settled))) > 1e-6) wrong++;
      if (running.length === 0 && Math.abs(received - sum([...settled.values()])) > 1e-6) wrong++;
    };
    for (const seed of [1, 2, 3])
      live(make(), { seed, slots: 8, names, weights: { b: 2, 'c/1': 3 }, steps: 1500, arrivals: 0.3, afterStep });
    expect(wrong).toBe(0);
    expect(looks).toBe(4500);
  });

  it('decides alike whether somebody looks or not', () => {
    const setup = { seed: 4, slots: 8, names, steps: 3000, arrivals: 0.3 };
    const watched = live(make(), { ...setup, afterStep: ({ band }) => void figuresOf(band) });
    expect(watched.order).toEqual(live(make(), setup).order);
  });
});
