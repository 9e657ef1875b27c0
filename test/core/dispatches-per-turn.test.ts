/** Much that becomes free at once does not hold up the event loop. */
import { describe, expect, it } from 'vitest';
import { dial, key, makeFlow, request, turns } from '../support/flow.js';

describe('when much becomes free at once', () => {
  async function open(count: number, maxDispatchesPerTurn?: number) {
    const detector = dial(1, true);
    const { flow, clock } = makeFlow({ saturationDetector: detector, maxDispatchesPerTurn });
    const order: number[] = [];
    for (let i = 0; i < count; i++) void flow.enqueue(request, key()).then(() => order.push(i));
    detector.turnTo(0);
    return { flow, clock, order };
  }

  it('dispatch stops after a thousand requests, and goes on in the next turns in the same order', async () => {
    const { flow, clock, order } = await open(2500);
    expect(flow.stats()).toMatchObject({ dispatched: 1000, waiting: 1500 });
    clock.advance(0);
    await turns();
    expect(order).toEqual(Array.from({ length: 2500 }, (_, i) => i));
    expect(clock.pendingTimers).toBe(0);
  });

  it('newcomers do not overtake those that wait for the next turn', async () => {
    const { flow, clock, order } = await open(10, 4);
    expect(flow.tryEnqueue(request, key('b'))).toBeUndefined();
    void flow.enqueue(request, key('b')).then(() => order.push(10));
    expect(flow.stats().dispatched).toBe(4);
    clock.advance(0);
    clock.advance(0);
    await turns();
    expect(order).toEqual(Array.from({ length: 11 }, (_, i) => i));
  });

  it('close does not wait for the next turn', async () => {
    const { flow, clock } = await open(10, 4);
    await flow.close();
    expect(flow.stats()).toMatchObject({ dispatched: 4, evicted: 6, waiting: 0 });
    expect(clock.pendingTimers).toBe(0);
  });
});
