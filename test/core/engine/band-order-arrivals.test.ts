import { describe, expect, it } from 'vitest';
import { dial, dispatchOrder, key, makeFlow, request, turns } from '../../support/flow.js';

describe.each([
  ['fifo', { bandOrder: 'fifo' }],
  ['aging', { bandOrder: 'aging', bandPromotion: '1s' }],
] as const)('bandOrder %s', (_, options) => {
  it.each(['enqueue', 'tryEnqueue'] as const)(
    'holds also for a request that comes (%s) before a silent detector was asked again',
    async (way) => {
      const detector = dial(1);
      const { flow, clock } = makeFlow({
        saturationDetector: detector,
        gate: { recheckIntervalMs: 60_000 },
        ...options,
      });
      const order = dispatchOrder(flow);
      void flow.enqueue(request, key('old low', -1));
      clock.advance(10_000);
      detector.value = 0;
      void flow[way](request, key('new high', 5));
      await turns();
      expect(order).toEqual(['old low', 'new high']);
    },
  );

  it('lets a request pass that only bands with a closed ceiling wait beside', () => {
    const { flow } = makeFlow({
      saturationDetector: dial(0.7, true),
      usageLimitPolicy: {
        type: 'halves',
        computeLimits(_saturation, priorities, ceilings) {
          for (const [i, priority] of priorities.entries()) ceilings[i] = priority > 0 ? 1 : 0.5;
        },
      },
      ...options,
    });
    void flow.enqueue(request, key('low', -1));
    expect(flow.stats().waiting).toBe(1);
    expect(flow.tryEnqueue(request, key('high', 5))?.type).toBe('Dispatched');
    expect(flow.stats().waiting).toBe(1);
  });
});
