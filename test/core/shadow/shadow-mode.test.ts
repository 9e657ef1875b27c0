import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  EndpointPool,
  explainWait,
  FlowConfigError,
  type FlowController,
  type FlowControllerOptions,
  type FlowRequest,
  inFlightEviction,
  type Lease,
  labelFilter,
  type Outcome,
  overviewOf,
  shadow,
  utilizationDetector,
} from '../../../src/index.js';
import { audit, type ManualClock } from '../../../src/testing/index.js';
import { dropOf, key, leaseOf, makeFlow, request, turns } from '../../support/flow.js';

function inShadow(options: Partial<FlowControllerOptions> = {}): { flow: FlowController; clock: ManualClock } {
  return makeFlow({ mode: shadow(), defaultRequestTtl: 0, ...options });
}

function passed(flow: FlowController, fairnessId = 'a', priority = 0): Lease {
  return leaseOf(flow.tryEnqueue(request, key(fairnessId, priority)));
}

function figures(flow: FlowController): NonNullable<ReturnType<FlowController['stats']>['shadow']> {
  const { shadow: told } = flow.stats();
  if (told === undefined) throw new Error('expected figures of shadow mode');
  return told;
}

/** A request that answers so many questions for its size, and throws then. */
function readableFor(times: number): FlowRequest {
  let left = times;
  return {
    get byteSize(): number {
      if (left-- === 0) throw new Error('no size any more');
      return 10;
    },
  };
}

