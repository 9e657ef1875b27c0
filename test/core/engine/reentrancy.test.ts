import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  type EndpointPicker,
  EndpointPool,
  type FlowController,
  type FlowFairnessPolicy,
  type FlowKey,
  type FlowRequest,
  type Outcome,
  overviewOf,
  type SaturationDetector,
} from '../../../src/index.js';
import {
  dial,
  dispatchOrder,
  dropOf,
  key,
  leaseOf,
  makeFlow,
  record,
  request,
  runNow,
  turns,
} from '../../support/flow.js';

describe('a call from inside a listener', () => {
  it('waits until the operation that is on has ended', () => {
    const { flow } = makeFlow({ saturationDetector: concurrencyDetector({ maxConcurrency: 2 }) });
    const log: string[] = [];
    flow.on('dispatched', ({ item }) => {
      log.push(`dispatched ${item.fairnessId}`);
      if (item.fairnessId === 'first') {
        void flow.enqueue(request, key('inner'));
        log.push('handed in');
      }
    });
    runNow(flow, key('first'));
    expect(log).toEqual(['dispatched first', 'handed in', 'dispatched inner']);
  });

  it('may enqueue, and gets its answer like any other', async () => {
    const { flow } = makeFlow();
    const answers: Promise<Outcome>[] = [];
    flow.on('released', () => {
      if (answers.length < 3) answers.push(flow.enqueue(request, key(`f${answers.length}`)));
    });
    runNow(flow).release();
    const first = leaseOf(await answers[0]);
    expect(flow.stats()).toMatchObject({ enqueued: 2, dispatched: 2, inFlight: 1 });
    first.release();
    leaseOf(await answers[1]).release();
    leaseOf(await answers[2]).release();
    expect(flow.stats()).toMatchObject({ enqueued: 4, dispatched: 4, released: 4, inFlight: 0 });
  });

  it('may release the lease that is just announced', () => {
    const { flow } = makeFlow();
    flow.on('dispatched', ({ lease }) => lease.release());
    const held = runNow(flow);
    expect(held.isReleased).toBe(true);
    for (let i = 0; i < 20; i++) void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ inFlight: 0, released: 21, waiting: 0 });
  });

  it('may report what another request consumed, of which its policy hears afterwards', () => {
    const log: string[] = [];
    const fairness: FlowFairnessPolicy = {
      type: 'hears',
      createSelector: (band) => ({
        pick: () => band.firstActive,
        consumed: (_flow, { completionTokens }) => void log.push(`consumed ${completionTokens}`),
      }),
    };
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness }], saturationDetector: dial(0) });
    const other = runNow(flow);
    flow.on('dispatched', () => {
      other.report({ completionTokens: 5 });
      log.push('reported');
    });
    runNow(flow);
    expect(log).toEqual(['reported', 'consumed 5']);
  });

  it('may release another lease, whose seat is free afterwards', () => {
    const { flow } = makeFlow({ saturationDetector: concurrencyDetector({ maxConcurrency: 2 }) });
    const log: unknown[] = [];
    const other = runNow(flow);
    flow.on('released', () => log.push('released'));
    flow.on('dispatched', ({ item }) => {
      if (item.fairnessId !== 'second') return;
      other.release();
      log.push(other.isReleased, flow.stats().inFlight);
    });
    runNow(flow, key('second'));
    expect(log).toEqual([true, 2, 'released']);
    expect(flow.stats()).toMatchObject({ inFlight: 1, released: 1 });
  });

  it('may abort a request whose turn comes in the same operation: it goes', async () => {
    const { flow } = makeFlow();
    const abort = new AbortController();
    const held = runNow(flow);
    const waiting = flow.enqueue({ ...request, signal: abort.signal }, key());
    flow.on('released', () => abort.abort());
    held.release();
    leaseOf(await waiting);
    expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 0, dispatched: 2, evicted: 0 });
  });

  it('is answered with an error where it cannot be right', async () => {
    const { flow } = makeFlow();
    const answers: Promise<unknown>[] = [];
    const ask = (wrong: FlowRequest, to: FlowKey): void => {
      answers.push(flow.enqueue(wrong, to).catch((error: unknown) => String(error)));
      try {
        flow.tryEnqueue(wrong, to);
      } catch (error) {
        answers.push(Promise.resolve(String(error)));
      }
    };
    let isReadable = true;
    const fickle = {
      get byteSize(): number {
        if (!isReadable) throw new Error('no size any more');
        return 1;
      },
    };
    flow.on('dispatched', () => {
      ask({ byteSize: -1 }, key());
      ask(request, null as unknown as FlowKey);
      answers.push(flow.enqueue(fickle, key()).catch((error: unknown) => String(error)));
      isReadable = false;
    });
    runNow(flow);
    expect(await Promise.all(answers)).toEqual([
      expect.stringContaining('enqueue: request.byteSize: expected an integer from 0 up'),
      expect.stringContaining('tryEnqueue: request.byteSize: expected an integer from 0 up'),
      expect.stringContaining('enqueue: key: expected an object with a fairnessId'),
      expect.stringContaining('tryEnqueue: key: expected an object with a fairnessId'),
      expect.stringContaining('enqueue: request: expected properties that can be read'),
    ]);
    expect(flow.stats().enqueued).toBe(1);
  });

  it('reads the figures as they are, and asks no detector', () => {
    const detector = dial(0);
    const { flow } = makeFlow({ saturationDetector: detector });
    const seen: unknown[] = [];
    flow.on('dispatched', () => {
      const before = detector.reads;
      detector.value = 0.5;
      seen.push(flow.stats().saturation, detector.reads - before);
    });
    const { reads } = detector;
    runNow(flow);
    expect(seen).toEqual([0, 0]);
    expect(detector.reads - reads).toBe(1);
  });

  it('may abort a request while another is evicted', () => {
    const { flow } = makeFlow();
    const [one, other] = [new AbortController(), new AbortController()];
    flow.on('dropped', () => other.abort());
    runNow(flow);
    void flow.enqueue({ ...request, signal: one.signal }, key());
    void flow.enqueue({ ...request, signal: other.signal }, key());
    one.abort();
    expect(flow.stats()).toMatchObject({ waiting: 0, outcomes: { EvictedContextCancelled: 2 } });
  });

  it('may reconfigure', () => {
    const { flow } = makeFlow();
    flow.on('queued', ({ waitingInBand }) => {
      if (waitingInBand === 2) flow.reconfigure({ saturationDetector: concurrencyDetector({ maxConcurrency: 10 }) });
    });
    runNow(flow);
    void flow.enqueue(request, key());
    expect(flow.stats().waiting).toBe(1);
    void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 3 });
  });

  it('may close, and what was handed in after that is rejected', async () => {
    const { flow, clock } = makeFlow();
    let closed: Promise<void> | undefined;
    let late: Promise<Outcome> | undefined;
    flow.on('dropped', ({ outcome }) => {
      if (outcome.type !== 'EvictedTTL') return;
      closed = flow.close();
      late = flow.enqueue(request, key('late'));
    });
    runNow(flow);
    const waiting = flow.enqueue(request, key());
    void flow.enqueue({ ...request, ttlMs: 10 }, key());
    clock.advance(10);
    await closed;
    expect(dropOf(await waiting).type).toBe('EvictedOther');
    expect(dropOf(await late)).toMatchObject({ type: 'RejectedOther', reason: 'shutting-down' });
    expect(clock.pendingTimers).toBe(0);
  });

  it('may look at the figures, also while idle bands are being removed', () => {
    const { flow, clock } = makeFlow({ flowIdleTimeout: 1000, bandIdleTimeout: 1000 });
    for (const priority of [9, 8, 7]) runNow(flow, { priority }).release();
    clock.advance(2000);
    const removed: number[] = [];
    flow.on('bandRemoved', ({ priority }) => {
      removed.push(priority);
      flow.stats();
      overviewOf(flow, { flows: 'all' });
      void flow.enqueue(request, key('again', 9));
    });
    flow.stats();
    expect(removed).toEqual([9, 8, 7]);
    expect(overviewOf(flow, { flows: 'all' }).bands.map(({ priority }) => priority)).toEqual([9, 0]);
    expect(flow.stats()).toMatchObject({ enqueued: 6, inFlight: 1, waiting: 2 });
  });
});

