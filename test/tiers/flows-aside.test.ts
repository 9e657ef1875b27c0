import { describe, expect, it } from 'vitest';
import type { FlowSelector } from '../../src/tiers/2-fairness/fairness-policy.js';
import { GuardedSelector } from '../../src/tiers/2-fairness/guarded-selector.js';
import { roundRobin } from '../../src/tiers/2-fairness/round-robin.js';
import type { WaitingItem } from '../../src/tiers/flow.js';
import { Flow } from '../../src/tiers/flow.js';
import { FlowsAside, type HeldClass, type Reason } from '../../src/tiers/flows-aside.js';
import type { PriorityBand } from '../../src/tiers/priority-band.js';

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

function hold(aside: FlowsAside, flow: Flow): void {
  aside.add(flow, aside.contend(flow));
}

/** Flows aside that are told apart by a selector; `turns` counts how often one was made. */
function make(selector?: FlowSelector): { aside: FlowsAside; made: () => number } {
  let made = 0;
  const aside = new FlowsAside(3, (flows) => {
    made++;
    const policy = selector === undefined ? roundRobin() : { type: 'given', createSelector: () => selector };
    return [new GuardedSelector(policy, flows, noErrors)];
  });
  return { aside, made: () => made };
}

function holdAll(aside: FlowsAside, ...flows: readonly Flow[]): HeldClass {
  for (const flow of flows) hold(aside, flow);
  return flows[0]?.contendsIn as HeldClass;
}

function letIn(aside: FlowsAside, inClass: HeldClass): string | undefined {
  const [first] = inClass.firsts(0);
  if (first === undefined) return undefined;
  aside.remove(first);
  return first.name;
}

function namesOf(flows: Iterable<Flow>): string[] {
  return [...flows].map(({ name }) => name);
}