describe('in shadow mode', () => {
  it('every request has a lease at once, and the engine decides as ever', async () => {
    const { flow } = inShadow();
    const outcomes: Outcome[] = [];
    for (let i = 0; i < 5; i++) outcomes.push(await flow.enqueue(request, key()));
    expect(outcomes.map(({ type, queuedMs }) => [type, queuedMs])).toEqual(Array(5).fill(['Dispatched', 0]));
    expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 4, dispatched: 1, isGateClosed: true });
    expect(figures(flow)).toEqual({
      passed: 5,
      refused: 0,
      running: 5,
      wouldHaveWaited: 4,
      wouldHaveBeenEvicted: 0,
      wouldHaveBeenDropped: [],
    });
    expect(audit(flow).violations).toEqual([]);
  });

  it('a request that would have waited takes its turn, for as long as it really ran', () => {
    const { flow, clock } = inShadow();
    const [first, second] = [passed(flow, 'a'), passed(flow, 'b')];
    clock.advance(100);
    second.release();
    clock.advance(200);
    first.release();
    // The second would have begun now, and run for 100 ms.
    expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 0, dispatched: 2 });
    clock.advance(99);
    expect(flow.stats().inFlight).toBe(1);
    clock.advance(1);
    expect(flow.stats()).toMatchObject({ inFlight: 0, released: 2 });
    expect(clock.pendingTimers).toBe(0);
  });

  it('a request whose turn came while it ran holds its seat as much longer as it would have begun later', () => {
    const { flow, clock } = inShadow();
    const [first, second] = [passed(flow, 'a'), passed(flow, 'b')];
    clock.advance(50);
    first.release();
    clock.advance(100);
    second.release();
    clock.advance(49);
    expect(flow.stats().inFlight).toBe(1);
    clock.advance(1);
    expect(flow.stats().inFlight).toBe(0);
  });

  it('waits are those of the same controller in mode queue, where each request takes the time that it takes', async () => {
    const waits = async (mode: FlowControllerOptions['mode']): Promise<number[]> => {
      const { flow, clock } = makeFlow({
        mode,
        defaultRequestTtl: 0,
        saturationDetector: concurrencyDetector({ maxConcurrency: 3 }),
      });
      const told: number[] = [];
      flow.on('dispatched', ({ item, queuedMs }) => told.push(item.byteSize, queuedMs));
      for (let i = 0; i < 40; i++) {
        const serviceMs = 20 + ((i * 37) % 90);
        void flow.enqueue({ byteSize: i }, key(`t${i % 4}`, i % 3)).then((outcome) => {
          clock.setTimeout(() => leaseOf(outcome).release(), serviceMs);
        });
        await turns();
        for (let step = 0; step < 11; step++) {
          clock.advance(1);
          await turns();
        }
      }
      for (let step = 0; step < 3000; step++) {
        clock.advance(1);
        await turns();
      }
      expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0, dispatched: 40 });
      return told;
    };
    const [real, would] = [await waits('queue'), await waits(shadow())];
    expect(would).toEqual(real);
    expect(Math.max(...would.filter((_, i) => i % 2 === 1))).toBeGreaterThan(50);
  });

  it('drops are counted by outcome and reason, and nobody is rejected', () => {
    const { flow, clock } = inShadow({
      limits: { maxRequests: 1 },
      defaultRequestTtl: '1s',
      admission: { type: 'no-z', admit: refusesZ },
    });
    for (const id of ['a', 'b', 'c', 'z', 'z']) passed(flow, id);
    clock.advance(1000);
    expect(flow.stats()).toMatchObject({ waiting: 0, rejected: 3, evicted: 1 });
    expect(figures(flow)).toMatchObject({
      passed: 5,
      running: 5,
      wouldHaveWaited: 1,
      wouldHaveBeenDropped: [
        { outcome: 'RejectedCapacity', reason: 'global-max-requests', requests: 1 },
        { outcome: 'RejectedCapacity', reason: 'refused', requests: 2 },
        { outcome: 'EvictedTTL', reason: 'ttl-expired', requests: 1 },
      ],
    });
  });

  it('nobody is evicted: the engine gets the seat, and the work goes on', () => {
    const { flow } = inShadow({ eviction: inFlightEviction({ graceMs: 0 }) });
    const victim = passed(flow, 'batch', -1);
    passed(flow, 'premium', 10);
    expect([victim.isEvicted, victim.isEvictable, victim.signal.aborted, victim.isReleased]).toEqual([
      false,
      false,
      false,
      false,
    ]);
    expect(figures(flow)).toMatchObject({ wouldHaveBeenEvicted: 1, running: 2 });
    expect(flow.stats()).toMatchObject({ inFlight: 1, evictedInFlight: 1, waiting: 0 });
    victim.release();
    expect(flow.stats().inFlight).toBe(1);
  });

  it('a request is explained as one that would wait', () => {
    const { flow } = inShadow();
    passed(flow);
    const second = { byteSize: 3 };
    leaseOf(flow.tryEnqueue(second, key('b')));
    expect(explainWait(flow, second)).toMatchObject({
      decidedBy: 'gate',
      text: expect.stringMatching(/^would wait: band 0 gated/),
    });
    expect(overviewOf(flow).waits[0]?.text).toMatch(/^would wait: /);
  });

  it('no headroom of bands is told, because nothing is held', () => {
    const { flow } = inShadow();
    expect(flow.bandHeadroom(0)).toBeUndefined();
    flow.reconfigure({ mode: 'queue' });
    expect(flow.bandHeadroom(0)).toBe(5000);
  });

  it('a client that leaves is counted as one that would have left the queue', () => {
    const { flow } = inShadow();
    passed(flow);
    const client = new AbortController();
    const lease = leaseOf(flow.tryEnqueue({ byteSize: 1, signal: client.signal }, key('b')));
    client.abort();
    lease.release();
    expect(flow.stats().waiting).toBe(0);
    expect(figures(flow).wouldHaveBeenDropped).toEqual([
      { outcome: 'EvictedContextCancelled', reason: 'cancelled', requests: 1 },
    ]);
  });

  it('a request that is aborted by its lease, as adapters do it, is one that would have left the queue', () => {
    const { flow } = inShadow();
    const [first, second] = [passed(flow, 'a'), passed(flow, 'b')];
    second.abort('the client left');
    expect(flow.stats().waiting).toBe(1);
    second.release();
    first.release();
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0, dispatched: 1 });
    expect(figures(flow).wouldHaveBeenDropped).toEqual([
      { outcome: 'EvictedContextCancelled', reason: 'cancelled', requests: 1 },
    ]);
  });

  it('a call from inside a listener is decided as soon as that ends', async () => {
    const { flow } = inShadow();
    let inner: Promise<Outcome> | undefined;
    let now: Outcome | undefined | 'unasked' = 'unasked';
    flow.on('dispatched', () => {
      if (inner !== undefined) return;
      now = flow.tryEnqueue(request, key('x'));
      inner = flow.enqueue(request, key('b'));
    });
    passed(flow);
    expect(now).toBeUndefined();
    expect((await inner)?.type).toBe('Dispatched');
    expect(figures(flow)).toMatchObject({ passed: 2, wouldHaveWaited: 1 });
  });

  it('a call that cannot be right is an error, as ever', async () => {
    const { flow } = inShadow();
    await expect(flow.enqueue({} as never, key())).rejects.toThrow(FlowConfigError);
    expect(() => flow.tryEnqueue({ byteSize: -1 }, key())).toThrow(FlowConfigError);
    expect(flow.stats().enqueued).toBe(0);
  });

  it('a request that cannot be read a second time is an error, and nobody waits for its outcome', async () => {
    const { flow } = inShadow();
    await expect(flow.enqueue(readableFor(0), key())).rejects.toThrow(/^enqueue: request: expected properties/);
    for (const reads of [0, 1])
      expect(() => flow.tryEnqueue(readableFor(reads), key())).toThrow(/^tryEnqueue: request: expected/);
    expect(flow.stats()).toMatchObject({ enqueued: 0, shadow: { passed: 0, running: 0 } });
    passed(flow);
  });

  it('run works as ever', async () => {
    const { flow } = inShadow();
    passed(flow);
    expect(await flow.run(request, key(), (lease) => lease.fairnessId)).toBe('a');
    expect(figures(flow).running).toBe(1);
  });
});

