import { describe, expect, it } from 'vitest';
import {
  type FlowController,
  type FlowControllerOptions,
  type Lease,
  overviewOf,
  roundRobin,
} from '../../../src/index.js';
import { engineOf } from '../../property/inside.js';
import { Random } from '../../property/random.js';
import { collectGarbage } from '../../support/collect-garbage.js';
import { dispatchOrder, key, leaseOf, makeFlow, request, runNow } from '../../support/flow.js';
import { FakeBand, usage } from './by-cost/fake-band.js';

interface Line {
  readonly flow: FlowController;
  /** Who went, in order. */
  readonly order: string[];
  join(...names: string[]): void;
  /** Serves so many. */
  serve(count?: number): string[];
}

function line(options: Pick<FlowControllerOptions, 'flows'> = {}): Line {
  const { flow } = makeFlow({ bands: [{ priority: 0, fairness: roundRobin() }], defaultRequestTtl: 0, ...options });
  let held: Lease = runNow(flow);
  const order = dispatchOrder(flow);
  flow.on('dispatched', ({ lease }) => {
    held = lease;
  });
  return {
    flow,
    order,
    join: (...names) => {
      for (const name of names) void flow.enqueue(request, key(name));
    },
    serve: (count = 1) => {
      const from = order.length;
      for (let i = 0; i < count; i++) held.release();
      return order.slice(from);
    },
  };
}

describe('roundRobin', () => {
  it('serves each flow once in a round, in the order in which they became active', () => {
    const { join, serve } = line();
    join('b', 'b', 'b', 'a', 'a', 'c');
    expect(serve(6)).toEqual(['b', 'a', 'c', 'b', 'a', 'b']);
  });

  it('serves one flow in the order of arrival', () => {
    const { flow, serve } = line();
    const sizes: number[] = [];
    flow.on('dispatched', ({ item }) => sizes.push(item.byteSize));
    for (const byteSize of [1, 2, 3]) for (const name of ['a', 'b']) void flow.enqueue({ byteSize }, key(name));
    serve(6);
    expect(sizes).toEqual([1, 1, 2, 2, 3, 3]);
  });

  it('lets a newcomer join the round that is on, behind those that wait', () => {
    const { join, serve } = line();
    join('a', 'a', 'b', 'b');
    serve();
    join('c', 'c');
    expect(serve(5)).toEqual(['b', 'c', 'a', 'b', 'c']);
  });

  it('does not let a flow that was served come back into the same round', () => {
    const { join, serve } = line();
    join('a', 'b', 'b', 'c', 'c');
    expect(serve()).toEqual(['a']);
    join('a');
    expect(serve(5)).toEqual(['b', 'c', 'a', 'b', 'c']);
  });

  it('takes in no more newcomers than the round began with flows', () => {
    const { join, serve } = line();
    join('a', 'a', 'b', 'b');
    serve();
    join('n1', 'n2', 'n3', 'n4');
    expect(serve(7)).toEqual(['b', 'n1', 'n2', 'a', 'n3', 'n4', 'b']);
  });

  it('goes on where it was when the flow that was served last is gone', () => {
    const { join, serve } = line();
    join('a', 'a', 'b', 'c', 'c');
    expect(serve(2)).toEqual(['a', 'b']);
    expect(serve(3)).toEqual(['c', 'a', 'c']);
  });

  it('skips a flow whose requests were cancelled, and loses no turn by it', () => {
    const { flow, join, serve } = line();
    const abort = new AbortController();
    join('a', 'a');
    void flow.enqueue({ ...request, signal: abort.signal }, key('b'));
    join('c', 'c');
    abort.abort();
    expect(serve(4)).toEqual(['a', 'c', 'a', 'c']);
  });

  it('is not starved by an endless stream of new fairness IDs', () => {
    const { join, order, serve } = line();
    join('old', 'old', 'old', 'old', 'old');
    for (let i = 0; i < 300; i++) {
      join(`new${i}`);
      serve();
    }
    const turns = order.flatMap((name, index) => (name === 'old' ? [index] : []));
    expect(turns).toHaveLength(5);
    // Never more than six flows wait at a time.
    for (const [i, turn] of turns.entries()) expect(turn - (turns[i - 1] ?? 0)).toBeLessThanOrEqual(2 * 6);
  });

  it('gives a light flow its turn however many requests a heavy one has', () => {
    const { join, serve } = line();
    join(...Array<string>(500).fill('heavy'));
    join('light', 'light');
    expect(serve(4)).toEqual(['heavy', 'light', 'heavy', 'light']);
  });

  it('serves every other flow at most once between two turns of a flow that keeps waiting', () => {
    for (let seed = 0; seed < 20; seed++) {
      const random = new Random(seed);
      const { flow, order, join, serve } = line();
      const names = Array.from({ length: 2 + random.int(12) }, (_, i) => `f${i}`);
      /** Since its last turn, for every flow that has waited without a break: who else was served. */
      const since = new Map<string, string[]>();
      const waiting = (): Set<string> =>
        new Set(overviewOf(flow, { flows: 'all' }).bands[0]?.flows.map(({ fairnessId }) => fairnessId));
      for (let step = 0; step < 200; step++) {
        if (random.chance(0.55)) join(random.pick(names));
        else if (random.chance(0.1)) join(...Array.from({ length: random.int(20) }, (_, i) => `burst${step}-${i}`));
        else if (waiting().size > 0) {
          const [served] = serve() as [string];
          for (const others of since.values()) others.push(served);
          since.delete(served);
          if (waiting().has(served)) since.set(served, []);
        }
        for (const [name, others] of since) {
          if (!waiting().has(name)) since.delete(name);
          else expect(others.length, `${name}: ${others.join(' ')}`).toBe(new Set(others).size);
        }
      }
      expect(order.length).toBeGreaterThan(20);
    }
  });

  it('shares within a percent between flows that always wait', () => {
    const { join, order, serve } = line();
    const names = Array.from({ length: 7 }, (_, i) => `f${i}`);
    for (let i = 0; i < 100; i++) join(...names);
    serve(693);
    const counts = names.map((name) => order.filter((other) => other === name).length);
    expect(counts).toEqual(Array(7).fill(99));
  });

  it('gives a flow that was collected and comes back in the same round no second turn', () => {
    const { flow, clock } = makeFlow({
      flowIdleTimeout: 10,
      defaultRequestTtl: 0,
      bands: [{ priority: 0, fairness: roundRobin() }],
    });
    let held: Lease = runNow(flow, { fairnessId: 'first' });
    const order = dispatchOrder(flow);
    flow.on('dispatched', ({ lease }) => {
      held = lease;
    });
    const comesBack = (): void => {
      clock.advance(20);
      flow.stats();
      void flow.enqueue(request, key('a'));
    };
    for (const name of ['a', 'b', 'b', 'c']) void flow.enqueue(request, key(name));
    held.release();
    comesBack();
    for (let i = 0; i < 3; i++) held.release();
    comesBack();
    for (let i = 0; i < 2; i++) held.release();
    expect(order).toEqual(['a', 'b', 'c', 'a', 'b', 'a']);
  });

  it('remembers no flow that was collected', async () => {
    const { flow, clock } = makeFlow({ flowIdleTimeout: '1m', bands: [{ priority: 0, fairness: roundRobin() }] });
    const known: WeakRef<object>[] = [];
    for (let i = 0; i < 50; i++) {
      const held = runNow(flow);
      const waiting = flow.enqueue(request, key(`f${i}`));
      known.push(new WeakRef(engineOf(flow).backlog.bands.get(0)?.flows.get(`f${i}`) as object));
      held.release();
      leaseOf(await waiting).release();
      clock.advance(60_000);
      flow.stats();
    }
    // A weak reference keeps its object until the event loop has turned.
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    expect(known.filter((each) => each.deref() !== undefined).length).toBeLessThan(5);
    await flow.close();
  });
});

