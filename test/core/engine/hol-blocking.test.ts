/** Requests that may go only to some endpoints, and what waits behind them. */
import { describe, expect, it } from 'vitest';
import {
  aimdLatency,
  concurrencyDetector,
  type EndpointFilter,
  EndpointPool,
  type EndpointView,
  edf,
  type FairnessPolicy,
  type FlowControllerOptions,
  type FlowFairnessPolicy,
  type FlowRequest,
  globalStrict,
  inFlightEviction,
  type Lease,
  type Outcome,
  overviewOf,
  roundRobin,
} from '../../../src/index.js';
import type { FlowView } from '../../../src/types/index.js';
import { Random } from '../../property/random.js';
import { dial, dropOf, key, leaseOf, makeFlow, turns } from '../../support/flow.js';

interface ModelRequest extends FlowRequest {
  readonly model?: string;
}

const byModel: EndpointFilter = {
  type: 'test-model-filter',
  classOf: (item) => (item.request as ModelRequest).model,
  keep: (endpoints, model) => endpoints.filter(({ labels }) => labels.model === model),
};

/** One seat on each server: `a0` serves model a, `b0` model b. */
function twoModels(options: Partial<FlowControllerOptions> = {}) {
  const pool = new EndpointPool();
  pool.add('a0', { labels: { model: 'a' } });
  pool.add('b0', { labels: { model: 'b' } });
  const made = makeFlow({
    pool,
    endpointFilters: [byModel],
    saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    defaultBand: { fairness: globalStrict() },
    ...options,
  });
  const order: string[] = [];
  const send = (
    name: string,
    model: string | undefined,
    fairnessId = 'x',
    priority = 0,
    more: Partial<FlowRequest> = {},
  ) => {
    const request: ModelRequest = { byteSize: 1, ...(model === undefined ? {} : { model }), ...more };
    const promise = made.flow.enqueue(request, key(fairnessId, priority));
    void promise.then((outcome) => order.push(outcome.type === 'Dispatched' ? name : `${name}:${outcome.type}`));
    return promise;
  };
  return { ...made, pool, order, send };
}

describe('a request that may go only to some endpoints', () => {
  it('no longer holds back its band once its ordering policy has given it up', async () => {
    const ordering = edf({ dropInfeasible: true, firstTokenAfter: 300 });
    const { clock, order, send } = twoModels({ defaultBand: { fairness: globalStrict(), ordering } });
    await send('running', 'a');
    void send('late', 'a', 'x', 0, { sloTtftMs: 1000, ttlMs: 60_000 });
    void send('next', 'b', 'y', 0, { ttlMs: 60_000 });
    clock.advance(700);
    await turns();
    expect(order).toEqual(['running']);
    clock.advance(200);
    await turns();
    expect(order).toEqual(['running', 'late:EvictedOther', 'next']);
  });

  it('goes to one of them, and is rejected at once when the pool has none', async () => {
    const { send, flow } = twoModels();
    expect(leaseOf(await send('1', 'b')).endpoint?.id).toBe('b0');
    expect(leaseOf(await send('2', 'a')).endpoint?.id).toBe('a0');
    expect(dropOf(await send('3', 'c'))).toMatchObject({ type: 'RejectedNoEndpoints', reason: 'no-endpoints' });
    expect(flow.stats().pluginErrors).toBe(0);
  });

  it('waits while they have no room, although others have', async () => {
    const { send, order } = twoModels();
    const first = leaseOf(await send('1', 'a'));
    void send('2', 'a');
    await turns();
    expect(order).toEqual(['1']);
    first.release();
    await turns();
    expect(order).toEqual(['1', '2']);
  });

  it('is sent to a full one where headroom is preferred only', async () => {
    const { send, order } = twoModels({ headroom: 'preferred' });
    await send('1', 'a');
    await send('2', 'a');
    expect(order).toEqual(['1', '2']);
  });

  it('waits for an empty pool, and leaves when the pool comes back without one', async () => {
    const { send, pool, order } = twoModels();
    pool.remove('a0');
    pool.remove('b0');
    const unserved = send('1', 'a');
    void send('2', 'b');
    await turns();
    expect(order).toEqual([]);
    pool.add('b1', { labels: { model: 'b' } });
    await turns();
    expect(order).toEqual(['1:EvictedNoEndpoints', '2']);
    expect(dropOf(await unserved).reason).toBe('no-endpoints');
  });

  it('leaves its turn to the next of its band, and not to a lower one, when its last endpoint is gone', async () => {
    const gate = dial(1, true);
    const { send, pool, order } = twoModels({
      saturationDetector: Object.assign(gate, {
        filter: (endpoints: readonly EndpointView[]) =>
          endpoints.filter(({ inFlightRequests }) => inFlightRequests === 0),
      }),
      headroom: 'required',
    });
    void send('high', 'a', 'x', 5);
    void send('next', 'b', 'x', 5);
    void send('low', 'b', 'x', 0);
    pool.remove('a0');
    gate.turnTo(0);
    await turns();
    expect(order).toEqual(['high:EvictedNoEndpoints', 'next']);
  });

  it('is not restricted by a filter that throws, and the fault is reported', async () => {
    const { send, flow } = twoModels({
      endpointFilters: [
        {
          ...byModel,
          keep: () => {
            throw new Error('broken');
          },
        },
      ],
    });
    expect(leaseOf(await send('1', 'a')).endpoint).toBeDefined();
    expect(flow.stats().pluginErrors).toBe(1);
  });
});

