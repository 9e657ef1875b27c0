import { describe, expect, it } from 'vitest';
import { FlowTable, type FlowTableSettings } from '../../src/tiers/band-registry.js';
import type { Flow, FlowProfile } from '../../src/tiers/flow.js';
import { makeBand } from '../support/bands.js';

function profile(weight: number): FlowProfile {
  return { weight, limits: undefined, maxInFlight: undefined };
}

const request = (fairnessId: string, requestClass?: string) => ({ fairnessId, requestClass });

function makeTable(own: Partial<FlowTableSettings> = {}) {
  const removed: string[] = [];
  const settings: FlowTableSettings = {
    maxFlows: 100,
    flowIdleTimeoutMs: 1000,
    flows: { size: 0, mayCap: false, get: () => undefined },
    holBlocking: 'none',
    ...own,
  };
  const table = new FlowTable(settings, (flow) => removed.push(flow.name));
  const { band } = makeBand();
  /** A flow that has work from its first instant on. */
  const busy = (name: string, nowMs = 0): Flow => {
    const flow = table.flowOf(band, request(name), nowMs);
    table.markBusy(flow);
    return flow;
  };
  return { table, band, settings, removed, busy };
}

describe('a flow', () => {
  it('is made once for each fairness ID, band and class', () => {
    const { table, band } = makeTable();
    const { band: other } = makeBand({}, 1);
    const flow = table.flowOf(band, request('a'), 0);
    expect(table.flowOf(band, request('a'), 5)).toBe(flow);
    const classes = [
      table.flowOf(band, request('a', 'm'), 0),
      table.flowOf(band, request('a', 'n'), 0),
      table.flowOf(other, request('a'), 0),
    ];
    expect(new Set([flow, ...classes]).size).toBe(4);
    expect(classes.map(({ fairnessId }) => fairnessId)).toEqual(['a', 'a', 'a']);
    expect(table.flowOf(band, request('a', 'm'), 0)).toBe(classes[0]);
    expect([table.size, band.flows.size, other.flows.size]).toEqual([4, 3, 1]);
  });

  it('serves all classes where they do not queue apart', () => {
    const { table, band } = makeTable({ holBlocking: 'flow' });
    expect(table.flowOf(band, request('a', 'm'), 0)).toBe(table.flowOf(band, request('a'), 0));
  });

  it('has the weight that is configured for it, else 1', () => {
    const flows = { size: 1, mayCap: false, get: (id: string) => (id === 'gold' ? profile(3) : undefined) };
    const { table, band } = makeTable({ flows });
    expect([
      table.flowOf(band, request('gold'), 0).weight,
      table.flowOf(band, request('gold', 'm'), 0).weight,
      table.flowOf(band, request('a'), 0).weight,
    ]).toEqual([3, 3, 1]);
  });

  it('takes its new weight when the settings are replaced', () => {
    const { table, band, settings } = makeTable();
    const flow = table.flowOf(band, request('gold'), 0);
    table.configure({ ...settings, flows: { size: 1, mayCap: false, get: () => profile(4) } }, [band]);
    expect([flow.weight, table.flowOf(band, request('new'), 0).weight]).toEqual([4, 4]);
  });

  it.each([false, true])(
    'takes its new weight alone when it is refreshed, in every band; by class: %s',
    (queuesByClass) => {
      let weight = 2;
      const { table, band } = makeTable({
        flows: { size: 1, mayCap: false, get: () => profile(weight) },
        holBlocking: queuesByClass ? 'none' : 'flow',
      });
      const { band: other } = makeBand({}, 1);
      const requestClass = queuesByClass ? 'm' : undefined;
      const own = [
        table.flowOf(band, request('a', requestClass), 0),
        table.flowOf(other, request('a', requestClass), 0),
      ];
      const stranger = table.flowOf(band, request('b', requestClass), 0);
      weight = 5;
      table.refresh('a', [band, other, makeBand({}, 2).band]);
      expect([...own.map((flow) => flow.weight), stranger.weight]).toEqual([5, 5, 2]);
    },
  );
});