describe('roundRobin with weights', () => {
  /** Who goes, where `a` has weight 3. */
  const weighted = (): Line => line({ flows: { a: { weight: 3 } } });

  it('serves as many requests of a flow in its turn as it has weight, in each round anew', () => {
    const { join, serve } = weighted();
    join(...'aaaaaaa', ...'bbb');
    expect(serve(10).join('')).toBe('aaabaaabab');
  });

  it('goes on with a turn that has not had its weight when the flow waits again in its round', () => {
    const { join, serve } = weighted();
    join('a', 'b', 'b', 'c');
    expect(serve(1)).toEqual(['a']);
    join('a', 'a', 'a');
    expect(serve(6).join('')).toBe('bcaaab');
  });
});

describe('the rounds of roundRobin', () => {
  /** `count` more requests of each name, one name after the other. */
  function add(band: FakeBand, names: string, count = 1): void {
    for (const name of names) for (let i = 0; i < count; i++) band.add(name);
  }
  const serve = (band: FakeBand, count: number): string =>
    Array.from({ length: count }, () => band.serve()?.flow.fairnessId ?? '-').join('');
  const make = () => new FakeBand(roundRobin());

  it('have nobody to pick while nothing waits', () => {
    expect(make().serve()).toBeUndefined();
  });

  it('know nothing of flows that never wait', () => {
    const band = make();
    band.settle(band.pass('a'), usage(1));
    band.collect(band.flow('a'), true);
    add(band, 'a');
    expect(serve(band, 2)).toBe('a-');
  });

  it('have places for as many newcomers as ever, however many of those that were served come back', () => {
    const band = make();
    add(band, 'abc');
    for (const name of 'ab') {
      serve(band, 1);
      add(band, name);
    }
    add(band, 'no');
    expect(serve(band, 5)).toBe('cnoab');
  });

  it('have the place of a newcomer free again that is held back before its turn', () => {
    const band = make();
    add(band, 'a', 3);
    serve(band, 1);
    add(band, 'n');
    band.hold('n');
    add(band, 'o');
    band.releaseHeld('n');
    expect(serve(band, 4)).toBe('oana');
  });

  it('have no place free for a newcomer that is held back after its turn', () => {
    const band = make();
    add(band, 'a', 3);
    serve(band, 1);
    add(band, 'n', 2);
    expect(serve(band, 1)).toBe('n');
    band.hold('n');
    add(band, 'o');
    expect(serve(band, 2)).toBe('ao');
  });

  it('have no place free for one that is held back and was no newcomer', () => {
    const band = make();
    add(band, 'ab', 3);
    serve(band, 1);
    band.hold('b');
    add(band, 'nop');
    expect(serve(band, 4)).toBe('noap');
  });

  it('take a flow for a newcomer that was collected, and was not served in the round that is on', () => {
    const band = make();
    add(band, 'x');
    band.settle(band.serve()!, usage(1));
    add(band, 'a', 4);
    serve(band, 2);
    band.collect(band.flow('x'), true);
    expect(band.flows.has('x')).toBe(false);
    add(band, 'x');
    expect(serve(band, 3)).toBe('xaa');
  });
});

it('roundRobin is no fault of a request that need not wait, nor of a flow that never did', () => {
  const { flow, clock } = makeFlow({ flowIdleTimeout: 10, bands: [{ priority: 0, fairness: roundRobin() }] });
  runNow(flow).release();
  clock.advance(20);
  expect(flow.stats()).toMatchObject({ flows: 0, pluginErrors: 0 });
  expect(roundRobin().type).toBe('round-robin-fairness-policy');
});
