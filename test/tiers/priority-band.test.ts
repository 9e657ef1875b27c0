/**
 * One band by itself: which request is next, what its policies hear, and what becomes of both when its settings change.
 */
import { describe, expect, it } from 'vitest';
import { type FlowFairnessPolicy, fcfs, globalStrict, type ItemView, type OrderingPolicy } from '../../src/index.js';
import type { Flow } from '../../src/tiers/flow.js';
import type { Reason } from '../../src/tiers/flows-aside.js';
import type { PriorityBand } from '../../src/tiers/priority-band.js';
import type { BandView, FlowSelector } from '../../src/types/index.js';
import { addTo, bandSettings, flowOf, makeBand } from '../support/bands.js';
import { fakeItem } from '../support/fake-item.js';

const cap = (): Reason => ({ kind: 'parked', flows: new Set() });

const usage = { promptTokens: 1, completionTokens: 2 };

/** The highest sequence first. */
const newestFirst: OrderingPolicy = { type: 'newest-first', compare: (a, b) => b.sequence - a.sequence };

/** Takes flows in turn, hears what `selector` hears, and counts its selectors. */
function watching(selector: Partial<FlowSelector> = {}): FlowFairnessPolicy & { made: number } {
  const policy = {
    type: 'watching',
    made: 0,
    createSelector: (band: BandView): FlowSelector => {
      policy.made++;
      return { pick: () => band.firstActive, ...selector };
    },
  };
  return policy;
}

/** Dispatches until nothing is left that may go. */
function drained(band: PriorityBand): number[] {
  const order: number[] = [];
  for (let item = band.next(0); item !== undefined; item = band.next(0)) {
    order.push(item.sequence);
    band.take(item, 0);
  }
  return order;
}

describe('the request that goes next', () => {
  it('is none while nothing waits, and no policy is asked', () => {
    let asked = 0;
    const { band } = makeBand({ fairness: watching({ pick: () => void asked++ }) });
    expect([band.next(0), makeBand({ fairness: globalStrict() }).band.next(0), asked]).toEqual([
      undefined,
      undefined,
      0,
    ]);
  });

  it('is that of the flow that is active longest, in turn, where the policy picks none', () => {
    const { band } = makeBand({ fairness: watching({ pick: () => undefined }) });
    for (const [sequence, who] of ['a', 'a', 'b', 'c'].entries()) addTo(band, who, sequence);
    expect(drained(band)).toEqual([0, 2, 3, 1]);
  });

  it.each<[string, (band: PriorityBand, other: Flow) => unknown]>([
    ['of another band', () => flowOf(makeBand().band, 'a')],
    ['of which requests wait in another band', () => addTo(makeBand().band, 'a', 5).flow],
    ['that is parked', (band, other) => band.setAside(other, cap())],
    ['that is held back', (band, other) => band.setAside(other)],
    ['of which nothing waits', (band) => flowOf(band, 'idle')],
  ])('is never that of a flow %s', (_, wrong) => {
    let picked: unknown;
    const { band, faults } = makeBand({
      fairness: watching({ pick: () => picked as Flow }),
      holdsFlows: true,
      parksFlows: true,
    });
    addTo(band, 'a', 0);
    const other = addTo(band, 'b', 1).flow as Flow;
    picked = wrong(band, other) ?? other;
    expect(band.next(0)?.sequence).toBe(0);
    expect(faults).toEqual([
      expect.stringContaining('fairness watching: TypeError: pick must return an active flow of this band'),
    ]);
  });

  it('counts as ready where its flow is neither held back nor parked', () => {
    const { band } = makeBand({ holdsFlows: true, parksFlows: true });
    for (const [sequence, who] of ['a', 'b', 'b', 'c', 'c', 'c'].entries()) addTo(band, who, sequence);
    expect(band.ready).toBe(6);
    band.setAside(flowOf(band, 'b'));
    band.setAside(flowOf(band, 'c'), cap());
    expect([band.ready, band.active.size, band.waitingFlows().map(({ name }) => name)]).toEqual([
      1,
      1,
      ['a', 'b', 'c'],
    ]);
  });
});

