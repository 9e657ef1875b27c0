import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  type EndpointFilter,
  EndpointPool,
  explainWait,
  type FlowController,
  type FlowRequest,
  globalStrict,
  labelFilter,
  overviewOf,
  roundRobin,
  virtualTokenCounter,
} from '../../../src/index.js';
import type { ControllerOverview } from '../../../src/types/index.js';
import { dial, key, makeFlow, request, runNow } from '../../support/flow.js';

const limits = { maxRequests: 1e6, maxBytes: 1e9 };

function crowd(flow: FlowController, sizes: readonly number[], priority = 0): void {
  for (const [index, size] of sizes.entries())
    for (let i = 0; i < size; i++) void flow.enqueue(request, key(`f${index}`, priority));
}

describe('overview', () => {
  it('shows the largest flows and counts the others', () => {
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness: roundRobin() }] });
    runNow(flow);
    crowd(flow, [1, 5, 2, 4, 3]);
    const [band] = overviewOf(flow, { flows: 2 }).bands;
    expect(band?.flows.map(({ fairnessId, waiting }) => [fairnessId, waiting])).toEqual([
      ['f1', 5],
      ['f3', 4],
    ]);
    expect(band).toMatchObject({ waiting: 15, otherFlows: 3, otherWaiting: 6 });
  });

  it('looks at no more flows than it is allowed to, in all bands together', () => {
    const { flow } = makeFlow({
      limits,
      bands: [
        { priority: 1, fairness: roundRobin(), limits },
        { priority: 0, fairness: roundRobin() },
      ],
    });
    runNow(flow);
    crowd(flow, [...new Array(3_999).fill(1), 2, 9], 1);
    crowd(flow, [1, 1], 0);
    const largest = ({ bands }: ControllerOverview): unknown =>
      bands.map(({ flows, otherFlows }) => [flows.map(({ fairnessId }) => fairnessId), otherFlows]);
    expect(largest(overviewOf(flow, { flows: 1 }))).toEqual([
      [['f3999'], 4_000],
      [[], 2],
    ]);
    expect(largest(overviewOf(flow, { flows: 1, waits: 'all' }))).toEqual(largest(overviewOf(flow, { flows: 1 })));
    expect(overviewOf(flow, { flows: 'all' }).bands.map(({ flows }) => flows.length)).toEqual([4_001, 2]);
    expect(overviewOf(flow, { waits: 'all' }).waits).toHaveLength(4_000);
  });

  it.each([
    ['flows of their own', roundRobin()],
    ['one queue', globalStrict()],
  ])('finds the longest wait of each flow among %s, and says why', (_, fairness) => {
    const { flow, clock } = makeFlow({ bands: [{ priority: 0, fairness }] });
    runNow(flow);
    for (const id of ['a', 'b', 'a', 'c', 'a']) {
      void flow.enqueue(request, key(id));
      clock.advance(10);
    }
    const { waits } = overviewOf(flow, { waits: 4 });
    expect(waits.map(({ fairnessId, waitedMs }) => [fairnessId, waitedMs])).toEqual([
      ['a', 50],
      ['b', 40],
      ['c', 20],
    ]);
    expect(waits[2]).toEqual({ fairnessId: 'c', ...explainWait(flow, waits[2]!.sequence) });
  });

  it('leaves out idle bands first, then the lowest', () => {
    const priorities = Array.from({ length: 35 }, (_, index) => 34 - index);
    const { flow } = makeFlow({ bands: priorities.map((priority) => ({ priority })) });
    runNow(flow);
    for (const priority of [1, 3]) void flow.enqueue(request, key('a', priority));
    const { bands, otherBands } = overviewOf(flow);
    const shown = priorities.filter((priority) => priority > 4 || priority === 3 || priority === 1);
    expect([bands.map(({ priority }) => priority), otherBands]).toEqual([shown, 3]);
    expect(overviewOf(flow, { flows: 'all' }).bands.map(({ priority }) => priority)).toEqual(priorities);
  });

  it('shows the first endpoints, marks of overload included', () => {
    const pool = new EndpointPool();
    for (let i = 1; i <= 65; i++) pool.add(`e${i}`);
    const { flow, clock } = makeFlow({ pool });
    pool.markOverloaded('e2', 500);
    const shown = () => overviewOf(flow).endpoints.map(({ id, isOverloaded }) => [id, isOverloaded]);
    expect(shown()).toHaveLength(64);
    expect(shown().slice(0, 2)).toEqual([
      ['e1', false],
      ['e2', true],
    ]);
    expect(overviewOf(flow).otherEndpoints).toBe(1);
    expect(overviewOf(flow, { flows: 'all' })).toMatchObject({
      otherEndpoints: 0,
      pool: { endpoints: 65, available: 64 },
    });
    clock.advance(500);
    expect(shown()[1]).toEqual(['e2', false]);
  });

  it('asks no fairness policy and no comparator, however much waits', () => {
    let calls = 0;
    const turns = roundRobin();
    const { flow } = makeFlow({
      saturationDetector: dial(1, true),
      limits,
      bands: [
        {
          priority: 0,
          limits,
          fairness: {
            type: 'counted',
            createSelector(band) {
              const selector = turns.createSelector(band);
              const pick = selector.pick.bind(selector);
              selector.pick = (nowMs) => {
                calls++;
                return pick(nowMs);
              };
              return selector;
            },
          },
        },
      ],
    });
    crowd(flow, new Array(2000).fill(2));
    calls = 0;
    const { bands } = overviewOf(flow);
    expect(calls).toBe(0);
    expect(bands[0]).toMatchObject({ waiting: 4000, otherFlows: 1992 });
  });

  it('shows what tenants received and what they were owed, of policies that share by cost', () => {
    const fairness = virtualTokenCounter({ workOf: ({ tokens }) => ({ promptTokens: tokens, completionTokens: 0 }) });
    const detector = dial(1, true);
    const { flow } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, fairness }, { priority: -1 }] });
    expect(overviewOf(flow).bands.map(({ service }) => service?.tenants)).toEqual([[], undefined]);
    for (const [name, tokens] of [
      ['large', 600],
      ['small', 100],
      ['large', 600],
      ['tiny', 20],
    ] as const) {
      void flow.enqueue({ byteSize: 1, tokens }, key(name));
    }
    detector.turnTo(0);
    const [band] = overviewOf(flow, { flows: 'all' }).bands;
    // While all three waited 600 and 100 went, and 600 more while two did: tiny, the last, is owed more than small.
    expect(
      band?.service?.tenants.map(({ fairnessId, received, receivedShare }) => [fairnessId, received, receivedShare]),
    ).toEqual([
      ['large', 1200, 1200 / 1320],
      ['tiny', 20, 20 / 1320],
      ['small', 100, 100 / 1320],
    ]);
    expect(overviewOf(flow, { flows: 1 }).bands[0]?.service).toMatchObject({
      tenants: [{ fairnessId: 'large' }],
      otherTenants: 2,
      others: { received: 120 },
    });
    expect(flow.figures().bands[0]?.service()?.flows).toHaveLength(3);
  });

  it('shows how far a tenant that waits is ahead of those that go next', () => {
    const fairness = virtualTokenCounter({ cost: 'requests' });
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 2 }),
      bands: [{ priority: 0, fairness }],
    });
    overviewOf(flow);
    for (let i = 0; i < 2; i++) runNow(flow, { fairnessId: 'a' });
    void flow.enqueue(request, key('b'));
    void flow.enqueue(request, key('a'));
    const tenants = overviewOf(flow).bands[0]?.service?.tenants;
    expect(tenants?.map(({ fairnessId, waiting, lead }) => [fairnessId, waiting, lead])).toEqual([
      ['a', 1, 1],
      ['b', 1, 0],
    ]);
  });

  it.each([
    ['flows of their own', roundRobin()],
    ['one queue', globalStrict()],
  ])('lists the flows that wait longest first, with what they run, among %s', (_, fairness) => {
    const { flow, clock } = makeFlow({
      saturationDetector: dial(0),
      bands: [{ priority: 0, fairness }],
      flows: { b: { weight: 3 } },
    });
    for (const fairnessId of ['hog', 'hog', 'b']) runNow(flow, { fairnessId });
    flow.reconfigure({ saturationDetector: dial(1) });
    for (const id of ['b', 'a', 'a']) {
      void flow.enqueue(request, key(id));
      clock.advance(10);
    }
    const { standings, otherStandings } = overviewOf(flow);
    expect(standings).toEqual([
      standing('b', { weight: 3, waiting: 1, waitingBytes: 10, oldestWaitMs: 30, inFlight: 1 }),
      standing('a', { waiting: 2, waitingBytes: 20, oldestWaitMs: 20 }),
      standing('hog', { inFlight: 2 }),
    ]);
    expect(otherStandings).toBe(0);
  });

  it('keeps places for the flows that run most, and counts those that it leaves out', () => {
    const { flow } = makeFlow({ saturationDetector: dial(0), bands: [{ priority: 0, fairness: roundRobin() }] });
    for (const fairnessId of ['small', 'hog', 'hog']) runNow(flow, { fairnessId });
    flow.reconfigure({ saturationDetector: dial(1) });
    for (const id of ['a', 'b', 'c']) void flow.enqueue(request, key(id));
    const { standings, otherStandings } = overviewOf(flow, { flows: 2 });
    expect(standings.map(({ fairnessId }) => fairnessId)).toEqual(['a', 'b', 'hog']);
    expect(otherStandings).toBe(2);
  });

  it.each([
    ['has a queue of its own', roundRobin],
    ['shares one queue with others', globalStrict],
  ])('tells how long the flows that run most have waited, where each %s', (_, fairness) => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(0), bands: [{ priority: 0, fairness: fairness() }] });
    for (const fairnessId of ['hog', 'hog']) runNow(flow, { fairnessId });
    flow.reconfigure({ saturationDetector: dial(1) });
    for (const id of ['a', 'b', 'c', 'hog']) {
      void flow.enqueue(request, key(id));
      clock.advance(10);
    }
    expect(overviewOf(flow, { flows: 2 }).standings).toMatchObject([
      { fairnessId: 'a', oldestWaitMs: 40 },
      { fairnessId: 'b', oldestWaitMs: 30 },
      { fairnessId: 'hog', waiting: 1, inFlight: 2, oldestWaitMs: 10 },
    ]);
  });

  it('adds up the classes of a flow that queue apart', () => {
    const pool = new EndpointPool();
    for (const model of ['m', 'n']) pool.add(model, { labels: { model } });
    const byModel = labelFilter<FlowRequest & { model?: string }>({ label: 'model', of: ({ model }) => model });
    const { flow } = makeFlow({
      pool,
      endpointFilters: [byModel as EndpointFilter],
      holBlocking: 'none',
      defaultBand: { fairness: roundRobin() },
    });
    for (const model of ['m', 'n', 'm', 'n', 'n']) void flow.enqueue({ byteSize: 1, model } as FlowRequest, key('a'));
    expect(overviewOf(flow).standings).toMatchObject([{ fairnessId: 'a', waiting: 3, inFlight: 2 }]);
    expect(overviewOf(flow).bands[0]).toMatchObject({ waiting: 3, inFlight: 2 });
  });
});

/** As it is for a flow of which nothing waits or runs. */
function standing(fairnessId: string, differing: object): object {
  const nothing = {
    waiting: 0,
    waitingBytes: 0,
    isHeld: false,
    isAtCap: false,
    oldestWaitMs: undefined,
    inFlight: 0,
    inFlightTokens: 0,
  };
  return { fairnessId, priority: 0, weight: 1, ...nothing, ...differing };
}
