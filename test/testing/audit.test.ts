import { describe, expect, it } from 'vitest';
import type { Engine } from '../../src/core/engine/engine.js';
import type { QueueItem } from '../../src/core/engine/queue-item.js';
import { engineOf } from '../../src/core/inspect/engine-of.js';
import { EndpointPool, FlowConfigError, type FlowController, inFlightEviction, roundRobin } from '../../src/index.js';
import { audit } from '../../src/testing/index.js';
import type { Flow } from '../../src/tiers/flow.js';
import type { PriorityBand } from '../../src/tiers/priority-band.js';
import { key, makeFlow, request, runNow } from '../support/flow.js';

/** One request runs in band 0, and three wait: two of `a`, one of `b` with a signal and a time limit. */
function crowd() {
  const pool = new EndpointPool();
  pool.add('e');
  const made = makeFlow({ pool, defaultRequestTtl: 0, bands: [{ priority: 0, fairness: roundRobin() }] });
  const lease = runNow(made.flow);
  for (const fairnessId of ['a', 'a']) void made.flow.enqueue({ ...request, byteSize: 3, tokens: 5 }, key(fairnessId));
  const abort = new AbortController();
  void made.flow.enqueue({ byteSize: 2, signal: abort.signal, ttlMs: 50 }, key('b'));
  return { ...made, lease, abort, pool };
}

/** Private state, for damage. */
function inside(flow: FlowController): Engine {
  return engineOf(flow) as Engine;
}

function band(flow: FlowController): PriorityBand {
  return inside(flow).backlog.bands.get(0) as PriorityBand;
}

function flowA(flow: FlowController): Flow {
  return band(flow).flows.get('a') as Flow;
}

/** Request 1, 2 or 3 of those that wait. */
function item(flow: FlowController, sequence: number): QueueItem {
  return inside(flow).backlog.items()[sequence - 1] as QueueItem;
}

describe('an audit', () => {
  it('finds nothing wrong with a controller at work, and counts from the requests up', () => {
    const { flow } = crowd();
    expect(audit(flow)).toEqual({
      violations: [],
      figures: { waiting: 3, waitingBytes: 8, waitingTokens: 10, inFlight: 1, bands: 1, flows: 3, signals: 1 },
    });
  });

  it('finds nothing wrong while requests leave in every way, nor after the end', async () => {
    const { flow, abort, clock, lease } = crowd();
    abort.abort();
    expect(audit(flow).violations).toEqual([]);
    void flow.enqueue({ ...request, ttlMs: 10 }, key('c'));
    clock.advance(10);
    expect(audit(flow).violations).toEqual([]);
    lease.release();
    expect(audit(flow)).toMatchObject({ violations: [], figures: { waiting: 1, inFlight: 1, signals: 0 } });
    await flow.close();
    expect(audit(flow)).toMatchObject({ violations: [], figures: { waiting: 0 } });
  });

  it.each<readonly [what: string, damage: (flow: FlowController) => void, violation: RegExp]>([
    [
      'a request too many in the total',
      (flow) => inside(flow).backlog.waiting++,
      /^4 requests wait, the bands hold 3$/,
    ],
    ['bytes too many in the total', (flow) => inside(flow).backlog.waitingBytes++, /^9 bytes wait, the bands hold 8$/],
    ['a request too many in a band', (flow) => band(flow).waiting++, /^band 0 counts 4 requests and holds 3$/],
    ['tokens that nobody has', (flow) => band(flow).waitingTokens--, /^band 0 miscounts tokens$/],
    [
      'a flow that counts wrongly',
      (flow) => flowA(flow).waiting--,
      /^flow "a" of band 0 counts 1 requests and holds 2$/,
    ],
    [
      'a flow that is idle and waits',
      (flow) => {
        flowA(flow).isIdle = true;
      },
      /^flow "a": expected idle false$/,
    ],
    [
      'a seat too many',
      (flow) => inside(flow).seats.inFlight++,
      /^2 leases are in flight, 1 were handed out and 0 ended$/,
    ],
    [
      'a seat that no endpoint has',
      (flow) => {
        inside(flow).seats.pool.inFlightRequests = 0;
      },
      /^the endpoints have 1 seats taken, the pool 0$/,
    ],
    [
      'a list of waiting bands that lost one',
      (flow) => (inside(flow).backlog.bands.allWaiting() as PriorityBand[]).pop(),
      /^the list of waiting bands is wrong$/,
    ],
    [
      'a deadline that is not kept',
      (flow) => {
        item(flow, 3).deadlines = undefined;
      },
      /^request 3: its deadline is not kept/,
    ],
    [
      'a signal that is not listened to',
      (flow) => {
        item(flow, 3).abortGroup = undefined;
      },
      /^request 3: its signal is not the one/,
    ],
    [
      'a request that is settled and waits',
      (flow) => {
        item(flow, 1).settle = undefined;
      },
      /^band 0 counts 3 requests and holds 2$/,
    ],
    [
      'a tombstone that is not counted',
      (flow) => {
        item(flow, 2).settle = undefined;
        flowA(flow).waiting--;
        band(flow).waiting--;
      },
      /^the queues of band 0 keep 3 requests that did not leave, and 2 wait$/,
    ],
    [
      'a flow that the table lost',
      (flow) => inside(flow).backlog.bands.flows.size--,
      /^2 flows are counted, 3 are known$/,
    ],
  ])('finds %s', (_, damage, violation) => {
    const { flow } = crowd();
    damage(flow);
    expect(audit(flow).violations).toContainEqual(expect.stringMatching(violation));
  });

  it('finds a request that has ended and may still be evicted', () => {
    const { flow } = makeFlow({ eviction: inFlightEviction() });
    const lease = runNow(flow, key('a', -1));
    expect(audit(flow).violations).toEqual([]);
    const [candidate] = inside(flow).eviction?.evictor.evictable.get(-1) ?? [];
    lease.release();
    inside(flow).eviction?.evictor.evictable.get(-1)?.push(candidate!);
    expect(audit(flow).violations).toEqual(['request 0 may be evicted from priority -1 and does not run there']);
  });

  it('finds a wake-up that was lost', () => {
    const { flow } = crowd();
    inside(flow).operation.isWorkWanted = true;
    expect(audit(flow).violations).toEqual(['the walk is due and did not run']);
    inside(flow).operation.isWorkWanted = false;
    inside(flow).dispatcher.isGateClosed = false;
    expect(audit(flow).violations).toEqual(['requests wait, and the gate is not said to be closed']);
  });

  it('finds a closed gate that nobody will look at again', () => {
    const { flow, clock } = makeFlow({ saturationDetector: () => 1, defaultRequestTtl: 0 });
    void flow.enqueue(request, key());
    expect(audit(flow).violations).toEqual([]);
    inside(flow).wakeups.poller.stop();
    expect(clock.pendingTimers).toBe(1);
    expect(audit(flow).violations).toEqual(['nothing looks at the closed gate again']);
  });

  it('is of a controller', () => {
    for (const wrong of [null, undefined, {}, 'flow']) expect(() => audit(wrong as never)).toThrow(FlowConfigError);
  });
});