describe('the oldest and the newest request', () => {
  it('are known as long as arrivals are tracked', () => {
    const { band } = makeBand();
    const items = [0, 1, 2].map((sequence) => addTo(band, `${sequence}`, sequence));
    expect([band.arrivals?.peek(), band.arrivals?.last()]).toEqual([undefined, undefined]);
    band.track(true, false);
    expect([band.arrivals?.peek(), band.arrivals?.last()]).toEqual([items[0], items[2]]);
    addTo(band, 'a', 3);
    band.track(true, false);
    expect([band.arrivals?.peek()?.sequence, band.arrivals?.last()?.sequence]).toEqual([0, 3]);
    band.track(false, false);
    expect([band.arrivals?.peek(), band.arrivals?.last()]).toEqual([undefined, undefined]);
  });
});

describe('the flow with most waiting', () => {
  it('is known as long as the longestQueues is tracked', () => {
    const { band } = makeBand();
    for (const [sequence, who] of ['a', 'b', 'b'].entries()) addTo(band, who, sequence);
    expect(band.longestQueues).toBeUndefined();
    band.track(false, true);
    expect(band.longestQueues?.most('requests')?.name).toBe('b');
    for (let i = 0; i < 3; i++) band.take(band.next(0) as Exclude<ReturnType<PriorityBand['next']>, undefined>, 0);
    expect(band.longestQueues?.most('requests')).toBeUndefined();
    band.track(false, false);
    expect(band.longestQueues).toBeUndefined();
  });

  it.each([
    ['in their own queues', {}],
    ['in one queue', { fairness: globalStrict() }],
  ])('gives its requests newest first, those that wait %s', (_, settings) => {
    const { band } = makeBand(settings);
    for (let sequence = 0; sequence < 3; sequence++) addTo(band, 'a', sequence);
    band.track(false, true);
    expect([...(band.longestQueues?.newestFirst(flowOf(band, 'a')) ?? [])].map(({ sequence }) => sequence)).toEqual([
      2, 1, 0,
    ]);
  });
});

it('rates are averages over windows of a second, each of which is closed by a sample', () => {
  const { band } = makeBand();
  band.traffic.arrived = 10;
  band.traffic.dispatched = 20;
  band.traffic.sample(1000);
  expect([band.traffic.arrivedPerSecond(2000), band.traffic.dispatchedPerSecond(2000)]).toEqual([7, 14]);
});

describe('a flow that is held back', () => {
  const holding = { holdsFlows: true, fairness: globalStrict() };

  it('is let out before one of its class that came later, though that one is out already', () => {
    const { band } = makeBand(holding);
    const hold = (sequence: number): Flow => {
      const { flow } = addTo(band, `came ${sequence}`, sequence, { requestClass: 'm' });
      band.setAside(flow as Flow);
      return flow as Flow;
    };
    const late = hold(5);
    const held = late.contendsIn;
    band.letIn(late);
    hold(9);
    expect(held?.firsts(0).next().value).toBe(late);
    const first = hold(1);
    expect(held?.firsts(0).next().value).toBe(first);
    band.letIn(first);
    expect(drained(band)).toEqual([1, 5]);
  });

  it.each(['goes', 'leaves'])('contends no longer when its last request %s', (how) => {
    const { band } = makeBand(holding);
    const items = [0, 1].map((sequence) => addTo(band, 'a', sequence, { requestClass: 'm' }));
    const flow = flowOf(band, 'a');
    band.setAside(flow);
    band.letIn(flow);
    for (const item of items) {
      expect(flow.contendsIn).toBeDefined();
      item.isWaiting = how === 'goes';
      if (how === 'goes') band.take(item, 0);
      else band.discard(item, 0);
    }
    expect([flow.contendsIn, band.aside.heldClasses(), band.waiting]).toEqual([undefined, [], 0]);
  });

  it('is active again when its first request is of another class, and when it is parked', () => {
    const { band } = makeBand({ ...holding, parksFlows: true });
    const first = addTo(band, 'a', 0, { requestClass: 'm' });
    addTo(band, 'a', 1, { requestClass: 'n' });
    const flow = flowOf(band, 'a');
    band.setAside(flow);
    first.isWaiting = false;
    band.discard(first, 0);
    expect([flow.isHeld, flow.contendsIn, band.active.size, band.aside.waiting.held]).toEqual([false, undefined, 1, 0]);
    band.setAside(flow);
    band.letIn(flow);
    band.setAside(flow, cap());
    expect([flow.contendsIn, band.aside.heldClasses(), band.aside.waiting.parked]).toEqual([undefined, [], 1]);
  });

  it('takes turns with others of its class where its fairness policy has no order for them', () => {
    const { band } = makeBand({ holdsFlows: true, fairness: watching() });
    for (const [sequence, who] of ['a', 'a', 'b', 'b'].entries()) addTo(band, who, sequence, { requestClass: 'm' });
    const order: string[] = [];
    for (const who of ['a', 'b']) band.setAside(flowOf(band, who));
    const held = flowOf(band, 'a').contendsIn;
    for (let i = 0; i < 4; i++) {
      const flow = held?.firsts(0).next().value as Flow;
      band.letIn(flow);
      order.push(flow.name);
      band.take(flow.head as NonNullable<typeof flow.head>, 0);
      if (flow.waiting > 0) band.setAside(flow);
    }
    expect(order).toEqual(['a', 'b', 'a', 'b']);
  });
});

