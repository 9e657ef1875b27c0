/** Requests that go back: victims of eviction, and those that their server put off. */
import { describe, expect, it } from 'vitest';
import {
  EndpointPool,
  type FlowController,
  type FlowControllerOptions,
  type FlowFairnessPolicy,
  inFlightEviction,
  type Lease,
} from '../../../src/index.js';
import { audit } from '../../../src/testing/index.js';
import { dial, dropOf, key, leaseOf, makeFlow, record, request, runNow } from '../../support/flow.js';

/** A sheddable request that was asked to leave for a premium one. */
function evicted(options: Partial<FlowControllerOptions> = {}): { flow: FlowController; victim: Lease } {
  const { flow } = makeFlow({ eviction: inFlightEviction(), ...options });
  const victim = runNow(flow, { fairnessId: 'victim', priority: -1 });
  void flow.enqueue(request, key('premium', 9));
  return { flow, victim };
}

/** A controller whose detector hears of answers, and lets everything go until its value is turned to 1. */
function puttingOff() {
  const level = dial(0);
  const { flow, clock } = makeFlow({ saturationDetector: { ...level, answered() {} }, defaultRequestTtl: 0 });
  const putBack = (lease: Lease) => {
    lease.answered({ status: 429, headers: {} });
    return lease.requeue();
  };
  return { flow, clock, level, putBack };
}

describe('a request that goes back', () => {
  it('waits at the gate like one that comes in, and is told of as waiting', () => {
    const { flow, level, putBack } = puttingOff();
    const [first, second] = [runNow(flow, key('first')), runNow(flow, key('second'))];
    const gate = record(flow, 'gate');
    const queued = record(flow, 'queued');
    level.value = 1;
    void putBack(first);
    void putBack(second);
    expect(gate).toEqual([{ isClosed: true, saturation: 1 }]);
    expect(queued).toMatchObject([
      { item: { fairnessId: 'first' }, waitingInBand: 1 },
      { item: { fairnessId: 'second' }, waitingInBand: 2 },
    ]);
  });

  it('is no reason to tell of a closed gate where it goes at once', async () => {
    const { flow, putBack } = puttingOff();
    const gate = record(flow, 'gate');
    leaseOf(await putBack(runNow(flow)));
    expect(gate).toEqual([]);
  });

  it('goes on when the gate opens, of which a silent detector is asked by timer', async () => {
    const { flow, clock, level, putBack } = puttingOff();
    const lease = runNow(flow);
    level.value = 1;
    const again = putBack(lease);
    level.value = 0;
    clock.advance(1000);
    leaseOf(await again).release();
    expect(clock.pendingTimers).toBe(0);
  });

  it('waited since it came in, the time that it ran included', async () => {
    const { flow, clock, level, putBack } = puttingOff();
    clock.advance(500);
    const lease = runNow(flow);
    clock.advance(30);
    level.value = 1;
    const again = putBack(lease);
    clock.advance(20);
    const told = record(flow, 'dispatched');
    level.value = 0;
    flow.reconfigure({});
    expect([(await again).queuedMs, told[0]?.queuedMs]).toEqual([50, 50]);
  });

  it('is not put off where it was dispatched before a detector learnt from answers, and its request is gone', async () => {
    const { flow } = makeFlow();
    const lease = runNow(flow);
    const heard: number[] = [];
    flow.reconfigure({
      saturationDetector: { ...dial(0), answered: (_at, _now, _seat, { status }) => heard.push(status) },
    });
    lease.answered({ status: 429, headers: {} });
    expect([heard, lease.isPutOff]).toEqual([[429], false]);
    await expect(lease.requeue()).rejects.toThrow('a lease that was evicted, or put off by its server');
    lease.release();
    const next = runNow(flow);
    next.answered({ status: 429, headers: {} });
    expect(next.isPutOff).toBe(true);
  });

  it('is settled with its fairness policy as one that was put back', async () => {
    const endings: unknown[] = [];
    const fairness: FlowFairnessPolicy = {
      type: 'hears',
      createSelector: (band) => ({
        pick: () => band.firstActive,
        settled: (_flow, _usage, _nowMs, _tokens, item, ending) => void endings.push([item.fairnessId, ending]),
      }),
    };
    const { flow, victim } = evicted({ bands: [{ priority: -1, fairness }] });
    const again = victim.requeue();
    flow.reconfigure({ saturationDetector: dial(0) });
    leaseOf(await again).release();
    expect(endings).toEqual([
      ['victim', 'requeued'],
      ['victim', 'released'],
    ]);
  });

  it('finds no way in once the controller closes', async () => {
    const { flow, victim } = evicted();
    const closed = flow.close({ drainMs: 1000 });
    expect(dropOf(await victim.requeue())).toMatchObject({ type: 'RejectedOther', reason: 'shutting-down' });
    await closed;
    expect(flow.stats()).toMatchObject({ dispatched: 2, rejected: 1, waiting: 0 });
  });

  it.each([
    ['RejectedCapacity', false],
    ['RejectedNoEndpoints', true],
  ] as const)('is rejected where its band was given up for another one: %s', async (type, isPoolEmpty) => {
    const pool = new EndpointPool();
    pool.add('e');
    const { flow, victim } = evicted({ pool, maxBands: 2 });
    void flow.enqueue(request, key('third', 5));
    if (isPoolEmpty) pool.remove('e');
    expect(dropOf(await victim.requeue())).toMatchObject({ type, reason: 'max-bands' });
    expect(flow.stats().inFlight).toBe(isPoolEmpty ? 0 : 1);
  });

  it('stays in the books of a flow whose cap was lowered meanwhile', async () => {
    const { flow, level, putBack } = puttingOff();
    const leases = [runNow(flow, key('a')), runNow(flow, key('a'))] as const;
    flow.reconfigure({ flows: { a: { maxInFlight: { requests: 1 } } } });
    void putBack(leases[0]);
    expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 1, isGateClosed: false });
    expect(audit(flow).violations).toEqual([]);
    level.value = 1;
    void flow.enqueue(request, key('b'));
    expect(flow.stats()).toMatchObject({ waiting: 2, isGateClosed: true });
    level.value = 0;
    leases[1].release();
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 0, isGateClosed: false });
  });
});
