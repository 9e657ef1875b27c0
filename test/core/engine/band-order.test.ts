import { describe, expect, it } from 'vitest';
import { type FlowControllerOptions, roundRobin } from '../../../src/index.js';
import { dial, key, makeFlow, turns } from '../../support/flow.js';

/** Requests wait at a closed gate; the gate opens, and the order in which they go is told. */
async function orderOf(
  options: Partial<FlowControllerOptions>,
  arrivals: readonly (readonly [name: string, priority: number, atMs: number])[],
): Promise<string[]> {
  const gate = dial(1, true);
  const { flow, clock } = makeFlow({ saturationDetector: gate, defaultRequestTtl: 0, ...options });
  const order: string[] = [];
  for (const [name, priority, atMs] of arrivals) {
    clock.advance(atMs - clock.now());
    void flow.enqueue({ byteSize: 1 }, key(name, priority)).then(() => order.push(name));
  }
  gate.turnTo(0);
  await turns();
  return order;
}

describe('bandOrder', () => {
  const arrivals = [
    ['low 0', -1, 0],
    ['normal 10', 0, 10_000],
    ['low 20', -1, 20_000],
    ['high 30', 5, 30_000],
  ] as const;

  it('strict: the highest band first', async () => {
    expect(await orderOf({}, arrivals)).toEqual(['high 30', 'normal 10', 'low 0', 'low 20']);
  });

  it('fifo: the earliest first, across bands', async () => {
    expect(await orderOf({ bandOrder: 'fifo' }, arrivals)).toEqual(['low 0', 'normal 10', 'low 20', 'high 30']);
  });

  it('aging: a band higher is worth bandPromotion of waiting', async () => {
    // Ranks: -1 → 0, 0 → 1, 5 → 2. Keys at 12 s a band: low 0, normal −2, low 20, high 6.
    expect(await orderOf({ bandOrder: 'aging', bandPromotion: '12s' }, arrivals)).toEqual([
      'normal 10',
      'low 0',
      'high 30',
      'low 20',
    ]);
    expect(await orderOf({ bandOrder: 'aging', bandPromotion: 0 }, arrivals)).toEqual([
      'low 0',
      'normal 10',
      'low 20',
      'high 30',
    ]);
  });

  it('aging: a request is overtaken only by those that came less than a promotion after it', async () => {
    const many = Array.from(
      { length: 60 },
      (_, i) => [`${i % 2 === 0 ? 'high' : 'low'} ${i}`, i % 2, i * 1000] as const,
    );
    const order = await orderOf({ bandOrder: 'aging', bandPromotion: '10s', bands: [{ priority: 1 }] }, many);
    for (const [place, name] of order.entries()) {
      const at = Number(name.split(' ')[1]);
      for (const later of order.slice(0, place).map((other) => Number(other.split(' ')[1])))
        expect(later - at).toBeLessThanOrEqual(10);
    }
  });

  it('leaves fairness and order inside a band alone', async () => {
    const order = await orderOf(
      { bandOrder: 'fifo', defaultBand: { fairness: roundRobin() }, bands: [{ priority: 0, fairness: roundRobin() }] },
      [
        ['a', 0, 0],
        ['a', 0, 0],
        ['b', 0, 0],
        ['c', 1, 0],
      ],
    );
    expect(order).toEqual(['a', 'b', 'a', 'c']);
  });
});

describe('minShare', () => {
  it('gives a low band its part of all dispatches, within the bound', async () => {
    const arrivals = Array.from(
      { length: 400 },
      (_, i) => [i % 2 === 0 ? 'high' : 'low', i % 2 === 0 ? 10 : -1, 0] as const,
    );
    const order = await orderOf({ bands: [{ priority: 10 }, { priority: -1, minShare: 0.1 }] }, arrivals);
    const share = 0.1;
    for (let n = 1; n <= 200; n++) {
      const served = order.slice(0, n).filter((name) => name === 'low').length;
      expect(served).toBeGreaterThanOrEqual(share * n - (2 + share));
      expect(served).toBeLessThanOrEqual(share * n + 1);
    }
  });

  it('banks nothing while the band is empty', async () => {
    const gate = dial(0, true);
    const { flow } = makeFlow({ saturationDetector: gate, bands: [{ priority: 10 }, { priority: -1, minShare: 0.5 }] });
    for (let i = 0; i < 50; i++) void flow.enqueue({ byteSize: 1 }, key('high', 10));
    gate.turnTo(1);
    const order: string[] = [];
    for (let i = 0; i < 4; i++) {
      void flow.enqueue({ byteSize: 1 }, key('high', 10)).then(() => order.push('high'));
      void flow.enqueue({ byteSize: 1 }, key('low', -1)).then(() => order.push('low'));
    }
    gate.turnTo(0);
    await turns();
    expect(order.slice(0, 4)).toEqual(['high', 'high', 'low', 'high']);
  });

  it('must leave something for the order of bands to decide', () => {
    expect(() =>
      makeFlow({
        bands: [
          { priority: 1, minShare: 0.6 },
          { priority: -1, minShare: 0.4 },
        ],
      }),
    ).toThrow(
      'FlowController options: bands: expected shares that add up to less than 1; got minShare of all bands together 1',
    );
  });
});