describe('policies', () => {
  it('that do not tell flows apart hear nothing of requests whose ends an ordering policy wants to hear', () => {
    const { band, faults } = makeBand({ fairness: globalStrict(), ordering: { ...fcfs(), firstToken() {} } });
    const item = addTo(band, 'a', 0);
    const flow = item.flow as Flow;
    expect([
      band.policies.hearsDispatches,
      band.policies.hearsSettlements,
      band.policies.ordering.hearsFirstTokens,
    ]).toEqual([true, true, true]);
    band.policies.selector?.dispatched(flow, item, 0);
    band.policies.selector?.consumed(flow, usage, 0, item, usage);
    band.policies.selector?.settled(flow, usage, 0, 0, item, 'released');
    expect([
      faults,
      band.policies.selector?.lead(flow),
      band.policies.selector?.service(0),
      band.policies.selector?.keepsAccount,
    ]).toEqual([[], undefined, undefined, undefined]);
  });

  it('that keep account of what flows received are asked for it', () => {
    const share = { settled: 1, received: 2, owed: 3 };
    const figures = { windowMs: 9, fairnessIndex: 0.5, flows: [{ fairnessId: 'a', ...share }], others: share };
    const telling = { ...watching({ lead: () => 5, service: () => figures, ignoredReports: 7 }), fairnessIndex: 0.25 };
    const { band, faults } = makeBand({ fairness: telling });
    const flow = addTo(band, 'a', 0).flow as Flow;
    expect([
      band.policies.selector?.keepsAccount,
      band.policies.selector?.lead(flow),
      band.policies.selector?.service(0),
      band.policies.selector?.fairnessIndex,
    ]).toEqual([true, 5, figures, 0.25]);
    expect(band.policies.ignoredReports).toBe(7);
    // Those of the policy before stay in the count.
    band.configure({ ...bandSettings, fairness: { ...telling } });
    expect([band.policies.ignoredReports, faults]).toEqual([14, []]);
    const silent = makeBand({ fairness: watching() }).band;
    expect([
      silent.policies.selector?.keepsAccount,
      silent.policies.selector?.lead(flow),
      silent.policies.selector?.service(0),
      silent.policies.selector?.fairnessIndex,
      silent.policies.ignoredReports,
    ]).toEqual([...[false, undefined, undefined, undefined, 0]]);
  });

  it('that hear of nothing but picks are not told of requests that never waited', () => {
    const { band } = makeBand({ fairness: watching() });
    expect([
      band.policies.hearsDispatches,
      band.policies.hearsSettlements,
      band.policies.ordering.hearsFirstTokens,
    ]).toEqual([false, false, false]);
  });

  it.each([
    ['yes', 'ordering late: TypeError: isInfeasible must return true or false; got '],
    [undefined, 'ordering late: TypeError: isInfeasible must return true or false; got undefined'],
  ])('that answer %j when asked whether a request comes too late drop nothing', (answer, fault) => {
    const ordering = { ...newestFirst, type: 'late', isInfeasible: () => answer as unknown as boolean };
    const { band, faults } = makeBand({ ordering });
    expect([band.policies.ordering.dropsInfeasible, band.policies.ordering.isInfeasible(fakeItem(), 0)]).toEqual([
      true,
      false,
    ]);
    expect(faults).toEqual([expect.stringContaining(fault)]);
  });

  it('that fail at a first token are reported, at once or later', async () => {
    const failing = (answer: () => unknown) =>
      makeBand({ ordering: { ...newestFirst, firstToken: answer as () => void } });
    const thrown = failing(() => {
      throw new Error('now');
    });
    thrown.band.policies.ordering.firstToken(fakeItem(), 5);
    expect(thrown.faults).toEqual(['ordering newest-first: Error: now']);
    const rejected = failing(() => Promise.reject(new Error('later')));
    rejected.band.policies.ordering.firstToken(fakeItem(), 5);
    await new Promise(setImmediate);
    expect(rejected.faults).toEqual(['ordering newest-first: Error: later']);
  });
});

