import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  deficitRoundRobin,
  edf,
  explainWait,
  type FlowController,
  type FlowKey,
  type FlowSettings,
  fcfs,
  globalStrict,
  type Lease,
  overviewOf,
  roundRobin,
  virtualTokenCounter,
} from '../../../src/index.js';
import { audit } from '../../../src/testing/index.js';
import { dial, dispatchOrder, dropOf, key, leaseOf, makeFlow, record, request, turns } from '../../support/flow.js';

const roomy = { saturationDetector: concurrencyDetector({ maxConcurrency: 100 }) };

/** Leases as they come, by fairness ID, the oldest first. */
function keepLeases(flow: FlowController): Map<string, Lease[]> {
  const leases = new Map<string, Lease[]>();
  flow.on('dispatched', ({ lease }) => {
    const own = leases.get(lease.fairnessId) ?? [];
    own.push(lease);
    leases.set(lease.fairnessId, own);
  });
  return leases;
}

function ask(flow: FlowController, to: FlowKey, tokens = 0): Promise<unknown> {
  return flow.enqueue({ ...request, tokens }, to);
}

function sound(flow: FlowController): void {
  expect(audit(flow).violations).toEqual([]);
}

describe('a flow at its cap', () => {
  it('waits while others pass, and goes on when one of its own requests ends', async () => {
    const { flow } = makeFlow({ ...roomy, bands: [{ priority: 0, maxInFlightPerFlow: 2 }] });
    const leases = keepLeases(flow);
    const order = dispatchOrder(flow);
    for (const who of ['a', 'a', 'a', 'a', 'b']) void ask(flow, key(who));
    await turns();
    expect(order).toEqual(['a', 'a', 'b']);
    sound(flow);
    leases.get('b')?.[0]?.release();
    expect(order).toHaveLength(3);
    leases.get('a')?.[0]?.release();
    expect(order).toEqual(['a', 'a', 'b', 'a']);
    expect(flow.stats()).toMatchObject({ waiting: 1, isGateClosed: false });
    sound(flow);
  });

  it('keeps no other flow waiting before a gate that announces nothing', async () => {
    const level = dial(0);
    const { flow, clock } = makeFlow({ saturationDetector: level, bands: [{ priority: 0, maxInFlightPerFlow: 1 }] });
    for (let i = 0; i < 2; i++) void ask(flow, key('a'));
    level.value = 1;
    const other = ask(flow, key('b'));
    level.value = 0;
    clock.advance(1000);
    expect(await other).toMatchObject({ type: 'Dispatched', lease: { fairnessId: 'b' } });
    expect(flow.stats().waiting).toBe(1);
  });

  it('does not wait for the gate, and closes none', () => {
    const { flow } = makeFlow({ ...roomy, bands: [{ priority: 0, maxInFlightPerFlow: 1 }] });
    const gate = record(flow, 'gate');
    for (let i = 0; i < 3; i++) void ask(flow, key('a'));
    expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 2, isGateClosed: false });
    expect(gate).toEqual([]);
  });

  it('is nothing to read anew where nobody has a cap', () => {
    const { flow } = makeFlow({ flows: { a: { weight: 2 } } });
    for (let i = 0; i < 2; i++) void ask(flow, key('a'));
    flow.refreshFlow('a');
    expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 1 });
    sound(flow);
  });

  it('waits in the bands of both templates as well', () => {
    const { flow } = makeFlow({
      ...roomy,
      defaultBand: { maxInFlightPerFlow: 1 },
      defaultNegativeBand: { maxInFlightPerFlow: 1 },
    });
    for (const priority of [0, 0, -1, -1]) void ask(flow, key('a', priority));
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 2 });
    sound(flow);
  });

  it('does not hold back lower bands', () => {
    const { flow } = makeFlow({ ...roomy, bands: [{ priority: 5, maxInFlightPerFlow: 1 }] });
    leaseOf(flow.tryEnqueue(request, key('a', 5)));
    void ask(flow, key('a', 5));
    leaseOf(flow.tryEnqueue(request, key('a', 0)));
    leaseOf(flow.tryEnqueue(request, key('b', 5)));
    sound(flow);
  });

  it('is found at the gate as well: it does not go first when the gate opens', () => {
    const { flow } = makeFlow({
      bands: [{ priority: 0, maxInFlightPerFlow: 1 }],
      saturationDetector: concurrencyDetector({ maxConcurrency: 2 }),
    });
    const order = dispatchOrder(flow);
    const first = leaseOf(flow.tryEnqueue(request, key('a')));
    const other = leaseOf(flow.tryEnqueue(request, key('b')));
    for (const who of ['a', 'a', 'c']) void ask(flow, key(who));
    other.release();
    expect(order).toEqual(['a', 'b', 'c']);
    first.release();
    expect(order).toEqual(['a', 'b', 'c', 'a']);
    sound(flow);
  });

  it('counts tokens, and lets a request larger than its cap run alone', () => {
    const { flow } = makeFlow({ ...roomy, bands: [{ priority: 0, maxInFlightPerFlow: { tokens: '1k' } }] });
    const leases = keepLeases(flow);
    const inFlight = (): number[] =>
      [...(leases.get('a') ?? [])].filter(({ isReleased }) => !isReleased).map(({ tokens }) => tokens);
    for (const tokens of [600, 400, 5000, 1]) void ask(flow, key('a'), tokens);
    expect(inFlight()).toEqual([600, 400]);
    leases.get('a')?.[0]?.release();
    expect(inFlight()).toEqual([400]);
    leases.get('a')?.[1]?.release();
    expect(inFlight()).toEqual([5000]);
    expect(explainWait(flow, 3)?.text).toContain(
      'waits for its own cap (5,000 of 1,000 tokens running, 1 more wanted)',
    );
    leases.get('a')?.[2]?.release();
    expect(inFlight()).toEqual([1]);
    sound(flow);
  });

  it('gives back the tokens of what ends while more of it runs', () => {
    const { flow } = makeFlow({
      ...roomy,
      bands: [{ priority: 0, maxInFlightPerFlow: { requests: 10, tokens: 100 } }],
    });
    const leases = keepLeases(flow);
    for (const tokens of [60, 30, 50]) void ask(flow, key('a'), tokens);
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 1 });
    leases.get('a')?.[0]?.release();
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 0, inFlightTokens: 80 });
    sound(flow);
  });

  it('lets a smaller request pass only where the ordering policy puts it first', () => {
    const options = { ...roomy, flows: { a: { maxInFlight: { tokens: 10 } } } };
    const inOrder = makeFlow({ ...options, bands: [{ priority: 0, ordering: fcfs() }] }).flow;
    leaseOf(inOrder.tryEnqueue({ ...request, tokens: 8 }, key('a')));
    void ask(inOrder, key('a'), 5);
    expect(inOrder.tryEnqueue({ ...request, tokens: 1 }, key('a'))).toBeUndefined();
    const byDeadline = makeFlow({ ...options, bands: [{ priority: 0, ordering: edf() }] }).flow;
    const order = dispatchOrder(byDeadline);
    leaseOf(byDeadline.tryEnqueue({ ...request, tokens: 8 }, key('a')));
    void ask(byDeadline, key('a'), 5);
    void byDeadline.enqueue({ ...request, tokens: 1, ttlMs: 5 }, key('a'));
    expect(order).toEqual(['a', 'a']);
    for (const flow of [inOrder, byDeadline]) sound(flow);
  });

  it('goes on when the request leaves that its cap has no room for', async () => {
    const { flow } = makeFlow({ ...roomy, bands: [{ priority: 0, maxInFlightPerFlow: { tokens: 10 } }] });
    const order = dispatchOrder(flow);
    const abort = new AbortController();
    leaseOf(flow.tryEnqueue({ ...request, tokens: 8 }, key('a')));
    void flow.enqueue({ ...request, tokens: 9, signal: abort.signal }, key('a'));
    void ask(flow, key('a'), 2);
    expect(order).toHaveLength(1);
    abort.abort();
    expect(order).toHaveLength(2);
    sound(flow);
  });

  it('expires and is dropped as any other, and leaves nothing behind', async () => {
    const { flow, clock } = makeFlow({ ...roomy, bands: [{ priority: 0, maxInFlightPerFlow: 1, requestTtl: 50 }] });
    const lease = leaseOf(flow.tryEnqueue(request, key('a')));
    const waiting = flow.enqueue(request, key('a'));
    clock.advance(60);
    expect(dropOf(await waiting)).toMatchObject({ type: 'EvictedTTL', reason: 'ttl-expired' });
    sound(flow);
    lease.release();
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0 });
    const closing = flow.enqueue(request, key('b'));
    leaseOf(await closing);
    const last = flow.enqueue(request, key('b'));
    await flow.close();
    expect(dropOf(await last).reason).toBe('shutting-down');
    sound(flow);
  });

  it('costs nobody a wake-up: a gate that has to be looked at is not looked at for it', () => {
    const silent = dial(0.5);
    const { flow, clock } = makeFlow({ saturationDetector: silent, bands: [{ priority: 0, maxInFlightPerFlow: 1 }] });
    leaseOf(flow.tryEnqueue(request, key('a')));
    void ask(flow, key('a'));
    const { reads } = silent;
    clock.advance(1000);
    expect(silent.reads).toBe(reads);
  });

  it('is said to be at its cap by explain, figures and overview', () => {
    const { flow } = makeFlow({ ...roomy, bands: [{ priority: 0, maxInFlightPerFlow: 8 }] });
    for (let i = 0; i < 8; i++) leaseOf(flow.tryEnqueue(request, key('a')));
    void ask(flow, key('a'));
    expect(explainWait(flow, 8)).toMatchObject({
      decidedBy: 'cap',
      text: expect.stringContaining('waits for its own cap (8 of 8 running)'),
    });
    const cap = { maxRequests: 8, maxTokens: Infinity, requests: 8, tokens: 0 };
    const overview = overviewOf(flow);
    expect(overview.bands[0]).toMatchObject({
      waitingAtCap: 1,
      held: 0,
      flows: [{ fairnessId: 'a', isAtCap: true, isHeld: false, cap }],
    });
    expect(overview.standings).toMatchObject([{ fairnessId: 'a', isAtCap: true }]);
    expect(flow.figures().bands[0]).toMatchObject({ waitingAtCap: 1 });
    expect([...(flow.figures().bands[0]?.waitingIds() ?? [])]).toEqual(['a']);
  });
});

