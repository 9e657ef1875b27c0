import { describe, expect, it } from 'vitest';
import { concurrencyDetector, FlowController } from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';

function closedGate(bands: { priority: number; limits?: { maxRequests: number } }[]): FlowController {
  const flow = new FlowController({
    clock: new ManualClock(),
    saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    bands,
  });
  flow.tryEnqueue({ byteSize: 0 }, { fairnessId: 'holder', priority: 0 });
  return flow;
}

function wait(flow: FlowController, priority: number): void {
  void flow.enqueue({ byteSize: 0 }, { fairnessId: 'tenant', priority });
}

describe('the headroom of a band', () => {
  it('is its limit on requests less those that wait in it', () => {
    const flow = closedGate([{ priority: 0, limits: { maxRequests: 3 } }]);
    expect(flow.bandHeadroom(0)).toBe(3);
    wait(flow, 0);
    wait(flow, 0);
    expect(flow.bandHeadroom(0)).toBe(1);
    wait(flow, 5);
    expect(flow.bandHeadroom(0)).toBe(1);
  });

  it('is 0, and not less, when the limit was lowered below what waits', () => {
    const flow = closedGate([{ priority: 0, limits: { maxRequests: 3 } }]);
    wait(flow, 0);
    wait(flow, 0);
    flow.reconfigure({ bands: [{ priority: 0, limits: { maxRequests: 1 } }] });
    expect(flow.bandHeadroom(0)).toBe(0);
  });

  it('is unknown without a limit, and the template speaks for a band that does not exist', () => {
    const flow = closedGate([{ priority: 0, limits: { maxRequests: Number.POSITIVE_INFINITY } }]);
    flow.reconfigure({ defaultBand: { limits: { maxRequests: 7 } } });
    expect([flow.bandHeadroom(0), flow.bandHeadroom(50)]).toEqual([undefined, 7]);
  });
});