describe('other settings', () => {
  it('line up what waits by another order, under the same selector', () => {
    const fairness = watching();
    const { band } = makeBand({ fairness });
    for (let sequence = 0; sequence < 3; sequence++) addTo(band, 'a', sequence);
    band.configure({ ...bandSettings, fairness, ordering: newestFirst });
    expect([fairness.made, drained(band)]).toEqual([1, [2, 1, 0]]);
  });

  it('without another policy change no order, and make nothing anew', () => {
    const fairness = watching();
    const { band } = makeBand({ fairness });
    addTo(band, 'a', 0);
    const { queue } = flowOf(band, 'a');
    band.configure({ ...bandSettings, fairness, requestTtlMs: 5 });
    expect([fairness.made, flowOf(band, 'a').queue === queue]).toEqual([1, true]);
  });

  it.each([true, false])('after which flows queue apart, or together, keep the order: %s', (isApart) => {
    const before = { ...bandSettings, fairness: globalStrict(), holdsFlows: !isApart };
    const { band } = makeBand(before);
    for (const [sequence, who] of ['b', 'a', 'b'].entries()) addTo(band, who, sequence);
    band.configure({ ...before, holdsFlows: isApart });
    expect(band.sharedQueue !== undefined).toBe(!isApart);
    const { queue } = flowOf(band, 'a');
    expect([queue !== undefined, (band.sharedQueue ?? queue)?.members().length]).toEqual([isApart, isApart ? 1 : 3]);
    expect(drained(band)).toEqual([0, 1, 2]);
  });

  it('let held flows go, which take their turn again', () => {
    const { band } = makeBand({ holdsFlows: true });
    for (const [sequence, who] of ['a', 'b'].entries()) addTo(band, who, sequence);
    band.setAside(flowOf(band, 'a'));
    band.configure({ ...bandSettings, holdsFlows: true });
    expect([band.aside.heldClasses(), band.aside.waiting.held, drained(band)]).toEqual([[], 0, [1, 0]]);
  });
});

describe('requests that are filed anew', () => {
  function refiled(selector: Partial<FlowSelector> = {}, isLongestTracked = false) {
    const { band } = makeBand({ fairness: watching(selector) });
    for (const [sequence, who] of ['a', 'a', 'b'].entries()) addTo(band, who, sequence);
    band.track(false, isLongestTracked);
    const emptied: string[] = [];
    band.rebuildQueues(
      ({ sequence }) => flowOf(band, sequence === 1 ? 'c' : 'd'),
      ({ name }) => emptied.push(name),
    );
    return { band, emptied };
  }

  it('leave their flows, all of which are emptied before the first is filled', () => {
    const { band, emptied } = refiled();
    expect(emptied).toEqual(['a', 'b']);
    expect([...band.flows.values()].map(({ name, waiting, waitingBytes }) => [name, waiting, waitingBytes])).toEqual([
      ['a', 0, 0],
      ['b', 0, 0],
      ['d', 2, 2],
      ['c', 1, 1],
    ]);
    expect([band.waiting, drained(band)]).toEqual([3, [0, 2, 1]]);
  });

  it('are told to the selector, as gone from where they were and come where they are', () => {
    const told: unknown[] = [];
    const tell =
      (news: string) =>
      ({ fairnessId }: { readonly fairnessId: string }, item: ItemView): void =>
        void told.push([news, fairnessId, item.sequence]);
    refiled({ itemRemoved: tell('removed'), itemAdded: tell('added') });
    expect(told.slice(3)).toEqual([
      ['removed', 'a', 0],
      ['removed', 'a', 1],
      ['removed', 'b', 2],
      ['added', 'd', 0],
      ['added', 'c', 1],
      ['added', 'd', 2],
    ]);
  });

  it('stay in the one queue of a band whose policy tells no flows apart', () => {
    const { band } = makeBand({ fairness: globalStrict() });
    for (const [sequence, who] of ['a', 'b'].entries()) addTo(band, who, sequence);
    band.rebuildQueues(
      () => flowOf(band, 'c'),
      () => {},
    );
    expect([band.active.size, flowOf(band, 'c').waiting, drained(band)]).toEqual([1, 2, [0, 1]]);
  });

  it('make the longestQueues anew, where there is one', () => {
    expect(refiled({}, true).band.longestQueues?.most('requests')?.name).toBe('d');
    expect(refiled({}, false).band.longestQueues).toBeUndefined();
  });
});
