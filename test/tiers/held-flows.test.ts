import { describe, expect, it } from 'vitest';
import type { FlowSelector } from '../../src/tiers/2-fairness/fairness-policy.js';
import { GuardedSelector } from '../../src/tiers/2-fairness/guarded-selector.js';
import { roundRobin } from '../../src/tiers/2-fairness/round-robin.js';
import { Flow } from '../../src/tiers/flow.js';
import { type HeldClass, HeldFlows } from '../../src/tiers/held-flows.js';
import type { PriorityBand } from '../../src/tiers/priority-band.js';
import type { WaitingItem } from '../../src/tiers/waiting-item.js';

const noErrors = { pluginFailed: () => {} };

/** A flow with so many requests waiting, of which the first is of a class. */
function flowWith(name: string, waiting = 1, requestClass = 'm'): Flow {
  const flow = new Flow(name, name, { priority: 3 } as PriorityBand, undefined);
  Object.defineProperty(flow, 'head', {
    get: () => (flow.waiting > 0 ? { requestClass } : undefined),
    configurable: true,
  });
  flow.waiting = waiting;
  flow.waitingBytes = 10 * waiting;
  return flow;
}

/** Held flows that are told apart by a selector; `turns` counts how often one was made. */
function make(selector?: FlowSelector): { held: HeldFlows; made: () => number } {
  let made = 0;
  const held = new HeldFlows(3, (flows) => {
    made++;
    const policy = selector === undefined ? roundRobin() : { type: 'given', createSelector: () => selector };
    return new GuardedSelector(policy, flows, noErrors);
  });
  return { held, made: () => made };
}

function holdAll(held: HeldFlows, ...flows: readonly Flow[]): HeldClass {
  for (const flow of flows) held.hold(flow);
  return flows[0]?.contendsIn as HeldClass;
}

function letOut(held: HeldFlows, inClass: HeldClass): string | undefined {
  const first = inClass.first(0);
  if (first === undefined) return undefined;
  held.release(first);
  return first.name;
}

function namesOf(flows: Iterable<Flow>): string[] {
  return [...flows].map(({ name }) => name);
}