describe('caps under `flows`', () => {
  it('hold for all bands of the tenant together, and the higher band goes first', () => {
    const { flow } = makeFlow({ ...roomy, bands: [{ priority: 5 }], flows: { a: { maxInFlight: 2 } } });
    const order: number[] = [];
    flow.on('dispatched', ({ item }) => order.push(item.priority));
    const lease = leaseOf(flow.tryEnqueue(request, key('a', 0)));
    leaseOf(flow.tryEnqueue(request, key('a', 5)));
    for (const priority of [0, 5, 0]) void ask(flow, key('a', priority));
    expect(order).toEqual([0, 5]);
    lease.release();
    expect(order).toEqual([0, 5, 5]);
    sound(flow);
  });

  it('replace the cap of the band, and leave the others under it', () => {
    const { flow } = makeFlow({
      ...roomy,
      bands: [{ priority: 0, maxInFlightPerFlow: 1 }],
      flows: { big: { maxInFlight: 3 } },
    });
    const order = dispatchOrder(flow);
    for (const who of ['big', 'big', 'big', 'big', 'small', 'small']) void ask(flow, key(who));
    expect(order).toEqual(['big', 'big', 'big', 'small']);
    sound(flow);
  });

  it('only hold back when they are lowered, and let go when they are raised', () => {
    const { flow } = makeFlow({ ...roomy, flows: { a: { maxInFlight: 3 } } });
    const leases = keepLeases(flow);
    for (let i = 0; i < 5; i++) void ask(flow, key('a'));
    flow.reconfigure({ flows: { a: { maxInFlight: 1 } } });
    expect(flow.stats()).toMatchObject({ inFlight: 3, waiting: 2, evictedInFlight: 0 });
    for (const lease of leases.get('a')?.slice(0, 2) ?? []) lease.release();
    expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 2 });
    sound(flow);
    flow.reconfigure({ flows: { a: { maxInFlight: 2 } } });
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 1 });
    sound(flow);
    flow.reconfigure({ flows: undefined });
    expect(flow.stats()).toMatchObject({ inFlight: 3, waiting: 0 });
    sound(flow);
  });

  it('count what runs already when they are set', () => {
    const { flow } = makeFlow(roomy);
    const leases = keepLeases(flow);
    for (let i = 0; i < 3; i++) void ask(flow, key('a'));
    flow.reconfigure({ flows: { a: { maxInFlight: 2 } } });
    void ask(flow, key('a'));
    leases.get('a')?.[0]?.release();
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 1 });
    leases.get('a')?.[1]?.release();
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 0 });
    sound(flow);
  });
});