describe('FlowsAside', () => {
  it('counts flows and their requests over all classes', () => {
    const { aside } = make();
    const a = flowWith('a', 2);
    const inClass = holdAll(aside, a, flowWith('b', 3), flowWith('c', 5, 'n'));
    expect([aside.flows.size, aside.waiting.held, namesOf(aside.flows)]).toEqual([3, 10, ['a', 'b', 'c']]);
    expect(aside.heldClasses().map(({ requestClass }) => requestClass)).toEqual(['m', 'n']);
    aside.itemAdded(inClass);
    for (let i = 0; i < 2; i++) {
      a.waiting--;
      aside.itemLeft(a, inClass);
    }
    expect([aside.waiting.held, a.isHeld, aside.flows.size]).toEqual([9, false, 2]);
  });

  it('keeps a class while flows contend in it, also those that were let out', () => {
    const { aside } = make();
    const [a, b] = [flowWith('a'), flowWith('b')];
    const inClass = holdAll(aside, a, b);
    aside.remove(a);
    expect([a.isHeld, a.waitsFor, a.contendsIn, namesOf(inClass.flows)]).toEqual([false, undefined, inClass, ['b']]);
    aside.leave(a);
    expect([a.contendsIn, aside.heldClasses()]).toEqual([undefined, [inClass]]);
    aside.remove(b);
    aside.leave(b);
    expect([aside.heldClasses(), aside.waiting.held, aside.flows.size]).toEqual([[], 0, 0]);
  });

  it('asks for no order while one flow contends in a class', () => {
    const { aside, made } = make();
    const a = flowWith('a');
    const inClass = holdAll(aside, a, flowWith('b', 1, 'n'));
    expect([made(), inClass.firsts(0).next().value]).toEqual([0, a]);
    hold(aside, flowWith('c'));
    expect(made()).toBe(1);
  });

  it('asks the order who goes first, and does not let out another while that one is out', () => {
    const { aside } = make();
    const [a, b] = [flowWith('a', 2), flowWith('b', 2)];
    const inClass = holdAll(aside, a, b);
    expect([letIn(aside, inClass), inClass.firsts(0).next().value]).toEqual(['a', a]);
    a.waiting--;
    inClass.dispatched(a, {} as WaitingItem, 0);
    expect(inClass.firsts(0).next().value).toBe(b);
    hold(aside, a);
    expect(namesOf(inClass.flows)).toEqual(['b', 'a']);
  });

  it('is a band to the order: the flows that contend, and what waits in them', () => {
    const { aside } = make();
    const [a, b] = [flowWith('a', 2), flowWith('b', 3)];
    const inClass = holdAll(aside, a, b);
    aside.remove(a);
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
    const { aside } = make(order);
    const [a, b, c] = [flowWith('a', 2), flowWith('b'), flowWith('c', 2)];
    const inClass = holdAll(aside, a, b, c);
    aside.remove(a);
    inClass.itemAdded(a, item);
    a.waiting = 0;
    inClass.dispatched(a, item, 0);
    aside.leave(a);
    aside.remove(b);
    b.waiting = 0;
    inClass.itemRemoved(b, item);
    aside.leave(b);
    aside.remove(c);
    inClass.dispatched(c, item, 0);
    inClass.itemRemoved(c, item);
    aside.leave(c);
    expect(told.join(', ')).toBe(
      '+a, +b, +c, a more, -a, a went, a gone, -b, b fewer, b gone, c went, c fewer, -c waits, c gone',
    );
  });

  it('lets the longest held go first where the order fails', () => {
    const { aside } = make({ pick: () => undefined });
    const inClass = holdAll(aside, flowWith('a'), flowWith('b'));
    expect([1, 2, 3].map(() => letIn(aside, inClass))).toEqual(['a', 'b', undefined]);
  });

  it('moves a flow whose first request is of another class now', () => {
    const { aside } = make();
    const [a, b] = [flowWith('a'), flowWith('b')];
    const inClass = holdAll(aside, a, b);
    aside.remove(a);
    Object.defineProperty(a, 'head', { get: () => ({ requestClass: 'n' }) });
    hold(aside, a);
    expect([a.isHeld, a.contendsIn?.requestClass, namesOf(inClass.contenders)]).toEqual([true, 'n', ['b']]);
  });

  it('leaves alone a flow that is not held, and one that contends nowhere', () => {
    const { aside } = make();
    holdAll(aside, flowWith('a', 4));
    const stranger = flowWith('stranger');
    aside.remove(stranger);
    aside.leave(stranger);
    expect([aside.waiting.held, aside.flows.size, aside.heldClasses().length]).toEqual([4, 1, 1]);
  });

  it('clear forgets every class, and nobody contends any more', () => {
    const { aside } = make();
    const [a, b] = [flowWith('a'), flowWith('b', 1, 'n')];
    holdAll(aside, a, b);
    for (const flow of [a, b]) aside.remove(flow);
    aside.clear();
    expect([aside.heldClasses(), a.contendsIn, b.contendsIn, aside.waiting.held]).toEqual([
      [],
      undefined,
      undefined,
      0,
    ]);
  });
});

describe('flows that are parked', () => {
  const cap = (): Reason => ({ kind: 'parked', flows: new Set() });

  it('stand in the order in which they were set aside, and in what they wait for', () => {
    const { aside } = make();
    const [one, other] = [cap(), cap()];
    const [a, b, c, d] = [flowWith('a', 2), flowWith('b', 3), flowWith('c', 5), flowWith('d', 7)];
    aside.add(a, one);
    aside.add(b, other);
    holdAll(aside, d);
    aside.add(c, one);
    expect([namesOf(aside.flows), aside.of('parked'), aside.of('held')]).toEqual([
      ['a', 'b', 'd', 'c'],
      [a, b, c],
      [d],
    ]);
    expect(aside.waiting).toEqual({ held: 7, parked: 10 });
    expect([[...one.flows], [...other.flows]]).toEqual([[a, c], [b]]);
    expect([a.waitsFor, b.waitsFor, a.isParked, a.isHeld, d.isParked]).toEqual([one, other, true, false, false]);
  });

  it('are in neither any more when they are let go', () => {
    const { aside } = make();
    const one = cap();
    const [a, b] = [flowWith('a', 2), flowWith('b', 3)];
    for (const flow of [a, b]) aside.add(flow, one);
    aside.remove(a);
    expect([aside.waiting.parked, [...aside.flows], [...one.flows], a.waitsFor]).toEqual([3, [b], [b], undefined]);
    aside.remove(b);
    expect([aside.waiting.parked, aside.flows.size, one.flows.size]).toEqual([0, 0, 0]);
  });
});
