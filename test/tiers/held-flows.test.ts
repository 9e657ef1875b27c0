import { describe, expect, it } from 'vitest';
import type { FlowSelector } from '../../src/tiers/2-fairness/fairness-policy.js';
import { Flow } from '../../src/tiers/flow.js';
import { HeldFlows } from '../../src/tiers/held-flows.js';
import type { PriorityBand } from '../../src/tiers/priority-band.js';

function flowWith(name: string, waiting = 1): Flow {
  const flow = new Flow(name, name, {} as PriorityBand, undefined);
  flow.waiting = waiting;
  return flow;
}

function namesOf(flows: Iterable<Flow>): string[] {
  return [...flows].map(({ name }) => name);
}

describe('HeldFlows', () => {
  it('counts flows and their requests over all classes', () => {
    const held = new HeldFlows();
    held.hold(flowWith('a', 2), 'm');
    held.hold(flowWith('b', 3), 'm');
    held.hold(flowWith('c', 5), undefined);
    expect([held.flowCount, held.waiting, namesOf(held.flows())]).toEqual([3, 10, ['a', 'b', 'c']]);
    expect(held.all().map(({ requestClass }) => requestClass)).toEqual(['m', undefined]);
  });

  it('forgets a class with its last flow', () => {
    const held = new HeldFlows();
    const [a, b] = [flowWith('a'), flowWith('b')];
    held.hold(a, 'm');
    held.hold(b, 'm');
    held.release(a);
    expect(held.all()).toHaveLength(1);
    held.release(b);
    expect([held.all(), held.waiting, held.flowCount]).toEqual([[], 0, 0]);
  });

  it('keeps a class while a flow of it retries, and forgets it when that is over', () => {
    const held = new HeldFlows();
    const a = flowWith('a');
    held.hold(a, 'm');
    const [heldClass] = held.all();
    expect(held.retryOne(heldClass!, 0)).toBe(a);
    expect([held.all(), heldClass?.retrying, a.retriesFor, a.heldIn]).toEqual([[heldClass], a, heldClass, undefined]);
    held.retried(a);
    expect([held.all(), heldClass?.retrying, a.retriesFor]).toEqual([[], undefined, undefined]);
  });

  it('keeps a class whose retry is over while other flows of it are held', () => {
    const held = new HeldFlows();
    const [a, b] = [flowWith('a'), flowWith('b')];
    held.hold(a, 'm');
    held.hold(b, 'm');
    const [heldClass] = held.all();
    held.retryOne(heldClass!, 0);
    held.retried(a);
    expect([held.all(), namesOf(held.flows())]).toEqual([[heldClass], ['b']]);
  });

  it('lets flows retry in the order in which they were held, and none when none is', () => {
    const held = new HeldFlows();
    for (const name of ['a', 'b']) held.hold(flowWith(name), 'm');
    const [heldClass] = held.all();
    expect([1, 2].map(() => held.retryOne(heldClass!, 0)?.name)).toEqual(['a', 'b']);
    const retrying = heldClass?.retrying;
    expect(held.retryOne(heldClass!, 0)).toBeUndefined();
    expect(heldClass?.retrying).toBe(retrying);
  });

  it('ends a retry of the flow that retried last alone', () => {
    const held = new HeldFlows();
    const [a, b] = [flowWith('a'), flowWith('b')];
    held.hold(a, 'm');
    held.hold(b, 'm');
    const [heldClass] = held.all();
    held.retryOne(heldClass!, 0);
    held.retryOne(heldClass!, 0);
    held.retried(a);
    expect(heldClass?.retrying).toBe(b);
    expect(held.all()).toEqual([heldClass]);
  });

  it('leaves alone a flow that is not held, and one that does not retry', () => {
    const held = new HeldFlows();
    held.hold(flowWith('a', 4), 'm');
    const stranger = flowWith('stranger');
    held.release(stranger);
    held.retried(stranger);
    expect([held.waiting, held.flowCount, held.all().length]).toEqual([4, 1, 1]);
  });

  it('does not take a class of the same name for one that it has forgotten', () => {
    const held = new HeldFlows();
    const [a, b] = [flowWith('a'), flowWith('b')];
    held.hold(a, 'm');
    const [old] = held.all();
    held.retryOne(old!, 0);
    held.clear();
    held.hold(b, 'm');
    a.retriesFor = old;
    held.retried(a);
    expect(namesOf(held.flows())).toEqual(['b']);
    expect(held.all()).toHaveLength(1);
  });

  it('clear forgets every class, and flows that retried for one do not any more', () => {
    const held = new HeldFlows();
    const [a, b] = [flowWith('a'), flowWith('b')];
    held.hold(a, 'm');
    held.hold(b, 'n');
    held.retryOne(held.all()[0]!, 0);
    held.release(b);
    held.hold(b, 'n');
    held.clear();
    expect([held.all(), a.retriesFor]).toEqual([[], undefined]);
  });

  it('asks a policy whose request comes first, where it was given one, and tells it who is held', () => {
    const told: string[] = [];
    const flows: Flow[] = [];
    const order: FlowSelector = {
      pick: () => flows.at(-1),
      flowActivated(flow) {
        flows.push(flow as Flow);
        told.push(`+${(flow as Flow).name}`);
      },
      flowDeactivated(flow) {
        flows.splice(flows.indexOf(flow as Flow), 1);
        told.push(`-${(flow as Flow).name}`);
      },
    };
    const held = new HeldFlows();
    for (const name of ['a', 'b', 'c']) held.hold(flowWith(name), 'm', () => order);
    expect(held.retryOne(held.all()[0]!, 0)?.name).toBe('c');
    expect(held.retryOne(held.all()[0]!, 0)?.name).toBe('b');
    expect(told).toEqual(['+a', '+b', '+c', '-c', '-b']);
  });

  it('takes a policy that wants to hear nothing, and that picks nothing', () => {
    const held = new HeldFlows();
    for (const name of ['a', 'b']) held.hold(flowWith(name), 'm', () => ({ pick: () => undefined }));
    expect(held.retryOne(held.all()[0]!, 0)?.name).toBe('a');
  });
});
