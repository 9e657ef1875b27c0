import { describe, expect, it } from 'vitest';
import { globalStrict, overviewOf, roundRobin } from '../../../src/index.js';
import { dial, key, leaseOf, makeFlow, request, runNow } from '../../support/flow.js';

describe('in flight by flow', () => {
  it('is told by stats, snapshot and figures, and follows releases', () => {
    const { flow } = makeFlow({ saturationDetector: dial(0), defaultBand: { fairness: globalStrict() } });
    const first = leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 30 }, key('a', 1)));
    leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 12 }, key('a', 1)));
    leaseOf(flow.tryEnqueue({ byteSize: 1 }, key('a', 0)));
    const both = [
      { fairnessId: 'a', priority: 1, inFlight: 2, inFlightTokens: 42 },
      { fairnessId: 'a', priority: 0, inFlight: 1, inFlightTokens: 0 },
    ];
    expect(flow.stats().inFlightByFlow).toEqual(both);
    expect(overviewOf(flow, { flows: 'all' }).stats.inFlightByFlow).toEqual(both);
    expect(flow.figures().stats.inFlightByFlow).toEqual(both);
    first.release();
    first.release();
    expect(flow.stats().inFlightByFlow[0]).toEqual({ fairnessId: 'a', priority: 1, inFlight: 1, inFlightTokens: 12 });
  });

  it('stands beside what waits of the flow in a snapshot', () => {
    const { flow } = makeFlow({ defaultBand: { fairness: roundRobin() } });
    runNow(flow, { fairnessId: 'a' });
    void flow.enqueue(request, key('a'));
    void flow.enqueue(request, key('b'));
    const flows = overviewOf(flow, { flows: 'all' }).bands[0]?.flows.map(({ fairnessId, waiting, inFlight }) => [
      fairnessId,
      waiting,
      inFlight,
    ]);
    expect(flows).toEqual([
      ['a', 1, 1],
      ['b', 1, 0],
    ]);
  });

  it('leaves nothing behind when everything has ended', () => {
    const { flow } = makeFlow({ saturationDetector: dial(0) });
    const leases = ['a', 'b', 'c'].map((fairnessId) => runNow(flow, { fairnessId }));
    for (const lease of [leases[1], leases[0], leases[2]]) lease?.release();
    expect(flow.stats().inFlightByFlow).toEqual([]);
  });
});

describe('stats().saturation', () => {
  it('is read anew, also when nothing has happened since', () => {
    const detector = dial(0.25);
    const { flow } = makeFlow({ saturationDetector: detector });
    expect(flow.stats().saturation).toBe(0.25);
    detector.value = 0.75;
    expect(flow.stats().saturation).toBe(0.75);
  });
});
