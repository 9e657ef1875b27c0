import { describe, expect, it } from 'vitest';
import { textHash } from '../../../../src/base/text-hash.js';
import { Share, type ShareGroup } from '../../../../src/tiers/2-fairness/by-cost/share.js';
import { shareOrder } from '../../../../src/tiers/2-fairness/by-cost/share-orders.js';
import { VirtualCounters } from '../../../../src/tiers/2-fairness/by-cost/virtual-counters.js';
import { fakeItem } from '../../../support/fake-item.js';
import { FakeFlow } from './fake-band.js';

const make = (): Share => new Share('acme', {} as ShareGroup);

function flow(...sequences: number[]): FakeFlow {
  const made = new FakeFlow('acme', 1);
  made.queue.push(...sequences.map((sequence) => fakeItem({ sequence })));
  return made;
}

describe('the flows of a share', () => {
  it('begin with the first and end with the last', () => {
    const share = make();
    const [a, b, c] = [flow(), flow(), flow()];
    expect([a, b, c].map((each) => share.addFlow(each))).toEqual([true, false, false]);
    expect([a, c].map((each) => share.removeFlow(each))).toEqual([false, false]);
    expect([share.flow, share.moreFlows]).toEqual([b, undefined]);
    expect([share.removeFlow(b), share.flow]).toEqual([true, undefined]);
    expect(share.addFlow(c)).toBe(true);
  });

  it('are left by one that stands behind, without touching the others', () => {
    const share = make();
    const [a, b, c] = [flow(3), flow(2), flow(1)];
    for (const each of [a, b, c]) share.addFlow(each);
    expect(share.removeFlow(b)).toBe(false);
    expect([share.flow, share.moreFlows]).toEqual([a, [c]]);
  });

  it('do not end when one leaves that is not among them', () => {
    const share = make();
    const a = flow(1);
    share.addFlow(a);
    expect([share.removeFlow(flow(2)), share.flow]).toEqual([false, a]);
  });

  it('go by the arrival of their first requests; one without a request goes last', () => {
    const share = make();
    expect(share.firstFlow).toBeUndefined();
    const [a, b, c, empty] = [flow(5), flow(2, 9), flow(3), flow()];
    share.addFlow(empty);
    expect(share.firstFlow).toBe(empty);
    for (const each of [a, b, c]) share.addFlow(each);
    expect(share.firstFlow).toBe(b);
    share.removeFlow(b);
    expect(share.firstFlow).toBe(c);
    const late = flow();
    share.addFlow(late);
    expect(share.firstFlow).toBe(c);
  });
});

describe('a share', () => {
  it('begins with nothing, and outside of any order', () => {
    const siblings = {} as ShareGroup;
    const share = new Share('acme', siblings);
    expect([share.name, share.siblings]).toEqual(['acme', siblings]);
    expect(share).toMatchObject({ slot: -1, counter: 0, received: 0, unsettled: 0, weight: 1, turn: 0, visitedIn: -1 });
    expect(share).toMatchObject({ isActive: false, isOrphan: false, isForgotten: false });
    expect(share.hashOf('')).toBe(textHash('') | 0);
  });

  it('is idle while nothing waits below it, runs below it, is held back below it, or is remembered below it', () => {
    expect(make().isIdle).toBe(true);
    const isIdle = (state: Partial<Share>): boolean => Object.assign(make() as object, state as object as Share).isIdle;
    const states = [{ isActive: true }, { unsettled: 1 }, { heldFlows: 1 }, { members: { size: 1 } as ShareGroup }];
    expect(states.map(isIdle)).toEqual([false, false, false, false]);
    expect(isIdle({ members: { size: 0 } as ShareGroup })).toBe(true);
  });

  it('knows the hash of a fairness ID, of the last one and of any other', () => {
    const share = make();
    for (const id of ['a', 'a', 'b', 'a']) expect(share.hashOf(id)).toBe(textHash(id) | 0);
  });
});

describe('the order of shares by its name', () => {
  it('lifts to the floor, unless it is least service', () => {
    const floors = (['virtual-token-counter', 'start-time-fair-queueing', 'least-service'] as const).map(
      (name) => shareOrder(name).floor,
    );
    expect(floors).toEqual([0, 0, Number.NaN]);
  });

  it('is rounds or counters', () => {
    expect(shareOrder('deficit-round-robin')).not.toBeInstanceOf(VirtualCounters);
    expect(shareOrder('virtual-token-counter')).toBeInstanceOf(VirtualCounters);
  });
});