describe('`flows` as a function', () => {
  it('is asked once for each fairness ID, until it is refreshed', () => {
    const asked: string[] = [];
    const plans: Record<string, FlowSettings> = { a: { maxInFlight: 1 } };
    const flows = (id: string): FlowSettings | undefined => {
      asked.push(id);
      return plans[id];
    };
    const { flow } = makeFlow({ ...roomy, flows });
    for (let i = 0; i < 3; i++) void ask(flow, key('a'));
    void ask(flow, key('b'));
    expect(asked).toEqual(['a', 'b']);
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 2 });
    plans.a = { maxInFlight: 2 };
    flow.refreshFlow('a');
    expect(asked).toEqual(['a', 'b', 'a']);
    expect(flow.stats()).toMatchObject({ inFlight: 3, waiting: 1 });
    delete plans.a;
    flow.refreshFlow('a');
    expect(flow.stats()).toMatchObject({ inFlight: 4, waiting: 0 });
    sound(flow);
  });

  it('lets a flow that the cap of its band holds go under a cap of its own', () => {
    let own: FlowSettings | undefined;
    const { flow } = makeFlow({ ...roomy, bands: [{ priority: 0, maxInFlightPerFlow: 1 }], flows: () => own });
    for (let i = 0; i < 3; i++) void ask(flow, key('a'));
    expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 2 });
    own = { maxInFlight: 2 };
    flow.refreshFlow('a');
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 1 });
    sound(flow);
  });

  it('may be refreshed for a fairness ID of which nothing runs', () => {
    const { flow } = makeFlow({ ...roomy, flows: () => ({ maxInFlight: 1 }) });
    void ask(flow, key('a'));
    void ask(flow, key('a'));
    flow.refreshFlow('b');
    expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 1 });
    sound(flow);
  });

  it('remembers no more answers than there may be flows', () => {
    let count = 0;
    const { flow } = makeFlow({
      ...roomy,
      maxFlows: 2,
      flows: () => {
        count++;
        return { maxInFlight: 1 };
      },
    });
    for (const who of ['a', 'b', 'c', 'a']) leaseOf(flow.tryEnqueue(request, key(who))).release();
    expect(count).toBe(4);
    leaseOf(flow.tryEnqueue(request, key('a')));
    expect(count).toBe(4);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('the database is down');
      },
    ],
    ['answers with nonsense', () => ({ weight: -1 }) as FlowSettings],
    ['answers with a promise', () => Promise.reject(new Error('later')) as unknown as FlowSettings],
  ])('that %s leaves the last settings in force, or those of the band', (_, fail) => {
    let isDown = false;
    const { flow } = makeFlow({
      ...roomy,
      bands: [{ priority: 0, maxInFlightPerFlow: 1 }],
      flows: (id) => (isDown ? fail() : id === 'a' ? { maxInFlight: 2 } : undefined),
    });
    const errors = record(flow, 'pluginError');
    leaseOf(flow.tryEnqueue(request, key('a')));
    isDown = true;
    flow.refreshFlow('a');
    leaseOf(flow.tryEnqueue(request, key('a')));
    expect(flow.tryEnqueue(request, key('a'))).toBeUndefined();
    leaseOf(flow.tryEnqueue(request, key('new')));
    expect(flow.tryEnqueue(request, key('new'))).toBeUndefined();
    expect(errors.map(({ kind }) => kind)).toEqual(['flows', 'flows']);
    isDown = false;
    flow.refreshFlow('new');
    sound(flow);
  });

  it('gives weights and limits as the object does', async () => {
    const { flow } = makeFlow({ flows: (id) => (id === 'a' ? { weight: 2, limits: { maxRequests: 1 } } : undefined) });
    leaseOf(flow.tryEnqueue(request, key('x')));
    void ask(flow, key('a'));
    expect(dropOf(await flow.enqueue(request, key('a'))).reason).toBe('flow-max-requests');
    void ask(flow, key('b'));
    void ask(flow, key('b'));
    expect(flow.stats().waiting).toBe(3);
  });

  it('is never asked about the flows that many share', () => {
    const asked = new Set<string>();
    const { flow } = makeFlow({
      maxFlows: 1,
      flows: (id) => {
        asked.add(id);
        return undefined;
      },
    });
    leaseOf(flow.tryEnqueue(request, key('x')));
    for (const who of ['a', 'b', 'c']) void ask(flow, key(who));
    expect([...asked].every((id) => 'xabc'.includes(id))).toBe(true);
  });
});

