import { describe, expect, it } from 'vitest';
import {
  deficitRoundRobin,
  EndpointPool,
  edf,
  explainWait,
  globalStrict,
  hierarchical,
  roundRobin,
  virtualTokenCounter,
} from '../../../src/index.js';
import { dial, key, makeFlow, record, request, runNow, turns } from '../../support/flow.js';

const limits = { maxRequests: 100_000 };

describe('explain', () => {
  it('tells the gate, the place in the flow and the estimate in one sentence', async () => {
    const detector = dial(0, true);
    const { flow, clock } = makeFlow({ saturationDetector: detector, defaultBand: { fairness: globalStrict() } });
    for (let i = 0; i < 20; i++) runNow(flow).release();
    clock.advance(2000);
    detector.turnTo(1.07);
    for (let i = 0; i < 14; i++) void flow.enqueue(request, key());
    const last = { byteSize: 1 };
    void flow.enqueue(last, key());
    await turns();
    // 20 dispatches in the two seconds before: ten a second.
    expect(explainWait(flow, last)).toEqual({
      decidedBy: 'gate',
      text: 'band 0 gated: saturation 1.07 ≥ ceiling 1.00; 14 ahead in this band; about 1.5 s',
      priority: 0,
      sequence: 34,
      saturation: 1.07,
      ceiling: 1,
      waitedMs: 0,
      expiresInMs: 60_000,
      ahead: 14,
      aheadInOtherFlows: 0,
      inHigherBands: 0,
      estimatedWaitMs: 1500,
    });
  });

  it('finds a request by what was enqueued, by the item of the event, and by its number', () => {
    const { flow } = makeFlow();
    const queued = record(flow, 'queued');
    runNow(flow);
    const own = { byteSize: 3 };
    void flow.enqueue(request, key());
    void flow.enqueue(own, key());
    const item = queued[1]?.item;
    expect(explainWait(flow, own)?.ahead).toBe(1);
    expect(explainWait(flow, item!)).toEqual(explainWait(flow, own));
    expect(explainWait(flow, item!.sequence)).toEqual(explainWait(flow, own));
  });

  it('knows nothing of a request that does not wait', async () => {
    const { flow } = makeFlow();
    const queued = record(flow, 'queued');
    const held = runNow(flow);
    const own = { byteSize: 3 };
    const outcome = flow.enqueue(own, key());
    held.release();
    await outcome;
    expect([
      explainWait(flow, own),
      explainWait(flow, queued[0]!.item),
      explainWait(flow, 999),
      explainWait(flow, { byteSize: 3 }),
    ]).toEqual([undefined, undefined, undefined, undefined]);
  });

  it('counts other flows as if they took turns by weight', () => {
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness: roundRobin() }], flows: { heavy: { weight: 3 } } });
    runNow(flow);
    for (let i = 0; i < 10; i++) for (const id of ['heavy', 'light']) void flow.enqueue(request, key(id));
    const own = { byteSize: 1 };
    void flow.enqueue(request, key('mine'));
    void flow.enqueue(own, key('mine'));
    // Two turns of its own: two of the light flow, six of the heavy one.
    expect(explainWait(flow, own)).toMatchObject({ ahead: 1, aheadInOtherFlows: 8 });
    expect(explainWait(flow, own)?.text).toContain('; 1 ahead in this flow; 8 ahead in other flows');
  });

  it('gives the place in any order', () => {
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness: roundRobin(), ordering: edf() }] });
    runNow(flow);
    const urgent = { byteSize: 1, ttlMs: 100 };
    const patient = { byteSize: 1, ttlMs: 9000 };
    void flow.enqueue(patient, key());
    void flow.enqueue({ byteSize: 1, ttlMs: 500 }, key());
    void flow.enqueue(urgent, key());
    expect([urgent, patient].map((one) => explainWait(flow, one)?.ahead)).toEqual([0, 2]);
  });

  it('counts only the living', () => {
    const { flow } = makeFlow();
    runNow(flow);
    const gone = new AbortController();
    void flow.enqueue({ byteSize: 1, signal: gone.signal }, key());
    const own = { byteSize: 1 };
    void flow.enqueue(own, key());
    expect(explainWait(flow, own)?.ahead).toBe(1);
    gone.abort();
    expect(explainWait(flow, own)?.ahead).toBe(0);
  });

  it('names the higher band that goes first, although the gate is open for this one', () => {
    const own = dial(0, true);
    const { flow } = makeFlow({
      saturationDetector: dial(1.2, true),
      bands: [{ priority: 100 }, { priority: 0, saturationDetector: own }],
    });
    void flow.enqueue(request, key('a', 100));
    const low = { byteSize: 1 };
    void flow.enqueue(low, key('a', 0));
    expect(explainWait(flow, low)).toMatchObject({
      decidedBy: 'priority',
      text: 'band 0 waits for band 100, where 1 wait',
      inHigherBands: 1,
      saturation: 0,
    });
  });

  it('takes at least as long as what is above it, at the rate of all bands', () => {
    const detector = dial(0, true);
    const { flow, clock } = makeFlow({ saturationDetector: detector, bands: [{ priority: 100 }, { priority: 0 }] });
    for (let i = 0; i < 20; i++) runNow(flow, { priority: 100 }).release();
    clock.advance(2000);
    detector.turnTo(1);
    for (let i = 0; i < 9; i++) void flow.enqueue(request, key('a', 100));
    const low = { byteSize: 1 };
    void flow.enqueue(low, key('a', 0));
    expect(explainWait(flow, low)).toMatchObject({ estimatedWaitMs: 1000, inHigherBands: 9 });
    expect(explainWait(flow, low)?.text).toContain('9 in higher bands; about 1.0 s');
  });

  it('says when the time is up before the turn comes', () => {
    const detector = dial(0, true);
    const { flow, clock } = makeFlow({ saturationDetector: detector, defaultRequestTtl: 1000 });
    runNow(flow).release();
    clock.advance(1000);
    detector.turnTo(1);
    for (let i = 0; i < 5; i++) void flow.enqueue(request, key());
    const late = { byteSize: 1 };
    void flow.enqueue(late, key());
    clock.advance(400);
    expect(explainWait(flow, late)?.text).toMatch(/about \d\.\d s; may wait only 0\.6 s more$/);
  });

  it('names an empty pool, and makes no estimate then', () => {
    const { flow } = makeFlow({ pool: new EndpointPool() });
    const own = { byteSize: 1 };
    void flow.enqueue(own, key());
    expect(explainWait(flow, own)).toMatchObject({
      decidedBy: 'pool',
      text: 'band 0 waits: the pool has no endpoints',
      estimatedWaitMs: undefined,
    });
  });

  it.each(['band', 'flow'] as const)(
    "tells full endpoints from overloaded ones with holBlocking '%s'",
    (holBlocking) => {
      const pool = new EndpointPool();
      for (const id of ['e1', 'e2']) pool.add(id, { labels: { model: id } });
      const { flow } = makeFlow({
        pool,
        holBlocking,
        saturationDetector: () => 0,
        bands: [{ priority: 0, fairness: globalStrict() }],
        endpointFilters: [
          {
            type: 'by-model',
            classOf: ({ request }) => (request as unknown as { model: string }).model,
            keep: (endpoints, model) => endpoints.filter(({ labels }) => labels.model === model),
          },
        ],
      });
      pool.markOverloaded('e1', 5000);
      const own = { byteSize: 1, model: 'e1' };
      void flow.enqueue(own, key());
      expect(explainWait(flow, own)).toMatchObject({
        decidedBy: 'endpoints',
        text: 'band 0: the endpoints it may go to are marked as overloaded',
      });
    },
  );

  it('says that the detector fails, rather than what that is read as', () => {
    const { flow } = makeFlow({
      saturationDetector: () => {
        throw new Error('no figures');
      },
    });
    const own = { byteSize: 1 };
    void flow.enqueue(own, key());
    expect(explainWait(flow, own)).toMatchObject({
      decidedBy: 'gate',
      text: 'band 0 gated: the saturation detector fails',
    });
  });

  it('changes nothing: what follows is what would have followed', async () => {
    const { flow } = makeFlow();
    const held = runNow(flow);
    const order: number[] = [];
    for (let i = 0; i < 5; i++) void flow.enqueue(request, key()).then(() => order.push(i));
    const before = flow.stats();
    for (let i = 1; i < 6; i++) explainWait(flow, i);
    expect(flow.stats()).toEqual(before);
    held.release();
    await turns();
    expect(order).toEqual([0]);
  });
});

