/** What becomes of a request that comes in, where several answers are near. */
import { describe, expect, it } from 'vitest';
import {
  type Constraint,
  concurrencyDetector,
  type EndpointFilter,
  EndpointPool,
  type FlowControllerOptions,
  globalStrict,
  inFlightEviction,
  type SaturationDetector,
} from '../../../src/index.js';
import { audit } from '../../../src/testing/index.js';
import { dial, dropOf, key, leaseOf, makeFlow, request, runNow, turns } from '../../support/flow.js';

/** A controller with an open gate and one server without room: requests wait for the server alone. */
function openGateFullServer(options: Partial<FlowControllerOptions> = {}) {
  const pool = new EndpointPool();
  pool.add('a');
  const roomless = { type: 'roomless', saturation: () => 0, filter: () => [] };
  return makeFlow({ pool, headroom: 'required', saturationDetector: roomless, ...options });
}

describe('a request that finds the gate open, and no server with room', () => {
  it('waits within the limits, and is rejected beyond them', async () => {
    const { flow } = openGateFullServer({ limits: { maxRequests: 2 } });
    for (let i = 0; i < 2; i++) void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ waiting: 2, inFlight: 0 });
    expect(dropOf(await flow.enqueue(request, key())).reason).toBe('global-max-requests');
  });
});

describe('a full queue', () => {
  /** One request of `a` runs and one waits for it, at the cap of its flow: the band has no place left. */
  function fullOfParked(limits: { maxRequests?: number; maxBytes?: number }) {
    const made = makeFlow({ saturationDetector: dial(0), bands: [{ priority: 0, limits, maxInFlightPerFlow: 1 }] });
    runNow(made.flow, { fairnessId: 'a' });
    void made.flow.enqueue(request, key('a'));
    return made.flow;
  }

  it.each([[{ maxRequests: 1 }], [{ maxBytes: 10 }]])('of %o lets pass who need not wait', async (limits) => {
    const flow = fullOfParked(limits);
    leaseOf(await flow.enqueue(request, key('b')));
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 1 });
    expect(dropOf(await flow.enqueue(request, key('a'))).type).toBe('RejectedCapacity');
  });

  it('lets nobody pass who is larger than the limit', async () => {
    const flow = fullOfParked({ maxBytes: 10 });
    expect(dropOf(await flow.enqueue({ byteSize: 11 }, key('b'))).reason).toBe('band-max-bytes');
  });

  it('lets nobody pass where the limit is no request at all', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 0 } });
    expect(dropOf(await flow.enqueue(request, key('b'))).reason).toBe('global-max-requests');
  });
});

describe('an admission policy that rejects', () => {
  it.each([
    ['overloaded', 'overloaded'],
    [undefined, 'refused'],
  ] as const)('for the cause %s gives the drop the reason %s', async (cause, reason) => {
    const { flow } = makeFlow({ admission: { type: 'no', admit: () => ({ reason: 'no', cause }) } });
    expect(dropOf(await flow.enqueue(request, key()))).toMatchObject({
      type: 'RejectedCapacity',
      reason,
      detail: 'no',
    });
  });
});

describe("mode 'admission' without an endpoint to be had", () => {
  it('is a want of endpoints while the pool has none that is well', async () => {
    const pool = new EndpointPool();
    pool.add('a', { state: 'ill' });
    const { flow } = makeFlow({ mode: 'admission', pool });
    expect(dropOf(await flow.enqueue(request, key()))).toMatchObject({
      type: 'RejectedNoEndpoints',
      reason: 'no-endpoints',
    });
  });

  it('is an overload where a server has no room for the request', async () => {
    const { flow } = openGateFullServer({ mode: 'admission' });
    expect(dropOf(await flow.enqueue(request, key()))).toMatchObject({
      type: 'RejectedCapacity',
      reason: 'overloaded',
    });
  });
});

describe('the time that a request may wait', () => {
  it.each([
    ['its own, where that is shorter', 100, 50, 50],
    ['its TTL, where that is shorter', 50, 100, 50],
    ['its own, where its TTL is for ever', 0, 70, 70],
    ['its TTL, where it has none of its own', 60, undefined, 60],
  ])('is %s', async (_, ttlMs, maxWaitMs, waitsMs) => {
    const { flow, clock } = makeFlow();
    runNow(flow);
    const waiting = flow.enqueue({ ...request, ttlMs, maxWaitMs }, key());
    clock.advance(waitsMs - 1);
    expect(flow.stats().waiting).toBe(1);
    clock.advance(1);
    expect(dropOf(await waiting)).toMatchObject({ reason: 'ttl-expired', queuedMs: waitsMs });
  });
});