describe('what fairness IDs share when the table of flows is full', () => {
  it('keeps the cap of each', () => {
    const { flow } = makeFlow({
      ...roomy,
      maxFlows: 1,
      flows: Object.fromEntries([...'abcd'].map((id) => [id, { maxInFlight: 1 }])),
    });
    const running = new Map<string, number>();
    flow.on('dispatched', ({ item }) => running.set(item.fairnessId, (running.get(item.fairnessId) ?? 0) + 1));
    for (const who of ['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd']) void ask(flow, key(who));
    expect([...running.values()].every((count) => count === 1)).toBe(true);
    sound(flow);
  });
});

describe.each([
  ['round robin', () => roundRobin()],
  ['one queue', () => globalStrict()],
  ['virtual token counters', () => virtualTokenCounter()],
  ['deficit round robin', () => deficitRoundRobin()],
])('under %s', (_, fairness) => {
  it('a capped flow that waited is not owed what it could not use', () => {
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 3 }),
      bands: [{ priority: 0, fairness: fairness() }],
      flows: { a: { maxInFlight: 1 } },
    });
    const leases: Lease[] = [];
    const order: string[] = [];
    flow.on('dispatched', ({ lease, item }) => {
      leases.push(lease);
      order.push(item.fairnessId);
    });
    for (let i = 0; i < 60; i++) for (const who of ['a', 'b', 'c']) void ask(flow, key(who));
    const kept = leases.find(({ fairnessId }) => fairnessId === 'a');
    for (let i = 0; i < 40; i++)
      leases.find(({ isReleased, fairnessId }) => !isReleased && fairnessId !== 'a')?.release();
    expect(order.filter((who) => who === 'a')).toHaveLength(1);
    sound(flow);
    flow.reconfigure({ flows: undefined });
    order.length = 0;
    for (let i = 0; i < 15; i++) leases.find(({ isReleased }) => !isReleased && kept !== undefined)?.release();
    const ofA = order.filter((who) => who === 'a').length;
    // One queue knows no shares: what came first goes first.
    if (fairness().type === globalStrict().type) expect(ofA).toBe(15);
    else expect(ofA).toBeLessThanOrEqual(7);
    sound(flow);
  });
});
