import { describe, expect, it } from 'vitest';
import { type Demand, Reclamation } from '../../src/eviction/reclamation.js';

const settings = { maxPerDecision: 3, graceMs: 100, timeoutMs: 1000 };

function make(changes: Partial<typeof settings> = {}): Reclamation<string> {
  return new Reclamation<string>(() => ({ ...settings, ...changes }));
}

/** Ten requests fill the pool; each holds a tenth of it. */
const full: Demand = { inFlight: 10, evictable: 10, saturation: 1, ceiling: 1 };

describe('a decision', () => {
  it.each<[string, Partial<Demand>, number]>([
    ['one for a saturation exactly at the ceiling, because the gate is strict', {}, 1],
    ['as many as the excess is worth', { ceiling: 0.8 }, 2],
    ['as many as the excess is worth, in whole requests', { ceiling: 0.85 }, 2],
    ['no more than may be evicted at a time', { ceiling: 0.2 }, 3],
    ['no more than there are', { ceiling: 0.2, evictable: 2 }, 2],
    ['none below the ceiling', { ceiling: 1.1 }, 0],
    ['none when nothing runs', { inFlight: 0 }, 0],
    ['none when nothing runs and nothing shows', { inFlight: 0, saturation: 0 }, 0],
    ['none when nothing may be evicted', { evictable: 0 }, 0],
    ['none when what runs does not show in the saturation', { saturation: 0, ceiling: 0 }, 0],
    ['none when the saturation is beyond every number', { saturation: Number.POSITIVE_INFINITY }, 0],
  ])('evicts %s', (_, changes, size) => {
    expect(make().size({ ...full, ...changes })).toBe(size);
  });

  it('counts what victims that are leaving will free', () => {
    const reclamation = make();
    reclamation.issued('a', 0.5, 0);
    const over = (excess: number): number => reclamation.size({ ...full, saturation: 1, ceiling: 1 - excess });
    expect([over(0.25), over(0.5), over(0.625)]).toEqual([0, 0, 2]);
  });
});

describe('between two decisions', () => {
  it('every victim must have left, and what it freed have had its time to show', () => {
    const reclamation = make();
    expect([reclamation.isSettled(0), reclamation.settlesAtMs]).toEqual([true, Number.POSITIVE_INFINITY]);
    reclamation.issued('a', 0.1, 0);
    reclamation.issued('b', 0.1, 0);
    expect([reclamation.isSettled(10), reclamation.pending]).toEqual([false, 0.2]);
    expect(reclamation.confirmed('a', 50)).toBe(true);
    expect(reclamation.settlesAtMs).toBe(150);
    expect(reclamation.isSettled(150)).toBe(false);
    expect(reclamation.pending).toBeCloseTo(0.1);
    reclamation.confirmed('b', 200);
    expect([reclamation.isSettled(299), reclamation.isSettled(300)]).toEqual([false, true]);
    expect([reclamation.pending, reclamation.settlesAtMs]).toEqual([0, Number.POSITIVE_INFINITY]);
  });

  it('a victim that does not leave is taken to have left after the timeout', () => {
    const reclamation = make();
    reclamation.issued('a', 0.1, 0);
    expect(reclamation.settlesAtMs).toBe(1000);
    expect([reclamation.isSettled(999), reclamation.isSettled(1000)]).toEqual([false, false]);
    expect(reclamation.settlesAtMs).toBe(1100);
    expect(reclamation.isSettled(1100)).toBe(true);
  });

  it('nothing is waited for where freed seats show at once', () => {
    const reclamation = make({ graceMs: 0 });
    reclamation.issued('a', 0.1, 0);
    reclamation.confirmed('a', 5);
    expect([reclamation.isSettled(5), reclamation.pending]).toEqual([true, 0]);
    reclamation.issued('b', 0.1, 10);
    expect(reclamation.isSettled(1010)).toBe(true);
  });

  it('nothing is left over of what many were to free', () => {
    const reclamation = make({ graceMs: 0 });
    for (const credit of [0.1, 0.2, 0.3]) reclamation.issued(`${credit}`, credit, 0);
    for (const credit of [0.1, 0.2, 0.3]) reclamation.confirmed(`${credit}`, 0);
    expect(reclamation.pending).toBe(0);
  });

  it('a victim leaves once, and who was none does not', () => {
    const reclamation = make();
    reclamation.issued('a', 0.1, 0);
    expect([reclamation.confirmed('b', 1), reclamation.confirmed('a', 1), reclamation.confirmed('a', 90)]).toEqual([
      false,
      true,
      false,
    ]);
    expect(reclamation.settlesAtMs).toBe(101);
  });

  it('other settings hold for those that are issued and leave from then on', () => {
    let inForce = settings;
    const reclamation = new Reclamation<string>(() => inForce);
    reclamation.issued('a', 0.1, 0);
    inForce = { maxPerDecision: 1, graceMs: 7, timeoutMs: 20 };
    reclamation.issued('b', 0.1, 0);
    expect(reclamation.settlesAtMs).toBe(20);
    reclamation.confirmed('a', 5);
    expect(reclamation.settlesAtMs).toBe(12);
    expect(make().size({ ...full, ceiling: 0 })).toBe(3);
    expect(reclamation.size({ ...full, ceiling: 0 })).toBe(1);
  });
});
