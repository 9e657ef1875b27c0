import { describe, expect, it } from 'vitest';
import { leastService } from '../../../src/index.js';
import { byPrompt } from './by-cost/backlogged.js';
import { FakeBand, serveAll } from './by-cost/fake-band.js';
import { live } from './by-cost/history.js';

describe('leastService', () => {
  it('lets a flow make up for the time in which it was idle', () => {
    const band = new FakeBand(leastService(byPrompt));
    for (let i = 0; i < 8; i++) band.add('a', { tokens: 100 });
    for (let i = 0; i < 4; i++) band.serve();
    for (let i = 0; i < 6; i++) band.add('late', { tokens: 100 });
    expect(serveAll(band)).toBe('late late late late a late a late a a');
  });

  it('lets one flow receive the whole difference of totals, and a request more, before the other receives anything', () => {
    const band = new FakeBand(leastService(byPrompt));
    for (let i = 0; i < 9; i++) band.add('a', { tokens: 100 });
    for (let i = 0; i < 4; i++) band.serve();
    for (let i = 0; i < 9; i++) band.add('late', { tokens: 99 });
    const order = Array.from({ length: 6 }, () => band.serve()?.flow.fairnessId);
    expect(order.join(' ')).toBe('late late late late late a');
  });

  it('lets the totals of two flows that wait differ by no more than before, or by one request of the one ahead', () => {
    const names = ['a', 'b', 'c', 'd'];
    const weights: Record<string, number> = { b: 2, c: 3 };
    const largest = (name: string): number => 100 / (weights[name] ?? 1);
    let beyond = 0;
    let grown = 0;
    for (let seed = 0; seed < 300; seed++) {
      const totals = new Map(names.map((name) => [name, 0]));
      const leadOf = (f: string, g: string): number => (totals.get(f) as number) - (totals.get(g) as number);
      /** The lead that the first of a pair had when both began to wait. */
      const since = new Map<string, number>();
      let seen = 0;
      live(leastService(byPrompt), {
        ...{ seed, names, weights, slots: 1 + (seed % 8), steps: 400, arrivals: 0.25 + (seed % 5) / 20 },
        ...{ isNoisy: false, endsWell: true, holds: false },
        afterStep({ band, order, running }) {
          if (order.length > seen) {
            seen = order.length;
            const { flow, cost } = running[running.length - 1] as (typeof running)[number];
            totals.set(flow.fairnessId, (totals.get(flow.fairnessId) as number) + cost / flow.weight);
          }
          for (const f of names) {
            for (const g of names) {
              const pair = `${f} ${g}`;
              if (f === g || band.flow(f).waiting === 0 || band.flow(g).waiting === 0) {
                since.delete(pair);
                continue;
              }
              const before = since.get(pair) ?? leadOf(f, g);
              since.set(pair, before);
              beyond = Math.max(beyond, leadOf(f, g) - Math.max(before, largest(f)));
              grown = Math.max(grown, before - leadOf(f, g));
            }
          }
        },
      });
    }
    expect(beyond).toBeLessThanOrEqual(1e-6);
    // Far more than one request of each, 200: the bound of policies that forgive.
    expect(grown).toBeGreaterThan(300);
  });

  it('rejects what is no price', () => {
    expect(() => leastService({ promptTokenPrice: 0 })).toThrowError('leastService: promptTokenPrice');
  });
});
