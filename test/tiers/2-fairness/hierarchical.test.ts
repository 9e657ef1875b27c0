import { describe, expect, it } from 'vitest';
import { hierarchical } from '../../../src/index.js';
import type { Share } from '../../../src/tiers/2-fairness/by-cost/share.js';
import { Random } from '../../property/random.js';
import { byPrompt } from './by-cost/backlogged.js';
import { FakeBand, serveAll, treeOf, usage } from './by-cost/fake-band.js';

const twoLevels = {
  levels: ['virtual-token-counter', 'virtual-token-counter'] as ('virtual-token-counter' | 'deficit-round-robin')[],
};

/** What each fairness ID receives of `total` units while all of them keep requests waiting. */
function divide(
  policy: Parameters<typeof hierarchical>[0],
  names: readonly string[],
  total: number,
  costs = [10],
): Map<string, number> {
  const random = new Random(5);
  const band = new FakeBand(hierarchical({ ...byPrompt, ...policy }));
  const send = (name: string): void => void band.add(name, { tokens: random.pick(costs) });
  for (const name of names) for (let i = 0; i < 2; i++) send(name);
  const received = new Map<string, number>(names.map((name) => [name, 0]));
  for (let sum = 0; sum < total; ) {
    const served = band.serve();
    if (served === undefined) throw new Error('nothing was served');
    const { fairnessId } = served.flow;
    received.set(fairnessId, (received.get(fairnessId) as number) + served.item.tokens);
    sum += served.item.tokens;
    band.settle(served, usage(served.item.tokens));
    send(fairnessId);
  }
  return received;
}

function leavesOf(band: FakeBand): Share[] {
  return [...treeOf(band).shares()].filter(({ members }) => members === undefined);
}

