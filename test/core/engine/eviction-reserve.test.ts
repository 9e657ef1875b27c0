import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  type FlowController,
  inFlightEviction,
  type Lease,
  type Outcome,
} from '../../../src/index.js';
import type { ManualClock } from '../../../src/testing/index.js';
import { key, leaseOf, makeFlow, runNow, turns } from '../../support/flow.js';

const seats = 4;

/** A pool full of batch work, of which a premium request has just taken one seat. */
async function afterOneEviction(
  reserveMs?: number,
): Promise<{ flow: FlowController; clock: ManualClock; batch: Lease[]; premium: Lease }> {
  const { flow, clock } = makeFlow({
    saturationDetector: concurrencyDetector({ maxConcurrency: seats }),
    eviction: inFlightEviction({ reserveMs }),
  });
  const batch = Array.from({ length: seats }, () => runNow(flow, key('batch', -1)));
  const waiting = flow.enqueue({ byteSize: 1 }, key('premium', 10));
  batch.pop()?.release();
  return { flow, clock, batch, premium: leaseOf(await waiting) };
}

function watch(promise: Promise<Outcome>): { ended: boolean } {
  const state = { ended: false };
  void promise.then(() => {
    state.ended = true;
  });
  return state;
}

describe('the seat that was taken back by eviction', () => {
  it('stays free for the band that it was evicted for: the next premium request evicts nobody', async () => {
    const { flow, premium } = await afterOneEviction();
    const batch = watch(flow.enqueue({ byteSize: 1 }, key('batch', -1)));
    premium.release();
    await turns();
    expect(batch.ended).toBe(false);
    runNow(flow, key('premium', 10));
    expect(flow.stats().evictedInFlight).toBe(1);
  });

  it('is for everybody again a second after the eviction, by a timer', async () => {
    const { flow, clock, premium } = await afterOneEviction();
    const batch = watch(flow.enqueue({ byteSize: 1 }, key('batch', -1)));
    premium.release();
    clock.advance(999);
    await turns();
    expect(batch.ended).toBe(false);
    clock.advance(1);
    await turns();
    expect(batch.ended).toBe(true);
  });

  it('holds lower bands back by no more than was evicted', async () => {
    const { flow, batch, premium } = await afterOneEviction();
    premium.release();
    batch[0]?.release();
    runNow(flow, key('batch', -1));
    expect(flow.stats().inFlight).toBe(seats - 1);
    expect(watch(flow.enqueue({ byteSize: 1 }, key('batch', -1))).ended).toBe(false);
    await turns();
    expect(flow.stats().waiting).toBe(1);
  });

  it('leaves lower bands half of the pool, however many were evicted', async () => {
    const { flow, clock } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 4 }),
      eviction: inFlightEviction({ maxPerDecision: 8 }),
    });
    const batch = Array.from({ length: 4 }, () => runNow(flow, key('batch', -1)));
    const premium = Array.from({ length: 4 }, () => flow.enqueue({ byteSize: 1 }, key('premium', 10)));
    for (let i = 0; i < 4; i++) for (const lease of batch) if (lease.isEvicted) lease.release();
    for (const each of premium) leaseOf(await each).release();
    expect(flow.stats()).toMatchObject({ evictedInFlight: 4, inFlight: 0 });
    for (let i = 0; i < 3; i++) void flow.enqueue({ byteSize: 1 }, key('batch', -1));
    expect(flow.stats()).toMatchObject({ waiting: 1, inFlight: 2 });
    clock.advance(1000);
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 3 });
  });

  it('is open to bands above the one that it was evicted for', async () => {
    const { flow, premium } = await afterOneEviction();
    premium.release();
    runNow(flow, key('root', 20));
    expect(flow.stats().inFlight).toBe(seats);
  });

  it('goes to whoever waits at once with reserveMs: 0, and is taken back by the next', async () => {
    const { flow, premium } = await afterOneEviction(0);
    const batch = flow.enqueue({ byteSize: 1 }, key('batch', -1));
    premium.release();
    expect(leaseOf(await batch).priority).toBe(-1);
    void flow.enqueue({ byteSize: 1 }, key('premium', 10));
    expect(flow.stats().evictedInFlight).toBe(2);
  });

  it('stays free through a change of other options, and of its own time from then on', async () => {
    const { flow, clock, premium } = await afterOneEviction();
    premium.release();
    flow.reconfigure({ limits: { maxRequests: 5 } });
    const batch = watch(flow.enqueue({ byteSize: 1 }, key('batch', -1)));
    await turns();
    expect(batch.ended).toBe(false);
    flow.reconfigure({ eviction: inFlightEviction({ reserveMs: 100 }) });
    clock.advance(100);
    await turns();
    expect(batch.ended).toBe(true);
  });

  it('is given up when eviction is switched off', async () => {
    const { flow, premium } = await afterOneEviction();
    premium.release();
    flow.reconfigure({ eviction: undefined });
    runNow(flow, key('batch', -1));
    expect(flow.stats().inFlight).toBe(seats);
  });
});