describe('HeldFlows', () => {
  it('counts flows and their requests over all classes', () => {
    const { held } = make();
    holdAll(held, flowWith('a', 2), flowWith('b', 3), flowWith('c', 5, 'n'));
    expect([held.flowCount, held.waiting, namesOf(held.flows())]).toEqual([3, 10, ['a', 'b', 'c']]);
    expect(held.all().map(({ requestClass }) => requestClass)).toEqual(['m', 'n']);
    held.added();
    held.left();
    held.left();
    expect(held.waiting).toBe(9);
  });

  it('keeps a class while flows contend in it, also those that were let out', () => {
    const { held } = make();
    const [a, b] = [flowWith('a'), flowWith('b')];
    const inClass = holdAll(held, a, b);
    held.release(a);
    expect([a.isHeld, a.heldIn, a.contendsIn, namesOf(inClass.flows)]).toEqual([false, undefined, inClass, ['b']]);
    held.leave(a);
    expect([a.contendsIn, held.all()]).toEqual([undefined, [inClass]]);
    held.release(b);
    held.leave(b);
    expect([held.all(), held.waiting, held.flowCount]).toEqual([[], 0, 0]);
  });

  it('asks for no order while one flow contends in a class', () => {
    const { held, made } = make();
    const a = flowWith('a');
    const inClass = holdAll(held, a, flowWith('b', 1, 'n'));
    expect([made(), inClass.first(0)]).toEqual([0, a]);
    held.hold(flowWith('c'));
    expect(made()).toBe(1);
  });

  it('asks the order who goes first, and does not let out another while that one is out', () => {
    const { held } = make();
    const [a, b] = [flowWith('a', 2), flowWith('b', 2)];
    const inClass = holdAll(held, a, b);
    expect([letOut(held, inClass), inClass.first(0)]).toEqual(['a', a]);
    a.waiting--;
    inClass.dispatched(a, {} as WaitingItem, 0);
    expect(inClass.first(0)).toBe(b);
    held.hold(a);
    expect(namesOf(inClass.flows)).toEqual(['b', 'a']);
  });

  it('is a band to the order: the flows that contend, and what waits in them', () => {
    const { held } = make();
    const [a, b] = [flowWith('a', 2), flowWith('b', 3)];
    const inClass = holdAll(held, a, b);
    held.release(a);
    expect([inClass.priority, inClass.waiting, inClass.waitingBytes]).toEqual([3, 5, 50]);
    expect([inClass.firstActive, namesOf(inClass.activeFlows())]).toEqual([a, ['a', 'b']]);
    expect([a, flowWith('a'), undefined].map((flow) => inClass.isActiveFlow(flow))).toEqual([true, false, false]);
  });

  it('tells the order who comes and goes, and of their requests', () => {
    const told: string[] = [];
    const item = { sequence: 7 } as WaitingItem;
    const order: FlowSelector = {
      pick: () => undefined,
      flowActivated: ({ fairnessId }) => void told.push(`+${fairnessId}`),
      flowDeactivated: ({ fairnessId }, isParked) => void told.push(`-${fairnessId}${isParked ? ' waits' : ''}`),
      itemAdded: ({ fairnessId }) => void told.push(`${fairnessId} more`),
      itemRemoved: ({ fairnessId }) => void told.push(`${fairnessId} fewer`),
      dispatched: ({ fairnessId }) => void told.push(`${fairnessId} went`),
      flowRemoved: ({ fairnessId }) => void told.push(`${fairnessId} gone`),
    };
    const { held } = make(order);
    const [a, b, c] = [flowWith('a', 2), flowWith('b'), flowWith('c', 2)];
    const inClass = holdAll(held, a, b, c);
    held.release(a);
    inClass.itemAdded(a, item);
    a.waiting = 0;
    inClass.dispatched(a, item, 0);
    held.leave(a);
    held.release(b);
    b.waiting = 0;
    inClass.itemRemoved(b, item);
    held.leave(b);
    held.release(c);
    inClass.dispatched(c, item, 0);
    inClass.itemRemoved(c, item);
    held.leave(c);
    expect(told.join(', ')).toBe(
      '+a, +b, +c, a more, -a, a went, a gone, -b, b fewer, b gone, c went, c fewer, -c waits, c gone',
    );
  });

  it('lets the longest held go first where the order fails', () => {
    const { held } = make({ pick: () => undefined });
    const inClass = holdAll(held, flowWith('a'), flowWith('b'));
    expect([1, 2, 3].map(() => letOut(held, inClass))).toEqual(['a', 'b', undefined]);
  });

  it('moves a flow whose first request is of another class now', () => {
    const { held } = make();
    const [a, b] = [flowWith('a'), flowWith('b')];
    const inClass = holdAll(held, a, b);
    held.release(a);
    Object.defineProperty(a, 'head', { get: () => ({ requestClass: 'n' }) });
    held.hold(a);
    expect([a.heldIn?.requestClass, namesOf(inClass.contenders)]).toEqual(['n', ['b']]);
  });

  it('leaves alone a flow that is not held, and one that contends nowhere', () => {
    const { held } = make();
    holdAll(held, flowWith('a', 4));
    const stranger = flowWith('stranger');
    held.release(stranger);
    held.leave(stranger);
    expect([held.waiting, held.flowCount, held.all().length]).toEqual([4, 1, 1]);
  });

  it('clear forgets every class, and nobody contends any more', () => {
    const { held } = make();
    const [a, b] = [flowWith('a'), flowWith('b', 1, 'n')];
    holdAll(held, a, b);
    for (const flow of [a, b]) held.release(flow);
    held.clear();
    expect([held.all(), a.contendsIn, b.contendsIn, held.waiting]).toEqual([[], undefined, undefined, 0]);
  });
});