describe('a call that cannot be right', () => {
  const broken = {
    get byteSize(): number {
      throw new Error('unreadable');
    },
  };
  const wrong: [string, object][] = [
    ['of no bytes that can be counted', { byteSize: -1 }],
    ['of half a byte', { byteSize: 0.5 }],
    ['with tokens below 0', { byteSize: 1, tokens: -1 }],
    ['with half a token', { byteSize: 1, tokens: 0.5 }],
    ['with a target that is no span', { byteSize: 1, sloTtftMs: -1 }],
    ['received at no instant', { byteSize: 1, receivedAtMs: Number.NaN }],
    ['with a longest wait that is no span', { byteSize: 1, maxWaitMs: -1 }],
    ['with a TTL that is no span', { byteSize: 1, ttlMs: -1 }],
    ['with a signal that is none', { byteSize: 1, signal: 1 }],
    ['that cannot be read', broken],
  ];

  it.each(wrong)('%s is rejected from inside an operation as well', async (_, given) => {
    const { flow } = makeFlow();
    const answers: Promise<unknown>[] = [];
    flow.on('dispatched', () =>
      answers.push(flow.enqueue(given as typeof request, key()).catch(({ name }: Error) => name)),
    );
    runNow(flow);
    expect(await Promise.all(answers)).toEqual(['FlowConfigError']);
    expect(flow.stats().enqueued).toBe(1);
  });

  it.each([
    ['an empty fairness ID', { fairnessId: '' }],
    ['no fairness ID', { fairnessId: undefined as unknown as string }],
    ['half a priority', { fairnessId: 'a', priority: 0.5 }],
  ])('with %s is refused from inside an operation as well', async (_, wrongKey) => {
    const { flow } = makeFlow();
    const answers: Promise<unknown>[] = [];
    flow.on('dispatched', () => answers.push(flow.enqueue(request, wrongKey).catch(({ name }: Error) => name)));
    runNow(flow);
    expect(await Promise.all(answers)).toEqual(['FlowConfigError']);
  });

  it('without a priority and tokens is right: both are 0', async () => {
    const { flow } = makeFlow({ saturationDetector: dial(0) });
    const answers: Promise<unknown>[] = [];
    const stop = flow.on('dispatched', () => {
      stop();
      answers.push(flow.enqueue({ byteSize: 0 }, { fairnessId: 'a' }));
    });
    runNow(flow);
    const [outcome] = await Promise.all(answers);
    expect(leaseOf(outcome as never)).toMatchObject({ priority: 0, tokens: 0 });
  });
});

describe('a signal that cannot be asked when its request is put back', () => {
  it('does not count as aborted', async () => {
    let isBroken = false;
    const signal = {
      get aborted(): boolean {
        if (isBroken) throw new Error('broken signal');
        return false;
      },
      addEventListener: () => {},
      removeEventListener: () => {},
    } as unknown as AbortSignal;
    const { flow } = makeFlow({ eviction: inFlightEviction() });
    const lease = leaseOf(await flow.enqueue({ ...request, signal }, key('batch', -10)));
    const premium = flow.enqueue(request, key('premium', 100));
    expect(lease.isEvicted).toBe(true);
    isBroken = true;
    const again = lease.requeue();
    leaseOf(await premium).release();
    expect(leaseOf(await again).fairnessId).toBe('batch');
  });
});