describe('the lease of shadow mode', () => {
  it('tells the engine what was consumed: at once where both began together, else at the end', () => {
    const { flow } = inShadow();
    const told: unknown[] = [];
    flow.on('released', ({ usage }) => told.push(usage));
    const [first, second] = [passed(flow, 'a'), passed(flow, 'b')];
    first.report({ promptTokens: 5 });
    first.report({ completionTokens: 2 });
    second.report({ promptTokens: 7 });
    expect([first.usage, second.usage]).toEqual([
      { promptTokens: 5, completionTokens: 2 },
      { promptTokens: 7, completionTokens: 0 },
    ]);
    first.release();
    second.release();
    expect(told).toEqual([
      { promptTokens: 5, completionTokens: 2 },
      { promptTokens: 7, completionTokens: 0 },
    ]);
    expect(() => second.report({ promptTokens: -1 })).toThrow(FlowConfigError);
  });

  it('cannot be put back, because nothing takes it away', async () => {
    const { flow } = inShadow();
    const lease = passed(flow);
    lease.answered({ status: 429, headers: { 'retry-after': '5' } });
    expect(lease.isPutOff).toBe(false);
    await expect(lease.requeue()).rejects.toThrow(/one that was neither/);
    lease.abort('enough');
    expect(lease.signal.reason).toBe('enough');
    lease.release();
    lease.release();
    expect(flow.stats().released).toBe(1);
    await expect(lease.requeue()).rejects.toThrow(/one that was released/);
  });
});

describe('with a pool, in shadow mode', () => {
  function pooled(
    count: number,
    options: Partial<FlowControllerOptions> = {},
  ): { flow: FlowController; pool: EndpointPool; clock: ManualClock } {
    const pool = new EndpointPool();
    for (let i = 0; i < count; i++) pool.add(`s${i}`, { labels: { model: i === 0 ? 'large' : 'small' } });
    return { ...inShadow({ pool, ...options }), pool };
  }

  it('a request that may go has the endpoint that the engine chose, and others are spread evenly', () => {
    const { flow } = pooled(3);
    const leases = Array.from({ length: 12 }, () => passed(flow));
    const counts = new Map<string | undefined, number>();
    for (const { endpoint } of leases) counts.set(endpoint?.id, (counts.get(endpoint?.id) ?? 0) + 1);
    expect([...counts.values()]).toEqual([4, 4, 4]);
    for (const lease of leases) lease.release();
    expect(passed(flow).endpoint?.id).toBe('s0');
  });

  it('what endpoints serve still counts, also for a request that would have been rejected unseen', () => {
    const of = (item: { model?: string }): string | undefined => item.model;
    const { flow } = pooled(3, {
      endpointFilters: [labelFilter({ label: 'model', of: of as never })],
      admission: { type: 'no-z', admit: refusesZ },
    });
    const ask = (fairnessId: string): Outcome | undefined =>
      flow.tryEnqueue({ byteSize: 1, model: 'large' } as never, key(fairnessId));
    for (const id of ['a', 'a', 'z']) expect(leaseOf(ask(id)).endpoint?.id).toBe('s0');
    const unknown = flow.tryEnqueue({ byteSize: 1, model: 'other' } as never, key());
    expect(dropOf(unknown)).toMatchObject({ type: 'RejectedNoEndpoints', reason: 'no-endpoints' });
  });

  it('a request is rejected in earnest where there is nothing to send it to', () => {
    const { flow, pool } = pooled(0);
    expect(dropOf(flow.tryEnqueue(request, key()))).toMatchObject({
      type: 'RejectedNoEndpoints',
      reason: 'no-endpoints',
    });
    expect(figures(flow)).toMatchObject({ passed: 0, refused: 1, running: 0, wouldHaveWaited: 1 });
    pool.add('late');
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0 });
  });

  it('a host that routes by itself says where its request runs', () => {
    const { flow } = pooled(2);
    const [, , late] = [passed(flow), passed(flow), passed(flow)];
    late?.bind('s1');
    expect(late?.endpoint?.id).toBe('s1');
    expect(passed(flow).endpoint?.id).toBe('s0');
    expect(() => late?.bind('nobody')).toThrow(/an endpoint of the pool/);
  });

  it('servers that report themselves full are still used', () => {
    const { flow, pool } = pooled(1, { saturationDetector: utilizationDetector() });
    pool.report('s0', { waitingQueueSize: 50, runningRequests: 9, kvCacheUsage: 0.99 });
    expect(passed(flow).endpoint?.id).toBe('s0');
    expect(figures(flow).wouldHaveWaited).toBe(1);
  });
});

