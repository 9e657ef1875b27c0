import { describe, expect, it } from 'vitest';
import { type Drop, EndpointPool, rejectAll } from '../../../src/index.js';
import { dial, dropOf, key, makeFlow, request, runNow } from '../../support/flow.js';

async function capacityDrop(): Promise<Drop> {
  const { flow } = makeFlow({ bands: [{ priority: 0, limits: { maxRequests: 1 } }] });
  runNow(flow);
  void flow.enqueue(request, key());
  return dropOf(await flow.enqueue(request, key()));
}

describe('outcome.explanation', () => {
  it('names the limit and how full it is', async () => {
    expect((await capacityDrop()).explanation).toEqual({
      decidedBy: 'limit',
      limit: { scope: 'band', resource: 'requests', max: 1, used: 1 },
      text: 'band 0 is full: 1 of 1 requests wait',
    });
  });

  it('names the admission policy and what it said', async () => {
    const { flow } = makeFlow({ admission: rejectAll() });
    const { explanation } = dropOf(await flow.enqueue(request, key()));
    expect(explanation).toMatchObject({ decidedBy: 'admission', policy: 'reject-all' });
    expect(explanation?.text).toMatch(/^rejected by reject-all: ./);
  });

  it('tells how saturation stood when the time was up, however it stands when it is read', async () => {
    const detector = dial(1.3, true);
    const { flow, clock } = makeFlow({ saturationDetector: detector, defaultRequestTtl: 2500 });
    const waiting = flow.enqueue(request, key());
    clock.advance(2500);
    const drop = dropOf(await waiting);
    detector.turnTo(0);
    expect(drop.explanation).toEqual({
      decidedBy: 'ttl',
      text: 'waited 2.5 s in band 0, as long as it may; saturation was 1.30, the ceiling 1.00',
      saturation: 1.3,
      ceiling: 1,
    });
  });

  it('tells of displacement, an empty pool, a client that left, the end', async () => {
    const { flow } = makeFlow({
      limits: { maxRequests: 1 },
      overflow: 'displace',
      bands: [{ priority: -1 }, { priority: 0 }],
    });
    runNow(flow);
    const low = flow.enqueue(request, key('a', -1));
    void flow.enqueue(request, key('a', 0));
    expect(dropOf(await low).explanation).toMatchObject({
      decidedBy: 'priority',
      text: expect.stringContaining('a higher band took the place'),
    });

    const empty = makeFlow({ pool: new EndpointPool(), noEndpointRequestTtl: 1000 });
    const nowhere = empty.flow.enqueue(request, key());
    empty.clock.advance(1000);
    expect(dropOf(await nowhere).explanation).toEqual({
      decidedBy: 'pool',
      text: 'no endpoint that it may go to, for 1.0 s',
    });

    const leaving = new AbortController();
    const { flow: other, clock } = makeFlow();
    runNow(other);
    const left = other.enqueue({ byteSize: 1, signal: leaving.signal }, key());
    clock.advance(1500);
    leaving.abort();
    expect(dropOf(await left).explanation).toEqual({
      decidedBy: 'client',
      text: 'the client left after 1.5 s in band 0',
    });

    await other.close();
    expect(dropOf(await other.enqueue(request, key())).explanation).toEqual({
      decidedBy: 'controller',
      text: 'the controller is closing',
    });
  });

  it('never names a fairness ID', async () => {
    const { flow } = makeFlow({ bands: [{ priority: 0, flowLimits: { maxRequests: 0 } }] });
    const { explanation } = dropOf(await flow.enqueue(request, key('sk-secret')));
    expect(JSON.stringify(explanation)).not.toContain('sk-secret');
    expect(explanation?.text).toBe('its flow in band 0 is full: 0 of 0 requests wait');
  });

  it('leaves the outcome plain: copies, comparisons and JSON do not see it', async () => {
    const drop = await capacityDrop();
    const plain = {
      type: 'RejectedCapacity',
      reason: 'band-max-requests',
      fairnessId: 'a',
      priority: 0,
      queuedMs: 0,
      limit: { scope: 'band', resource: 'requests', max: 1, used: 1 },
      retryAfterMs: 1000,
    };
    expect(drop).toEqual(plain);
    expect(JSON.parse(JSON.stringify(drop))).toEqual(plain);
    expect({ ...drop }).toEqual(plain);
    expect(Object.keys(drop)).not.toContain('explanation');
    expect(structuredClone(drop)).toEqual(plain);
  });
});