describe('a newcomer behind others', () => {
  it('is no reason to ask a detector that announces its changes', () => {
    const detector = dial(1, true);
    const { flow } = makeFlow({ saturationDetector: detector });
    const asked = [1, 2, 3].map(() => {
      void flow.enqueue(request, key());
      return detector.reads;
    });
    expect(asked).toEqual([1, 1, 1]);
  });

  it('is a reason to ask one that does not', () => {
    const detector = dial(1);
    const { flow } = makeFlow({ saturationDetector: detector });
    void flow.enqueue(request, key('a'));
    detector.value = 0;
    void flow.enqueue(request, key('b'));
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 2 });
  });

  /** An open gate that announces its changes, and a server without room: what waits lets nothing pass in its band. */
  function servedInTurn(options: Partial<FlowControllerOptions> = {}) {
    const pool = new EndpointPool();
    pool.add('a');
    const asked = { room: 0 };
    const saturationDetector: SaturationDetector = {
      ...dial(0, true),
      filter: () => {
        asked.room++;
        return [];
      },
    };
    return { asked, ...makeFlow({ pool, headroom: 'required', holBlocking: 'band', saturationDetector, ...options }) };
  }
  const all: EndpointFilter = { type: 'all', classOf: () => 'class', keep: (endpoints) => endpoints };

  it('is no reason to look for room where every request may go to every server, also after new options', () => {
    const { flow, asked } = servedInTurn();
    void flow.enqueue(request, key());
    const before = asked.room;
    void flow.enqueue(request, key());
    expect(asked.room).toBe(before);
    flow.reconfigure({});
    const after = asked.room;
    void flow.enqueue(request, key());
    expect(asked.room).toBe(after);
  });

  it('is a reason to look for room where it may go elsewhere, unless a band above it waits', () => {
    const { flow, asked } = servedInTurn({ endpointFilters: [all] });
    void flow.enqueue(request, key('a', 0));
    const before = asked.room;
    void flow.enqueue(request, key('b', 0));
    expect(asked.room).toBeGreaterThan(before);
    const after = asked.room;
    void flow.enqueue(request, key('c', -1));
    expect(asked.room).toBe(after);
  });

  it('of a flow that came to its cap a moment ago waits with the others of its flow', async () => {
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 2 }),
      flows: { a: { maxInFlight: 1 } },
    });
    const others = [runNow(flow, { fairnessId: 'x' }), runNow(flow, { fairnessId: 'y' })];
    const waiting = [1, 2].map(() => flow.enqueue(request, key('a')));
    others[0]?.release();
    // The gate is closed again, so that nobody has looked at the second one of `a` since the first one went.
    waiting.push(flow.enqueue(request, key('a')));
    expect(audit(flow).violations).toEqual([]);
    others[1]?.release();
    for (const outcome of waiting) {
      expect(flow.stats().inFlight).toBeLessThanOrEqual(1);
      leaseOf(await outcome).release();
    }
    expect(audit(flow).violations).toEqual([]);
  });
});

describe('a request that goes at once', () => {
  const unlimited = { maxRequests: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };

  it.each<[string, Partial<FlowControllerOptions>]>([
    [
      'below the limits of its flow',
      { defaultBand: { fairness: globalStrict(), flowLimits: { maxRequests: 5, maxBytes: request.byteSize } } },
    ],
    [
      'without limits, beside flows that have settings of their own',
      { defaultBand: { fairness: globalStrict(), flowLimits: unlimited }, flows: { vip: { weight: 2 } } },
    ],
  ])('%s takes no place among the flows', (_, options) => {
    const { flow } = makeFlow({ saturationDetector: dial(0), ...options });
    runNow(flow);
    expect(flow.stats()).toMatchObject({ inFlight: 1, flows: 0 });
  });
});

describe('a request that is judged by itself', () => {
  /** Has no room for anybody before the instant 1000. */
  function fullUntil1000(ttlMs: number) {
    const constraint: Constraint = {
      type: 'full',
      withRoomFor: (endpoints, _, nowMs) => (nowMs < 1000 ? [] : endpoints),
      waitOf: () => ({ atMs: 1000, notBeforeMs: 1000, missing: 'room' }),
    };
    return makeFlow({ constraints: [constraint], defaultRequestTtl: ttlMs });
  }

  it('waits where there is room at the very end of its time', async () => {
    const { flow, clock } = fullUntil1000(1000);
    void flow.enqueue(request, key());
    clock.advance(999);
    await turns();
    expect(flow.stats()).toMatchObject({ waiting: 1, inFlight: 0 });
  });

  it('is dropped at once where its time is up before', async () => {
    const { flow } = fullUntil1000(999);
    const drop = dropOf(await flow.enqueue(request, key()));
    expect(drop).toMatchObject({
      type: 'RejectedCapacity',
      reason: 'over-quota',
      detail: 'room',
      retryAfterMs: 1000,
      queuedMs: 0,
    });
  });

  it('waits where nobody knows for how long', () => {
    const { flow } = makeFlow({ constraints: [{ type: 'full', withRoomFor: () => [] }] });
    void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ waiting: 1, rejected: 0 });
  });
});

describe('tryEnqueue from inside an operation', () => {
  it('rejects a request that cannot be read', () => {
    const { flow } = makeFlow();
    const unreadable = {
      get byteSize(): number {
        throw new Error('unreadable');
      },
    };
    const names: string[] = [];
    flow.on('dispatched', () => {
      try {
        flow.tryEnqueue(unreadable, key());
      } catch (error) {
        names.push((error as Error).name);
      }
    });
    runNow(flow);
    expect(names).toEqual(['FlowConfigError']);
  });
});