describe('behind a request that has nowhere to go', () => {
  /**
   * `a` is taken; then one request of model a waits, and one of model b of another flow, of the same flow, and of a
   * lower band.
   */
  async function lineUp(options: Partial<FlowControllerOptions>) {
    const scene = twoModels(options);
    const holder = leaseOf(await scene.send('holder', 'a', 'h'));
    for (const [name, model, fairnessId, priority] of [
      ['blocked', 'a', 'x', 0],
      ['same flow', 'b', 'x', 0],
      ['other flow', 'b', 'y', 0],
      ['lower band', 'b', 'z', -1],
    ] as const) {
      void scene.send(name, model, fairnessId, priority).then((outcome) => leaseOf(outcome).release());
    }
    await turns(20);
    const before = [...scene.order];
    holder.release();
    await turns(20);
    return { before, after: scene.order, flow: scene.flow };
  }

  const perFlow = { bands: [{ priority: 0, fairness: roundRobin() }] };

  it('its band and those below wait, by default', async () => {
    const { before, after } = await lineUp({});
    expect(before).toEqual(['holder']);
    expect(after).toEqual(['holder', 'blocked', 'same flow', 'other flow', 'lower band']);
  });

  it.each([
    ['round robin', perFlow],
    ['one shared order', {}],
  ])("its flow waits with holBlocking 'flow', under %s", async (_, options) => {
    const { before, after } = await lineUp({ ...options, holBlocking: 'flow' });
    expect(before).toEqual(['holder', 'other flow', 'lower band']);
    expect(after).toEqual(['holder', 'other flow', 'lower band', 'blocked', 'same flow']);
  });

  it.each([
    ['round robin', perFlow],
    ['one shared order', {}],
  ])("nothing waits that could go with holBlocking 'none', under %s", async (_, options) => {
    const { before, after } = await lineUp({ ...options, holBlocking: 'none' });
    expect(new Set(before)).toEqual(new Set(['holder', 'same flow', 'other flow', 'lower band']));
    expect(after).toEqual([...before, 'blocked']);
  });

  it('flows of one class take turns, the longest held first', async () => {
    const { send, order } = twoModels({ ...perFlow, holBlocking: 'flow' });
    const holder = leaseOf(await send('holder', 'a', 'h'));
    for (const name of ['x1', 'x2', 'x3', 'y1', 'z1'])
      void send(name, 'a', name[0]).then((outcome) => leaseOf(outcome).release());
    await turns();
    holder.release();
    await turns(20);
    expect(order).toEqual(['holder', 'x1', 'y1', 'z1', 'x2', 'x3']);
  });

  it.each(['flow', 'none'] as const)(
    "requests of one class keep the one shared order with holBlocking '%s'",
    async (holBlocking) => {
      const { send, order } = twoModels({ holBlocking });
      const holder = leaseOf(await send('holder', 'a', 'h'));
      for (const name of ['x1', 'y2', 'y3', 'x4', 'z5'])
        void send(name, 'a', name[0]).then((outcome) => leaseOf(outcome).release());
      await turns();
      holder.release();
      await turns(20);
      expect(order).toEqual(['holder', 'x1', 'y2', 'y3', 'x4', 'z5']);
    },
  );

  it('a held request that becomes the most urgent is not kept behind one that was let out to try', async () => {
    const gate = dial(0, true);
    const { send, order } = twoModels({
      bands: [{ priority: 0, ordering: edf(), fairness: globalStrict() }],
      holBlocking: 'flow',
      saturationDetector: Object.assign(gate, {
        filter: (endpoints: readonly EndpointView[]) =>
          endpoints.filter(({ inFlightRequests }) => inFlightRequests === 0),
      }),
    });
    const holder = leaseOf(await send('holder', 'a', 'h'));
    void send('x', 'a', 'x', 0, { ttlMs: 20_000 });
    void send('y', 'a', 'y', 0, { ttlMs: 30_000 });
    gate.turnTo(1);
    holder.release();
    void send('y urgent', 'a', 'y', 0, { ttlMs: 1000 });
    gate.turnTo(0);
    await turns();
    expect(order).toEqual(['holder', 'y urgent']);
  });

  it.each(['band', 'flow', 'none'] as const)(
    "they leave when the pool loses their last endpoint, with holBlocking '%s'",
    async (holBlocking) => {
      const { send, order, pool } = twoModels({ holBlocking });
      await send('holder', 'a', 'h');
      for (const name of ['x1', 'x2', 'y1']) void send(name, 'a', name[0]);
      await turns();
      pool.remove('a0');
      await turns();
      expect(order).toEqual(['holder', ...['x1', 'x2', 'y1'].map((name) => `${name}:EvictedNoEndpoints`)]);
    },
  );

  it('nobody passes them when their endpoint is back and the timer is late', async () => {
    const { send, order, pool, clock } = twoModels({ holBlocking: 'none' });
    pool.markOverloaded('a0', 100);
    void send('first', 'a', 'x');
    const now = clock.now.bind(clock);
    clock.now = () => now() + 100;
    void send('second', 'a', 'y');
    await turns();
    expect(order).toEqual(['first']);
  });

  it('nobody passes them while the controller lets the event loop turn', async () => {
    const { send, order, clock } = twoModels({ holBlocking: 'none', maxDispatchesPerTurn: 1 });
    const ofA = leaseOf(await send('a', 'a', 'h'));
    const ofB = leaseOf(await send('b', 'b', 'h'));
    void send('waits for a', 'a', 'x');
    void send('also', 'a', 'y');
    void send('waits for b', 'b', 'z');
    ofB.release();
    ofA.release();
    void send('newcomer', 'a', 'w');
    clock.advance(0);
    await turns();
    expect(order).toEqual(['a', 'b', 'waits for b', 'waits for a']);
  });

  it("bands above go past it where the order of bands put its band first, with holBlocking 'band'", async () => {
    const gate = dial(0, true);
    const { send, order } = twoModels({
      bandOrder: 'fifo',
      saturationDetector: Object.assign(gate, {
        filter: (endpoints: readonly EndpointView[]) =>
          endpoints.filter(({ inFlightRequests }) => inFlightRequests === 0),
      }),
    });
    await send('holder', 'a', 'h');
    gate.turnTo(1);
    for (const [name, model, priority] of [
      ['blocked', 'a', 0],
      ['below', 'b', -1],
      ['above', 'b', 1],
    ] as const)
      void send(name, model, name, priority);
    gate.turnTo(0);
    await turns();
    expect(order).toEqual(['holder', 'above']);
  });

  it("classes of a flow queue apart as soon as holBlocking becomes 'none', and together when it was", async () => {
    const { send, order, flow } = twoModels({ ...perFlow, holBlocking: 'flow' });
    await send('holder', 'a', 'h');
    void send('x wants a', 'a', 'x');
    void send('x wants b', 'b', 'x');
    void send('x wants b, too', 'b', 'x');
    await turns();
    expect(order).toEqual(['holder']);
    flow.reconfigure({ holBlocking: 'none' });
    await turns();
    expect(order).toEqual(['holder', 'x wants b']);
    const flowsOf = () =>
      overviewOf(flow, { flows: 'all' }).bands[0]?.flows.map(({ fairnessId, waiting }) => [fairnessId, waiting]);
    expect(flowsOf()).toEqual([
      ['x', 1],
      ['x', 1],
    ]);
    flow.reconfigure({ holBlocking: 'band' });
    expect(flowsOf()).toEqual([['x', 2]]);
  });

  it("settings that are read anew reach every class of a flow, with holBlocking 'none'", async () => {
    let weight = 1;
    const waiting = new Set<FlowView>();
    const fairness: FlowFairnessPolicy = {
      type: 'watching',
      createSelector: (band) => ({ pick: () => band.firstActive, flowActivated: (each) => void waiting.add(each) }),
    };
    const { send, flow } = twoModels({ holBlocking: 'none', flows: () => ({ weight }), defaultBand: { fairness } });
    for (const model of ['a', 'b', 'a', 'b']) void send('any', model, 'x');
    expect([...waiting].map((each) => each.weight)).toEqual([1, 1]);
    weight = 3;
    flow.refreshFlow('x');
    expect([...waiting].map((each) => each.weight)).toEqual([3, 3]);
  });

  it('a victim is filtered anew when it is put back after the filters were replaced', async () => {
    const { send, order, flow } = twoModels({ eviction: inFlightEviction() });
    const victim = leaseOf(await send('victim', 'a', 'x', -1));
    const ofB = leaseOf(await send('b', 'b', 'y'));
    const high = send('high', 'b', 'y', 5);
    await turns();
    expect(victim.isEvicted).toBe(true);
    flow.reconfigure({ endpointFilters: [{ ...byModel, classOf: () => 'b' }] });
    const again = victim.requeue();
    await turns();
    expect(order).toEqual(['victim', 'b']);
    ofB.release();
    leaseOf(await high).release();
    expect(leaseOf(await again).endpoint?.id).toBe('b0');
  });

  it('a flow whose first request leaves is looked at again', async () => {
    const { send, order } = twoModels({ ...perFlow, holBlocking: 'flow' });
    await send('holder', 'a', 'h');
    const controller = new AbortController();
    void send('blocked', 'a', 'x', 0, { signal: controller.signal });
    void send('behind', 'b', 'x');
    await turns();
    expect(order).toEqual(['holder']);
    controller.abort();
    await turns();
    expect(order).toEqual(['holder', 'blocked:EvictedContextCancelled', 'behind']);
  });

  it('a flow whose order puts another request first is looked at again', async () => {
    const { send, order } = twoModels({
      bands: [{ priority: 0, fairness: roundRobin(), ordering: edf() }],
      holBlocking: 'flow',
    });
    await send('holder', 'a', 'h');
    void send('blocked', 'a', 'x', 0, { ttlMs: 50_000 });
    void send('urgent', 'b', 'x', 0, { ttlMs: 1000 });
    await turns();
    expect(order).toEqual(['holder', 'urgent']);
  });

  it("a newcomer that takes its place at the head of the band goes at once, with holBlocking 'band'", async () => {
    const { send, order } = twoModels({
      bands: [{ priority: 0, fairness: globalStrict(), ordering: edf() }],
      holBlocking: 'band',
    });
    await send('holder', 'a', 'h');
    void send('blocked', 'a', 'x', 0, { ttlMs: 50_000 });
    void send('urgent', 'b', 'y', 0, { ttlMs: 1000 });
    await turns();
    expect(order).toEqual(['holder', 'urgent']);
  });

  it('a flow stays held back from a fairness policy that does not heed it', async () => {
    const seen: FlowView[] = [];
    const fairness: FairnessPolicy = {
      type: 'deaf',
      createSelector: () => ({
        pick: () => seen.find(({ waiting }) => waiting > 0),
        flowActivated: (flow) => void seen.push(flow),
      }),
    };
    const { send, order, flow } = twoModels({ bands: [{ priority: 0, fairness }], holBlocking: 'flow' });
    const [ofA, ofB] = [leaseOf(await send('a0', 'a', 'h')), leaseOf(await send('b0', 'b', 'h'))];
    void send('blocked', 'a', 'x');
    void send('other', 'b', 'y');
    ofB.release();
    await turns();
    expect(order).toEqual(['a0', 'b0', 'other']);
    expect(flow.stats()).toMatchObject({ waiting: 1, pluginErrors: 1 });
    ofA.release();
    await turns();
    expect(order).toEqual(['a0', 'b0', 'other', 'blocked']);
  });

  it('expiry, close and reconfiguration find what is held back', async () => {
    const { send, order, clock, flow } = twoModels({ ...perFlow, holBlocking: 'flow', defaultRequestTtl: 1000 });
    const lease = leaseOf(await send('holder', 'a', 'h'));
    void send('1', 'a', 'x');
    clock.advance(1000);
    await turns();
    expect(order).toEqual(['holder', '1:EvictedTTL']);
    void send('2', 'a', 'x');
    flow.reconfigure({ holBlocking: 'band' });
    expect(overviewOf(flow, { flows: 'all' }).bands[0]?.flows.map(({ waiting }) => waiting)).toEqual([1]);
    flow.reconfigure({ holBlocking: 'flow' });
    lease.release();
    await turns();
    expect(order.at(-1)).toBe('2');
    void send('3', 'a', 'x');
    void send('4', 'a', 'y');
    await flow.close();
    expect(order.slice(-2)).toEqual(['3:EvictedOther', '4:EvictedOther']);
    expect(flow.stats()).toMatchObject({ waiting: 0, waitingBytes: 0 });
  });

  it.each(['band', 'flow', 'none'] as const)(
    "every random history balances with holBlocking '%s', and nothing waits that has room",
    async (mode) => {
      for (let seed = 1; seed <= 15; seed++) {
        const random = new Random(seed);
        const { send, flow, pool, clock } = twoModels({
          holBlocking: mode,
          defaultRequestTtl: 500,
          bands: [{ priority: 0, fairness: roundRobin() }, { priority: 1 }],
        });
        const leases: Lease[] = [];
        const settled: Outcome[] = [];
        let sent = 0;
        const models = ['a', 'b', undefined];
        for (let step = 0; step < 300; step++) {
          const dice = random.next();
          if (dice < 0.6) {
            sent++;
            const controller = new AbortController();
            const request = { signal: controller.signal };
            void send('r', models[random.int(3)], `f${random.int(4)}`, random.int(3) - 1, request).then((outcome) => {
              settled.push(outcome);
              if (outcome.type === 'Dispatched') leases.push(outcome.lease);
            });
            if (random.chance(0.15)) controller.abort();
          } else if (dice < 0.9) leases.splice(random.int(leases.length), 1)[0]?.release();
          else if (dice < 0.95) clock.advance(random.int(200));
          else if (dice < 0.97) pool.markOverloaded('a0', 1 + random.int(100));
          else if (!pool.remove('b0')) pool.add('b0', { labels: { model: 'b' } });
          await turns(2);
          const { waiting, dispatched, rejected, evicted } = flow.stats();
          expect(dispatched + rejected + evicted + waiting).toBe(sent);
          const { bands } = overviewOf(flow, { flows: 'all' });
          expect(bands.reduce((sum, band) => sum + band.flows.reduce((all, { waiting: own }) => all + own, 0), 0)).toBe(
            waiting,
          );
          if (mode === 'none' && waiting > 0) {
            // A request without a model takes any free seat: whoever waits for one must not find one.
            const free = pool.endpoints.filter(
              ({ inFlightRequests, overloadedUntilMs }) => inFlightRequests === 0 && overloadedUntilMs <= clock.now(),
            );
            if (free.length === 2) expect(waiting).toBe(0);
          }
        }
        await flow.close();
        await turns();
        expect(settled).toHaveLength(sent);
        for (const lease of leases) lease.release();
        expect(flow.stats()).toMatchObject({ waiting: 0, waitingBytes: 0, inFlight: 0, pluginErrors: 0 });
      }
    },
  );
});

describe('a server that leaves', () => {
  it.each(['flow', 'none'] as const)(
    'wakes what an adaptive limit holds back at the others (holBlocking: %s)',
    (holBlocking) => {
      const pool = new EndpointPool();
      for (const model of ['a', 'b']) pool.add(`${model}0`, { labels: { model } });
      const saturationDetector = aimdLatency({ targetMs: 1000, initialLimit: 4 });
      const { flow } = makeFlow({
        pool,
        saturationDetector,
        endpointFilters: [byModel],
        headroom: 'required',
        holBlocking,
      });
      // Half of the limit is each server's part.
      for (let i = 0; i < 3; i++) void flow.enqueue({ byteSize: 1, model: 'a' } as ModelRequest, key());
      expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 1 });
      pool.remove('b0');
      expect(flow.stats()).toMatchObject({ inFlight: 3, waiting: 0 });
    },
  );
});