describe('a listener that calls back again and again', () => {
  /** Every drop hands in the next request, `times` times. */
  function insistent(times: number): {
    flow: FlowController;
    clock: ReturnType<typeof makeFlow>['clock'];
    dropped: unknown[];
  } {
    const { flow, clock } = makeFlow({ limits: { maxRequests: 0 } });
    const dropped = record(flow, 'dropped');
    flow.on('dropped', () => {
      if (dropped.length < times) void flow.enqueue(request, key());
    });
    return { flow, clock, dropped };
  }

  it('lets the rest of the process have its turn, and goes on after it', () => {
    const { flow, clock, dropped } = insistent(2500);
    void flow.enqueue(request, key());
    expect(dropped.length).toBeGreaterThan(100);
    expect(dropped.length).toBeLessThan(2000);
    expect(clock.pendingTimers).toBe(1);
    clock.advance(0);
    expect(dropped).toHaveLength(2500);
    expect(flow.stats().enqueued).toBe(2500);
    expect(clock.pendingTimers).toBe(0);
  });

  it('has one timer, however many calls come in between, and none when it is done', async () => {
    const { flow, clock, dropped } = insistent(3500);
    void flow.enqueue(request, key());
    void flow.enqueue(request, key());
    expect(dropped.length).toBeLessThan(3500);
    expect(clock.pendingTimers).toBe(1);
    for (let i = 0; i < 4; i++) flow.stats();
    expect(dropped.length).toBeGreaterThanOrEqual(3500);
    expect(clock.pendingTimers).toBe(0);
    await flow.close();
    expect(clock.pendingTimers).toBe(0);
  });

  it('does not keep the controller from closing', async () => {
    const { flow, clock, dropped } = insistent(2500);
    void flow.enqueue(request, key());
    await flow.close();
    clock.advance(0);
    expect(dropped).toHaveLength(2500);
    expect(flow.stats().state).toBe('closed');
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a plugin that calls back, although it must not', () => {
  it('from a fairness policy gets every answer', async () => {
    let flow: FlowController | undefined;
    const answers: Promise<Outcome>[] = [];
    const meddle = (): void => {
      if (flow !== undefined && answers.length < 40)
        answers.push(flow.enqueue({ ...request, ttlMs: 50 }, key(`m${answers.length % 3}`)));
    };
    const fairness: FlowFairnessPolicy = {
      type: 'meddling',
      createSelector: (band) => ({
        pick() {
          meddle();
          return band.firstActive;
        },
        flowActivated: meddle,
        flowDeactivated: meddle,
        itemAdded: meddle,
        itemRemoved: meddle,
        dispatched: meddle,
        settled: meddle,
      }),
    };
    const made = makeFlow({ bands: [{ priority: 0, fairness }] });
    flow = made.flow;
    const held = runNow(flow);
    void flow.enqueue({ ...request, ttlMs: 50 }, key());
    held.release();
    made.clock.advance(1000);
    const outcomes = await Promise.all(answers);
    expect(outcomes.length).toBe(40);
    expect(outcomes.every(({ type }) => type === 'EvictedTTL' || type === 'Dispatched')).toBe(true);
    const { enqueued, dispatched, evicted, waiting } = flow.stats();
    expect([enqueued, dispatched + evicted, waiting]).toEqual([42, 42, 0]);
  });

  it('from a fairness policy that hears of a report gets its answer when the report is done', async () => {
    const log: string[] = [];
    const fairness: FlowFairnessPolicy = {
      type: 'meddling',
      createSelector: (band) => ({
        pick: () => band.firstActive,
        consumed: () => {
          void flow.enqueue(request, key('inner'));
          log.push('consumed');
        },
      }),
    };
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness }], saturationDetector: dial(0) });
    const lease = runNow(flow);
    flow.on('dispatched', ({ item }) => log.push(item.fairnessId));
    lease.report({ completionTokens: 1 });
    expect(log).toEqual(['consumed', 'inner']);
  });

  it('from a detector gets every answer', async () => {
    let flow: FlowController | undefined;
    let answer: Promise<Outcome> | undefined;
    const inner = concurrencyDetector({ maxConcurrency: 1 });
    const detector: SaturationDetector = {
      ...inner,
      saturation(pool, nowMs) {
        answer ??= flow?.enqueue(request, key('inner', 9));
        return inner.saturation(pool, nowMs);
      },
    };
    ({ flow } = makeFlow({ saturationDetector: detector }));
    const outer = leaseOf(await flow.enqueue(request, key('outer')));
    expect(flow.stats()).toMatchObject({ waiting: 1, inFlight: 1 });
    outer.release();
    expect(leaseOf(await answer).fairnessId).toBe('inner');
  });

  it('from a detector’s goodbye gets an answer too', async () => {
    let answer: Promise<Outcome> | undefined;
    const { flow } = makeFlow({
      saturationDetector: {
        type: 'farewell',
        saturation: () => 0,
        subscribe: () => () => {
          answer = flow.enqueue(request, key());
        },
      },
    });
    await flow.close();
    expect(dropOf(await answer)).toMatchObject({ type: 'RejectedOther', reason: 'shutting-down' });
  });

  describe.each([
    ['its picker', (pool: EndpointPool) => ({ endpointPicker: emptyingPicker(pool) })],
    [
      'its detector',
      (pool: EndpointPool) => ({
        saturationDetector: () => {
          empty(pool);
          return 0;
        },
      }),
    ],
    [
      'a usage-limit policy',
      (pool: EndpointPool) => ({ usageLimitPolicy: { type: 'emptying', computeLimits: () => empty(pool) } }),
    ],
  ] as const)('and empties the pool from %s', (_, options) => {
    it('keeps the request waiting, until endpoints come back', async () => {
      const pool = new EndpointPool();
      for (const id of ['a', 'b']) pool.add(id);
      const { flow } = makeFlow({ pool, ...options(pool) });
      const waiting = flow.enqueue(request, key());
      expect(flow.stats()).toMatchObject({ waiting: 1, inFlight: 0, dispatched: 0, isGateClosed: true });
      expect(pool.endpoints).toEqual([]);
      flow.reconfigure({ endpointPicker: undefined, usageLimitPolicy: undefined, saturationDetector: dial(0) });
      pool.add('c');
      expect(leaseOf(await waiting).endpoint?.id).toBe('c');
    });
  });
});

function empty(pool: EndpointPool): void {
  for (const { id } of pool.endpoints) pool.remove(id);
}

function emptyingPicker(pool: EndpointPool): EndpointPicker {
  return {
    type: 'emptying',
    pick() {
      empty(pool);
      return undefined;
    },
  };
}

it('a walk that is asked for from inside is not lost', async () => {
  const detector = dial(1, true);
  const { flow } = makeFlow({ saturationDetector: detector });
  const order = dispatchOrder(flow);
  flow.on('queued', () => detector.turnTo(0));
  void flow.enqueue(request, key('a'));
  await turns();
  expect(order).toEqual(['a']);
});