describe('hierarchical', () => {
  it('gives an organisation one share, however many keys it has', () => {
    const received = divide(twoLevels, ['acme/1', 'acme/2', 'acme/3', 'globex/1'], 600);
    expect([...received.values()]).toEqual([100, 100, 100, 300]);
  });

  it('divides by weight at every level', () => {
    const received = divide(
      { weights: { acme: 2, 'acme/search': 3 } },
      ['acme/search/1', 'acme/search/2', 'acme/ads/1', 'globex/x/1'],
      2400,
    );
    expect([...received.values()]).toEqual([600, 600, 400, 800]);
  });

  it('leaves what a member does not use to its siblings', () => {
    const received = divide(twoLevels, ['acme/1', 'globex/1'], 400);
    expect([...received.values()]).toEqual([200, 200]);
  });

  it('takes a policy of the family at each level', () => {
    const names = ['acme/1', 'acme/2', 'globex/1'];
    for (const levels of [
      ['deficit-round-robin', 'virtual-token-counter'],
      ['least-service', 'deficit-round-robin'],
      ['start-time-fair-queueing', 'start-time-fair-queueing'],
    ] as const) {
      const received = divide({ levels: [...levels] }, names, 40_000, [1, 10, 100]);
      expect(Math.abs((received.get('globex/1') as number) - 20_000)).toBeLessThanOrEqual(300);
      expect(Math.abs((received.get('acme/1') as number) - (received.get('acme/2') as number))).toBeLessThanOrEqual(
        300,
      );
    }
  });

  it('keeps the bound of siblings at every level, one request of each', () => {
    const names = ['a/x/1', 'a/x/2', 'a/y/1', 'b/x/1', 'b/y/1', 'b/y/2'];
    const random = new Random(9);
    const band = new FakeBand(hierarchical(byPrompt));
    const send = (name: string): void => void band.add(name, { tokens: random.pick([1, 2, 5, 10, 50, 100]) });
    for (const name of names) for (let i = 0; i < 2; i++) send(name);
    const received = new Map<string, number>();
    const spans = new Map<string, { low: number; high: number }>();
    const pairs = [
      ['a', 'b'],
      ['a/x', 'a/y'],
      ['b/x', 'b/y'],
      ['a/x/1', 'a/x/2'],
      ['b/y/1', 'b/y/2'],
    ] as const;
    for (let i = 0; i < 5000; i++) {
      const served = band.serve();
      if (served === undefined) throw new Error('nothing was served');
      const parts = served.flow.fairnessId.split('/');
      for (let level = 1; level <= parts.length; level++) {
        const path = parts.slice(0, level).join('/');
        received.set(path, (received.get(path) ?? 0) + served.item.tokens);
      }
      band.settle(served, usage(served.item.tokens));
      send(served.flow.fairnessId);
      for (const [f, g] of pairs) {
        const difference = (received.get(f) ?? 0) - (received.get(g) ?? 0);
        const span = spans.get(f) ?? { low: 0, high: 0 };
        spans.set(f, { low: Math.min(span.low, difference), high: Math.max(span.high, difference) });
      }
    }
    for (const [f] of pairs) {
      const { low, high } = spans.get(f) as { low: number; high: number };
      expect(high - low).toBeLessThanOrEqual(200);
      expect(high - low).toBeGreaterThan(120);
    }
  });

  it('tells apart every fairness ID, whatever is in it', () => {
    // Each pair would be one share if names were joined, cut off or dropped.
    const ids = [
      'a',
      'a/',
      'a//',
      '/a',
      '/',
      '//',
      'a/b',
      'a/b/',
      'a/b/c',
      'a/b/c/d',
      'a/b/c/',
      'a/b/c/d/e',
      'a/b//c',
      'a//b',
      '=a',
      '',
      'a/=',
      'a/undefined',
      'undefined',
    ];
    for (const levels of [1, 2, 3, 4]) {
      const band = new FakeBand(
        hierarchical({ ...byPrompt, levels: Array.from({ length: levels }, () => 'virtual-token-counter' as const) }),
      );
      for (const id of ids) band.add(id);
      const tree = treeOf(band);
      const leaves = [...tree.shares()].filter(({ members }) => members === undefined);
      expect(leaves.length).toBe(ids.length);
    }
  });

  it('takes the path from a function, whose names may contain the separator', () => {
    const pathOf = (fairnessId: string): string[] => (fairnessId === 'x' ? ['a/b', 'c'] : ['a', fairnessId]);
    const received = divide({ ...twoLevels, pathOf }, ['x', 'y', 'z'], 400);
    expect([...received.values()]).toEqual([200, 100, 100]);
  });

  it.each([[() => []], [() => 'a/b' as never], [() => ['a', 1] as never], [() => JSON.parse('')]])(
    'makes an ID an organisation of its own when its path is none, and tells of it (%#)',
    (pathOf) => {
      const band = new FakeBand(hierarchical({ ...byPrompt, ...twoLevels, pathOf }));
      for (let i = 0; i < 2; i++) for (const name of ['a', 'b']) band.add(name);
      const order: (string | undefined)[] = [];
      let faults = 0;
      while (band.waiting > 0) {
        order.push(band.selector.pick(0)?.fairnessId);
        try {
          band.serve();
        } catch {
          faults++;
        }
      }
      expect(order).toEqual(['a', 'b', 'a', 'b']);
      expect(faults).toBeGreaterThan(0);
      expect(leavesOf(band)).toHaveLength(2);
    },
  );

  it('tells what a path must be when a function answers none', () => {
    const band = new FakeBand(hierarchical({ ...byPrompt, pathOf: () => [] }));
    expect(() => band.pass('a')).toThrowError('pathOf must return an array of one or more names; got []');
  });

  it('takes a weight for a path whose names contain the separator, where a function makes the paths', () => {
    const pathOf = (fairnessId: string): string[] => [fairnessId === 'x' ? 'a/b' : 'a', fairnessId];
    const received = divide({ ...twoLevels, pathOf, weights: { 'a/b': 3 } }, ['x', 'y'], 400);
    expect([...received.values()]).toEqual([300, 100]);
  });

  it('lets those that are deeper than the last level share what is above them', () => {
    const received = divide(twoLevels, ['acme/x/1', 'acme/x/2', 'globex/y'], 400);
    expect([...received.values()]).toEqual([100, 100, 200]);
  });

  it('tells apart the deeper paths of a function, whose names may contain the separator', () => {
    const paths: Record<string, string[]> = { x: ['a', 'b/c', 'd'], y: ['a', 'b', 'c/d'] };
    const band = new FakeBand(hierarchical({ ...byPrompt, ...twoLevels, pathOf: (id) => paths[id] as string[] }));
    for (const name of ['x', 'y']) band.add(name);
    expect(leavesOf(band)).toHaveLength(2);
  });

  it('charges what a request is predicted to cost when it goes', () => {
    const band = new FakeBand(hierarchical());
    band.pass('a/b/c', { tokens: 10 });
    expect(leavesOf(band).map(({ received }) => received)).toEqual([10 + 2 * 256]);
  });

  it('owes by the weights of organisations', () => {
    const band = new FakeBand(hierarchical({ ...byPrompt, ...twoLevels, weights: { acme: 3 } }));
    for (const name of ['acme/1', 'globex/1']) band.add(name, { tokens: 40 });
    band.selector.service?.(0);
    band.serve();
    expect(band.selector.service?.(0)?.flows.map(({ received, owed }) => [received, owed])).toEqual([
      [40, 30],
      [0, 10],
    ]);
  });

  it.each([
    ['another key of its organisation', 'o/2', { ...twoLevels }],
    ['another ID of its key', 'o/2', { ...twoLevels, pathOf: (id: string) => [id.slice(0, 1), 'key'] }],
  ])('keeps the standing of a flow that is held back when %s comes', (_, other, options) => {
    const served = (comes: boolean): string => {
      const band = new FakeBand(hierarchical({ ...byPrompt, ...options }));
      for (let i = 0; i < 3; i++) band.add('o/1', { tokens: 100 });
      band.hold('o/1');
      for (let i = 0; i < 10; i++) band.add('p/1', { tokens: 100 });
      for (let i = 0; i < 6; i++) band.serve();
      if (comes) band.add(other, { tokens: 100 });
      band.releaseHeld('o/1');
      return serveAll(band)
        .replaceAll(/o.[12]/g, 'o')
        .replaceAll(/p.1/g, 'p');
    };
    expect(served(false)).toBe('o o o p p p p');
    expect(served(true)).toBe('o o o o p p p p');
  });

  it.each([
    [['least-service', 'virtual-token-counter']],
    [['least-service', 'virtual-token-counter', 'virtual-token-counter']],
  ] as const)('remembers what an organisation received as long as the controller has its flow (%s)', (levels) => {
    const band = new FakeBand(hierarchical({ ...byPrompt, levels: [...levels] }));
    const tree = treeOf(band);
    band.settle(band.pass('o/x/1', { tokens: 1000 }), usage(1000));
    // It was evicted, and cancelled while it waited once more: nothing was consumed.
    band.add('o/x/1', { tokens: 50 });
    const evicted = band.serve();
    if (evicted === undefined) throw new Error('nothing was served');
    band.requeue(evicted, usage(0));
    band.cancel('o/x/1', 0);
    for (const name of ['o/x/1', 'p/y/1']) for (let i = 0; i < 3; i++) band.add(name, { tokens: 100 });
    expect(serveAll(band)).toBe('p/y/1 p/y/1 p/y/1 o/x/1 o/x/1 o/x/1');
    expect([...tree.shares()].length).toBeGreaterThan(0);
  });

  it('forgets what organisations received, without a floor, once the controller has forgotten their flows', () => {
    const band = new FakeBand(hierarchical({ ...byPrompt, levels: ['least-service', 'virtual-token-counter'] }));
    const tree = treeOf(band);
    const names = (): string[] => Array.from(tree.shares(), ({ name }) => name);
    for (const [name, tokens] of [
      ['o/1', 10],
      ['o/2', 10],
      ['o/2', 10],
      ['o/2', 10],
    ] as const) {
      band.settle(band.pass(name, { tokens }), usage(tokens));
    }
    expect(names()).toEqual(['=o', '=1', '=2']);
    // The one is not ahead of its sibling; the other is, and nothing more comes that it could be ahead of.
    band.collect(band.flow('o/1'), true);
    expect(names()).toEqual(['=o', '=2']);
  });

  it('forgets organisations that are idle', () => {
    const band = new FakeBand(hierarchical(byPrompt), { collects: true });
    for (let i = 0; i < 5000; i++) {
      const running = band.pass(`org-${i}/project/key`, { tokens: 10 });
      band.settle(running, usage(10));
    }
    const tree = treeOf(band);
    // Those that are ahead of the floor are remembered, up to 1,024 of them.
    expect([...tree.shares()].length).toBeLessThanOrEqual(3 * 1024);
  });

  it.each([
    [{ levels: [] }, 'levels'],
    [{ levels: Array.from({ length: 5 }, () => 'least-service' as const) }, 'levels'],
    [{ levels: ['round-robin' as 'least-service'] }, 'levels[0]'],
    [{ weights: { acme: 0 } }, 'weights.acme'],
    [{ weights: { acme: 1e-7 } }, 'weights.acme'],
    [{ weights: { acme: Number.POSITIVE_INFINITY } }, 'weights.acme'],
    [{ weights: { acme: 1.7e308 } }, 'weights.acme'],
    [{ weights: 3 as never }, 'weights'],
    [
      { weights: { 'a/b/c': 2 } },
      'weights["a/b/c"]: expected a path above the last of 3 levels, which has the weights of flows',
    ],
    [{ weights: { 'a-b': 2 }, separator: '-', levels: twoLevels.levels }, 'weights.a-b'],
    [{ weights: { a: 2 }, levels: ['least-service' as const] }, 'weights.a'],
    [{ levels: [] }, 'levels: expected one to 4 policies; got 0'],
    [{ separator: '' }, 'separator'],
    [{ pathOf: 'a' as never }, 'pathOf'],
  ])('refuses %j', (options, path) => {
    expect(() => hierarchical(options)).toThrowError(`hierarchical: ${path}`);
  });
});