describe('shadow mode is switched', () => {
  it('on, and what waits goes at once', async () => {
    const { flow, clock } = makeFlow({ defaultRequestTtl: '10s' });
    const first = leaseOf(flow.tryEnqueue(request, key('a')));
    const waiting = [flow.enqueue(request, key('b')), flow.enqueue(request, key('c'))];
    clock.advance(500);
    flow.reconfigure({ mode: shadow() });
    const outcomes = await Promise.all(waiting);
    expect(outcomes.map(({ type, queuedMs }) => [type, queuedMs])).toEqual([
      ['Dispatched', 500],
      ['Dispatched', 500],
    ]);
    expect(flow.isShadow).toBe(true);
    expect(figures(flow)).toMatchObject({ wouldHaveWaited: 2, running: 2 });
    first.release();
    expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 1 });
    expect(audit(flow).violations).toEqual([]);
  });

  it('off, and what only would wait is forgotten, so that it delays nobody', async () => {
    const { flow, clock } = inShadow();
    const leases = ['a', 'b', 'c'].map((id) => passed(flow, id));
    leases[1]?.release();
    flow.reconfigure({ mode: 'queue' });
    expect(flow.isShadow).toBe(false);
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 1 });
    expect(flow.stats().shadow).toBeUndefined();
    const held = flow.enqueue(request, key('d'));
    expect(flow.stats().waiting).toBe(1);
    for (const lease of leases) lease.release();
    expect((await held).type).toBe('Dispatched');
    expect(clock.pendingTimers).toBe(0);
    expect(audit(flow).violations).toEqual([]);
  });

  it('off while seats are held for longer than the work, and they are free at once', () => {
    const { flow, clock } = inShadow();
    const [first, second] = [passed(flow, 'a'), passed(flow, 'b')];
    clock.advance(100);
    first.release();
    second.release();
    expect(flow.stats().inFlight).toBe(1);
    flow.reconfigure({ mode: 'queue' });
    expect([flow.stats().inFlight, clock.pendingTimers]).toEqual([0, 0]);
  });

  it('on and on again without a change, and by no other option', () => {
    const { flow } = inShadow();
    passed(flow);
    passed(flow);
    flow.reconfigure({ mode: shadow(), maxFlows: 9 });
    flow.reconfigure({ limits: { maxRequests: 7 } });
    expect(figures(flow)).toMatchObject({ passed: 2, wouldHaveWaited: 1 });
  });

  it('nowhere: a closed controller lets pass, and leaves no timer', async () => {
    const { flow, clock } = inShadow();
    const [first, second] = [passed(flow, 'a'), passed(flow, 'b')];
    clock.advance(10);
    second.release();
    first.release();
    await flow.close();
    expect([flow.stats().inFlight, clock.pendingTimers]).toEqual([0, 0]);
    passed(flow, 'c').release();
    expect(flow.stats()).toMatchObject({ state: 'closed', inFlight: 0 });
  });
});

describe('a random history in shadow mode', () => {
  it('holds nobody, balances after every step, and leaves nothing', async () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1103515245 + 12345) % 2 ** 31;
      return Math.floor((seed / 2 ** 31) * below);
    };
    const { flow, clock } = inShadow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 3 }),
      limits: { maxRequests: 8 },
      overflow: 'fair',
      eviction: inFlightEviction(),
      defaultRequestTtl: 200,
    });
    const leases: Lease[] = [];
    for (let step = 0; step < 3000; step++) {
      const act = random(10);
      if (act < 5) leases.push(passed(flow, `t${random(5)}`, random(3) * 5 - 5));
      else if (act < 9) leases.splice(random(leases.length + 1), 1)[0]?.release();
      else clock.advance(random(60));
      if (step % 500 === 250) flow.reconfigure({ mode: step % 1000 === 250 ? 'queue' : shadow() });
      if (step % 500 === 250) flow.reconfigure({ mode: shadow() });
      expect(audit(flow).violations).toEqual([]);
      expect(figures(flow).running).toBeGreaterThanOrEqual(0);
    }
    for (const lease of leases) lease.release();
    clock.advance(1_000_000);
    await turns();
    clock.advance(1_000_000);
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0 });
    expect(clock.pendingTimers).toBe(0);
  });
});

function refusesZ(_request: unknown, { fairnessId }: { readonly fairnessId: string }): 'admit' | { reason: string } {
  return fairnessId === 'z' ? { reason: 'no z' } : 'admit';
}
