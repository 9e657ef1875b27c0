import { describe, expect, it } from 'vitest';
import { busyThresholdDetector, EndpointPool, explainDrop, refuseWhenAllBusy } from '../../src/index.js';
import { dropOf, key, leaseOf, makeFlow, request, turns } from '../support/flow.js';
import { admissionView } from '../support/pools.js';
import { sheddable, standard } from './support.js';

const policy = refuseWhenAllBusy();

describe('refuseWhenAllBusy', () => {
  it.each([0, 0.5, 0.999])('admits everybody at saturation %s', (saturation) => {
    expect(policy.admit({}, standard, admissionView([{}], { saturation }))).toBe('admit');
    expect(policy.admit({}, sheddable, admissionView([{}], { saturation }))).toBe('admit');
  });

  it.each([1, 1.5, Number.NaN])('rejects everybody at saturation %s, as overloaded', (saturation) => {
    for (const { priority } of [sheddable, standard, { priority: 1000 }]) {
      expect(policy.admit({}, { fairnessId: 'a', priority }, admissionView([{}], { saturation }))).toEqual({
        reason: 'All workers are busy, please retry later',
        cause: 'overloaded',
      });
    }
  });

  it('does not take a pool without endpoints for busy, and reads nothing then', () => {
    const view = admissionView([], { saturation: 1 });
    expect(policy.admit({}, standard, view)).toBe('admit');
    expect(view.reads).toBe(0);
  });
});

describe('a controller with it', () => {
  function frontend(mode: 'queue' | 'admission') {
    const pool = new EndpointPool();
    const busy = (id: string, activePrefillTokens: number) =>
      pool.report(id, { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0, ranks: [{ activePrefillTokens }] });
    const saturationDetector = busyThresholdDetector({ activePrefillTokensThreshold: 100 });
    return { pool, busy, ...makeFlow({ pool, mode, saturationDetector, admission: refuseWhenAllBusy() }) };
  }

  it('sends to the workers that are free, and rejects when none is', () => {
    const { pool, busy, flow } = frontend('admission');
    for (const id of ['a', 'b']) pool.add(id);
    busy('a', 101);
    expect(leaseOf(flow.tryEnqueue(request, key())).endpoint?.id).toBe('b');
    busy('b', 101);
    const drop = dropOf(flow.tryEnqueue(request, key('a', 100)));
    expect(drop).toMatchObject({ type: 'RejectedCapacity', reason: 'overloaded', policy: 'all-workers-busy' });
    expect(explainDrop(drop)).toMatchObject({ cause: 'overloaded', status: 503 });
    busy('a', 100);
    expect(leaseOf(flow.tryEnqueue(request, key())).endpoint?.id).toBe('a');
  });

  it('says of an empty pool that it is empty, and lets requests wait for one where they may', async () => {
    expect(dropOf(frontend('admission').flow.tryEnqueue(request, key())).type).toBe('RejectedNoEndpoints');
    const { pool, flow } = frontend('queue');
    const waiting = flow.enqueue(request, key());
    pool.add('a');
    await turns();
    expect(leaseOf(await waiting).endpoint?.id).toBe('a');
  });
});
