import { describe, expect, it } from 'vitest';
import { FlowConfigError, roundRobin } from '../../src/index.js';
import {
  countedAbort,
  dial,
  dispatchOrder,
  dropOf,
  key,
  leaseOf,
  makeFlow,
  record,
  request,
  runNow,
} from '../support/flow.js';

describe('tryEnqueue', () => {
  it('dispatches while the gate is open', () => {
    const { flow } = makeFlow();
    expect(leaseOf(flow.tryEnqueue(request, key('a', 2)))).toMatchObject({ fairnessId: 'a', priority: 2 });
    expect(flow.stats()).toMatchObject({ enqueued: 1, dispatched: 1 });
  });

  it('leaves no trace of a request that would have to wait', () => {
    const { flow, clock } = makeFlow({ limits: { maxRequests: 1 } });
    const { signal, added } = countedAbort();
    const events = (['queued', 'dispatched', 'dropped', 'gate'] as const).map((event) => record(flow, event));
    runNow(flow);
    for (let i = 0; i < 3; i++) expect(flow.tryEnqueue({ ...request, signal }, key())).toBeUndefined();
    expect(flow.stats()).toMatchObject({ enqueued: 1, waiting: 0, waitingBytes: 0, rejected: 0, isGateClosed: false });
    expect(events.map(({ length }) => length)).toEqual([0, 1, 0, 0]);
    expect([added(), clock.pendingTimers]).toEqual([0, 0]);
  });

  it('counts no arrival of a request that would have to wait, nor tells of its decision', () => {
    const { flow } = makeFlow();
    runNow(flow);
    const decisions = record(flow, 'enqueued');
    for (let i = 0; i < 32; i++) flow.tryEnqueue(request, key('b', i % 2));
    expect(flow.figures().bands).toMatchObject([{ priority: 1, arrivedPerSecond: 0 }, { arrivedPerSecond: 1 }]);
    expect(decisions).toEqual([]);
  });

  it('tells a drop', () => {
    const { flow } = makeFlow({ limits: { maxBytes: 5 } });
    expect(dropOf(flow.tryEnqueue(request, key())).reason).toBe('global-max-bytes');
    expect(flow.stats()).toMatchObject({ enqueued: 1, rejected: 1 });
  });

  it('overtakes nobody of its own or of a higher band', () => {
    const { flow } = makeFlow({ saturationDetector: dial(1, true), usageLimitPolicy: openFor(0) });
    void flow.enqueue(request, key('high', 5));
    expect(flow.tryEnqueue(request, key('low', 0))).toBeUndefined();
    expect(flow.tryEnqueue(request, key('high', 5))).toBeUndefined();
    expect(flow.stats()).toMatchObject({ waiting: 1, dispatched: 0 });
  });

  it('overtakes what waits in lower bands, when the gate is open for its own', () => {
    const { flow } = makeFlow({ saturationDetector: dial(0.7, true), usageLimitPolicy: openFor(5) });
    void flow.enqueue(request, key('low', 0));
    expect(flow.stats().waiting).toBe(1);
    leaseOf(flow.tryEnqueue(request, key('high', 5)));
    expect(flow.stats().waiting).toBe(1);
  });

  it('leaves a seat that came free unnoticed to the newcomer, and not to what waits in lower bands', () => {
    const detector = dial(1);
    const { flow } = makeFlow({
      saturationDetector: { ...detector, saturation: ({ inFlightRequests }) => inFlightRequests / detector.value },
    });
    runNow(flow);
    void flow.enqueue(request, key('low', -1));
    detector.value = 2;
    expect(leaseOf(flow.tryEnqueue(request, key('high', 1))).fairnessId).toBe('high');
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 1 });
  });

  it('looks at the gate anew, so that those who wait go first', () => {
    const detector = dial(1);
    const { flow } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, fairness: roundRobin() }] });
    const order = dispatchOrder(flow);
    void flow.enqueue(request, key('first'));
    detector.value = 0;
    leaseOf(flow.tryEnqueue(request, key('second')));
    expect(order).toEqual(['first', 'second']);
  });

  it('answers undefined from inside a listener', () => {
    const { flow } = makeFlow();
    const answers: unknown[] = [];
    flow.on('released', () => answers.push(flow.tryEnqueue(request, key())));
    runNow(flow).release();
    expect(answers).toEqual([undefined]);
    expect(flow.stats()).toMatchObject({ enqueued: 1, inFlight: 0 });
  });

  it('displaces nobody for a request that it does not queue', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 1 }, overflow: 'displace' });
    runNow(flow, { priority: 20 });
    const waiting = flow.enqueue(request, key('batch', -1));
    expect(flow.tryEnqueue(request, key('premium', 10))).toBeUndefined();
    expect(flow.stats()).toMatchObject({ waiting: 1, evicted: 0 });
    void flow.enqueue(request, key('premium', 10));
    expect(dropOf(await waiting).reason).toBe('displaced');
  });

  it('throws for a call that cannot be right', () => {
    const { flow } = makeFlow();
    expect(() => flow.tryEnqueue({ byteSize: 1.5 }, key())).toThrow(FlowConfigError);
  });

  it('rejects once the controller closes', async () => {
    const { flow } = makeFlow();
    await flow.close();
    expect(dropOf(flow.tryEnqueue(request, key()))).toMatchObject({ type: 'RejectedOther', reason: 'shutting-down' });
  });
});

/** Bands from `priority` up may use the whole pool, the others half of it. */
function openFor(priority: number): {
  type: string;
  computeLimits(saturation: number, priorities: readonly number[], ceilings: number[]): void;
} {
  return {
    type: 'open-for',
    computeLimits(_saturation, priorities, ceilings) {
      for (const [i, other] of priorities.entries()) ceilings[i] = other >= priority ? 1 : 0.5;
    },
  };
}
