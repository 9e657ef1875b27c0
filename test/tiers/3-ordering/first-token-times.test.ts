import { describe, expect, it } from 'vitest';
import { FirstTokenTimes, LatestMedian } from '../../../src/tiers/3-ordering/first-token-times.js';
import { Random } from '../../property/random.js';
import { fakeItem } from '../../support/fake-item.js';

describe('LatestMedian', () => {
  it('is 0 until enough is known, and new after each time from then on', () => {
    const median = new LatestMedian();
    for (let i = 1; i < 20; i++) median.add(i);
    expect(median.value).toBe(0);
    median.add(20);
    expect(median.value).toBe(11);
    median.add(30);
    median.add(30);
    expect(median.value).toBe(12);
  });

  it('is the median of the latest hundred, in whatever order they come', () => {
    const random = new Random(1);
    const median = new LatestMedian();
    const all: number[] = [];
    for (let i = 0; i < 1000; i++) {
      const duration = random.int(50);
      all.push(duration);
      median.add(duration);
      const latest = all.slice(-100).sort((a, b) => a - b);
      if (latest.length >= 20) expect(median.value).toBe(latest[latest.length >> 1]);
    }
  });
});

describe('FirstTokenTimes', () => {
  const ask = (model: unknown, tokens: number) => fakeItem({ request: { model }, tokens });

  it('are learnt apart for each model and size', () => {
    const times = new FirstTokenTimes();
    for (let i = 0; i < 20; i++) {
      times.add(ask('small', 1000), 100);
      times.add(ask('small', 5000), 900);
      times.add(ask('large', 1000), 3000);
    }
    const expected = [ask('small', 600), ask('small', 4096), ask('large', 1023), ask('large', 5000), ask('new', 1000)];
    expect(expected.map((item) => times.expectedMs(item))).toEqual([100, 900, 3000, 0, 0]);
  });

  it('take any size, requests without a model, and any number of models', () => {
    const times = new FirstTokenTimes();
    const odd = [fakeItem({ request: undefined, tokens: 0 }), ask(7, 2 ** 40), ask('m', 2 ** 31 - 1)];
    for (let i = 0; i < 20; i++) for (const [j, item] of odd.entries()) times.add(item, j + 1);
    expect(odd.map((item) => times.expectedMs(item))).toEqual([1, 2, 3]);
    for (let i = 0; i < 1000; i++) times.add(ask(`model ${i}`, 8), 50);
    expect(times.expectedMs(ask('one more', 8))).toBe(50);
  });
});