describe('the queued event', () => {
  it('tells place and estimate', () => {
    const detector = dial(0, true);
    const { flow, clock } = makeFlow({
      saturationDetector: detector,
      limits,
      bands: [{ priority: 0, fairness: roundRobin() }],
    });
    const queued = record(flow, 'queued');
    for (let i = 0; i < 10; i++) runNow(flow).release();
    clock.advance(1000);
    detector.turnTo(2);
    for (const id of ['a', 'b', 'a']) void flow.enqueue(request, key(id));
    expect(
      queued.map(({ waitingInBand, waitingInFlow, estimatedWaitMs }) => [
        waitingInBand,
        waitingInFlow,
        estimatedWaitMs,
      ]),
    ).toEqual([
      [1, 1, 100],
      [2, 1, 200],
      [3, 2, 300],
    ]);
  });

  it('makes no estimate before anything was measured', () => {
    const { flow } = makeFlow({ saturationDetector: () => 1 });
    const queued = record(flow, 'queued');
    void flow.enqueue(request, key());
    expect(queued[0]?.estimatedWaitMs).toBeUndefined();
  });
});

describe('explain, where a band is shared by cost', () => {
  const workOf = ({ tokens }: { tokens: number }): { promptTokens: number; completionTokens: number } => ({
    promptTokens: tokens,
    completionTokens: 0,
  });

  it.each([
    ['virtualTokenCounter', virtualTokenCounter({ workOf })],
    ['deficitRoundRobin', deficitRoundRobin({ workOf, quantum: 1 })],
    ['hierarchical', hierarchical({ workOf })],
  ])('tells what the flow has received beyond its share (%s)', (_, fairness) => {
    const detector = dial(0, true);
    const { flow } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, fairness }] });
    void flow.enqueue({ byteSize: 1, tokens: 12_500 }, key('acme'));
    void flow.enqueue({ byteSize: 1, tokens: 100 }, key('globex'));
    detector.turnTo(1);
    const ahead = { byteSize: 1, tokens: 7 };
    const behind = { byteSize: 2, tokens: 7 };
    void flow.enqueue(ahead, key('acme'));
    void flow.enqueue(behind, key('globex'));
    const explanation = explainWait(flow, ahead);
    expect(explanation?.leadInCost).toBeGreaterThanOrEqual(12_399);
    expect(explanation?.leadInCost).toBeLessThanOrEqual(12_500);
    expect(explanation?.text).toMatch(/; its flow has received 12,[345]\d\d more than its share/);
    expect(explainWait(flow, behind)?.text).not.toMatch(/12,\d\d\d more than its share/);
  });

  it('says nothing of the kind where nobody keeps account of it', () => {
    const { flow } = makeFlow({ saturationDetector: dial(1, true), bands: [{ priority: 0, fairness: roundRobin() }] });
    const own = { byteSize: 1 };
    void flow.enqueue(own, key());
    expect(explainWait(flow, own)).not.toHaveProperty('leadInCost');
  });
});