describe('an idle flow', () => {
  it('is forgotten at the end of the timeout, not before, and by whoever rests next', () => {
    const { table, removed, busy } = makeTable();
    const [a, b] = [busy('a'), busy('b')];
    table.markIdle(a, 100);
    table.collect(1099);
    table.markIdle(b, 1099);
    expect(removed).toEqual([]);
    table.markBusy(b);
    table.markIdle(b, 1100);
    expect([removed, table.size]).toEqual([['a'], 1]);
    table.collect(2100);
    expect([removed, table.size]).toEqual([['a', 'b'], 0]);
  });

  it('is forgotten too where it never had work', () => {
    const { table, band, removed } = makeTable();
    table.flowOf(band, request('a'), 0);
    table.collect(999);
    expect(removed).toEqual([]);
    table.collect(1000);
    expect([removed, band.flows.size]).toEqual([['a'], 0]);
  });

  it('that got work again is not forgotten', () => {
    const { table, band, removed, busy } = makeTable();
    const flow = busy('a');
    const others = [busy('b'), busy('c')];
    for (const idle of [others[0]!, flow, others[1]!]) table.markIdle(idle, 0);
    expect(flow.isIdle).toBe(true);
    table.markBusy(flow);
    table.markBusy(flow);
    table.collect(5000);
    expect([removed, flow.isIdle, band.flows.get('a')]).toEqual([['b', 'c'], false, flow]);
  });

  it('is one of eight, at most, that are forgotten at a time', () => {
    const { table, band, removed } = makeTable();
    for (let i = 0; i < 20; i++) table.flowOf(band, request(`f${i}`), 0);
    table.collect(1000);
    expect(removed).toEqual(['f0', 'f1', 'f2', 'f3', 'f4', 'f5', 'f6', 'f7']);
    table.collect(1000);
    expect([removed.length, table.size]).toEqual([16, 4]);
  });
});

describe('a full table', () => {
  it('forgets the flow idle longest for a new one', () => {
    const { table, band, removed } = makeTable({ maxFlows: 2 });
    table.flowOf(band, request('a'), 0);
    table.flowOf(band, request('b'), 1);
    expect(table.flowOf(band, request('c'), 2).name).toBe('c');
    expect([removed, table.size]).toEqual([['a'], 2]);
  });

  it('has new fairness IDs share a flow without a profile of its own, the same one every time', () => {
    const { table, band, settings, busy } = makeTable({
      maxFlows: 1,
      flows: { size: 1, mayCap: false, get: () => profile(3) },
    });
    busy('a');
    const shared = busy('b');
    expect(shared.fairnessId).toBe(shared.name);
    expect([shared.name.startsWith('\u0000overflow-'), shared.weight]).toEqual([true, 1]);
    expect(table.flowOf(band, request('b'), 0)).toBe(shared);
    table.configure({ ...settings, flows: { size: 1, mayCap: false, get: () => profile(7) } }, [band]);
    expect(shared.weight).toBe(1);
  });

  it('has at most 64 flows that are shared in a band', () => {
    const { table, band, busy } = makeTable({ maxFlows: 1 });
    busy('a');
    for (let i = 0; i < 1000; i++) busy(`many-${i}`);
    expect([band.flows.size, table.size]).toEqual([65, 65]);
  });

  it('leaves a fairness ID where it shared as long as something waits there, though there is room again', () => {
    const { table, band, settings, busy, removed } = makeTable({ maxFlows: 2 });
    const others = [busy('a'), busy('c')];
    const shared = busy('b');
    shared.waiting = 1;
    table.configure({ ...settings, maxFlows: 100 }, [band]);
    expect(table.flowOf(band, request('b'), 0)).toBe(shared);
    for (const flow of others) table.markIdle(flow, 0);
    table.collect(1000);
    expect(removed).toEqual(['a', 'c']);
    expect(table.flowOf(band, request('b'), 1000)).toBe(shared);
    shared.waiting = 0;
    expect(table.flowOf(band, request('b'), 1000).name).toBe('b');
  });

  it('lets a fairness ID have a flow of its own once nothing waits where it shared', () => {
    const { table, band, settings, busy } = makeTable({ maxFlows: 1 });
    busy('a');
    const shared = busy('b');
    table.configure({ ...settings, maxFlows: 100 }, [band]);
    expect(shared.waiting).toBe(0);
    expect(table.flowOf(band, request('b'), 0).name).toBe('b');
  });

  it('that was made smaller forgets eight flows at a time, and has new ones share until it fits', () => {
    const { table, band, settings, removed } = makeTable();
    for (let i = 0; i < 20; i++) table.flowOf(band, request(`f${i}`), 0);
    table.configure({ ...settings, maxFlows: 5 }, [band]);
    expect(table.flowOf(band, request('new'), 0).name).not.toBe('new');
    expect(removed).toHaveLength(8);
    expect(table.flowOf(band, request('newer'), 0).name).not.toBe('newer');
    expect(table.flowOf(band, request('newest'), 0).name).toBe('newest');
  });
});

it('a name of 256 characters has a flow of its own, a longer one shares', () => {
  const { table, band } = makeTable();
  expect(table.flowOf(band, request('x'.repeat(256)), 0).name).toHaveLength(256);
  expect(table.flowOf(band, request('x'.repeat(257)), 0).name).toContain('overflow-');
});

it('a band that goes takes its flows with it, busy or idle, and leaves those of others', () => {
  const { table, band, removed, busy } = makeTable();
  const { band: other } = makeBand({}, 1);
  busy('a');
  table.flowOf(band, request('b'), 0);
  table.flowOf(other, request('c'), 0);
  table.removeAll(band);
  expect([removed, table.size, band.flows.size, other.flows.size]).toEqual([['a', 'b'], 1, 0, 1]);
  table.collect(1000);
  expect(removed).toEqual(['a', 'b', 'c']);
});
