import { describe, expect, it } from 'vitest';
import { edf, fcfs, globalStrict, type OrderingPolicy, overviewOf, sloDeadline } from '../../../src/index.js';
import { dial, dispatchOrder, key, makeFlow } from '../../support/flow.js';

describe('globalStrict', () => {
  it.each<[string, OrderingPolicy, string[]]>([
    ['fcfs', fcfs(), ['a', 'b', 'a', 'c', 'b']],
    ['edf', edf(), ['c', 'a', 'b', 'b', 'a']],
    ['sloDeadline', sloDeadline(), ['b', 'b', 'a', 'a', 'c']],
  ])('serves the band in the order of %s, whoever asks', (_, ordering, expected) => {
    const detector = dial(1, true);
    const { flow } = makeFlow({
      saturationDetector: detector,
      bands: [{ priority: 0, fairness: globalStrict(), ordering }],
    });
    const order = dispatchOrder(flow);
    for (const [name, ttlMs, sloTtftMs] of [
      ['a', 900, 30],
      ['b', 300, 20],
      ['a', 200, 30],
      ['c', 100, undefined],
      ['b', 400, 10],
    ] as const) {
      void flow.enqueue({ byteSize: 1, ttlMs, sloTtftMs }, key(name));
    }
    detector.turnTo(0);
    expect(order).toEqual(expected);
  });

  it('still counts what each flow has waiting', () => {
    const { flow } = makeFlow({
      saturationDetector: dial(1, true),
      bands: [{ priority: 0, flowLimits: { maxRequests: 2 } }],
    });
    for (const name of ['a', 'a', 'a', 'b']) void flow.enqueue({ byteSize: 3 }, key(name));
    expect(overviewOf(flow, { flows: 'all' }).bands[0]?.flows).toMatchObject([
      { fairnessId: 'a', waiting: 2, waitingBytes: 6 },
      { fairnessId: 'b', waiting: 1, waitingBytes: 3 },
    ]);
  });
});
