/** What changes in a pool beside members and seats: labels, weights, marks, and who hears of it. */
import { describe, expect, it } from 'vitest';
import { EndpointPool, type EndpointView } from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import type { MetricsReport } from '../../src/types/index.js';
import { makeFlow, runNow } from '../support/flow.js';
import { pathsOf } from '../support/paths-of.js';

const idle: MetricsReport = { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 };

function poolAt(nowMs = 0): { pool: EndpointPool; clock: ManualClock; woken: () => number } {
  const pool = new EndpointPool();
  const clock = new ManualClock(nowMs);
  let woken = 0;
  pool.attach({ onPoolChange: () => woken++, backlog: { waiting: 0 } }, clock);
  return { pool, clock, woken: () => woken };
}

describe('labels and weight', () => {
  it('are none and 1 unless given', () => {
    const { pool } = poolAt();
    expect(pool.add('a')).toMatchObject({ labels: {}, weight: 1, overloadedUntilMs: 0 });
    expect(pool.add('b', { weight: 0.5, labels: { role: 'decode' } })).toMatchObject({
      labels: { role: 'decode' },
      weight: 0.5,
    });
  });

  it.each<[string, object, string[]]>([
    ['a weight of 0', { weight: 0 }, ['weight']],
    ['an infinite weight', { weight: Number.POSITIVE_INFINITY }, ['weight']],
    ['a weight that is no number', { weight: '2' }, ['weight']],
    ['labels that are no text', { labels: { a: 1, b: 'x', c: null } }, ['labels.a', 'labels.c']],
    ['labels that are no object', { labels: 'a' }, ['labels']],
    ['an unknown option', { label: {} }, ['label']],
  ])('refuse %s, when added and when updated', (_, options, paths) => {
    const { pool } = poolAt();
    pool.add('a', { labels: { x: 'y' } });
    expect(pathsOf(() => pool.add('b', options))).toEqual(paths);
    expect(pathsOf(() => pool.update('a', options))).toEqual(paths);
    expect(pool.endpoints.map(({ id, labels, weight }) => [id, labels, weight])).toEqual([['a', { x: 'y' }, 1]]);
  });

  it('are updated on the endpoint that leases and lists already hold', () => {
    const { pool } = poolAt();
    const endpoint = pool.add('a', { labels: { zone: '1', role: 'decode' } });
    const list = pool.endpoints;
    expect(pool.update('a', { labels: { zone: '2' } })).toBe(true);
    expect(endpoint.labels).toEqual({ zone: '2' });
    expect(pool.update(endpoint, { weight: 4 })).toBe(true);
    expect(endpoint).toMatchObject({ labels: { zone: '2' }, weight: 4 });
    expect(pool.endpoints).toBe(list);
  });

  it('are not those that the host still holds', () => {
    const { pool } = poolAt();
    const labels = { zone: '1' };
    const endpoint = pool.add('a');
    pool.update('a', { labels });
    labels.zone = '2';
    expect(endpoint.labels).toEqual({ zone: '1' });
    expect(() => Object.assign(endpoint.labels, { zone: '3' })).toThrow(TypeError);
  });
});

describe('version', () => {
  it('rises with every change of members, labels, weights and marks', () => {
    const { pool } = poolAt();
    const seen = [pool.version];
    const changes: (() => unknown)[] = [
      () => pool.add('a'),
      () => pool.update('a', { weight: 2 }),
      () => pool.update('a', { labels: { x: 'y' } }),
      () => pool.markOverloaded('a', 10),
      () => pool.markOverloaded('a', 20),
      () => pool.clearOverloaded('a'),
      () => pool.remove('a'),
      () => pool.add('a'),
    ];
    for (const change of changes) {
      change();
      seen.push(pool.version);
    }
    expect(new Set(seen).size).toBe(changes.length + 1);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
  });

  it('stays with metrics, seats and what changes nothing', () => {
    const { pool } = poolAt();
    pool.add('a', { labels: { x: 'y' } });
    pool.add('free');
    pool.markOverloaded('a', 20);
    const { version } = pool;
    pool.report('a', idle);
    pool.update('a', {});
    pool.update('a', { weight: 1, labels: { x: 'y' } });
    pool.markOverloaded('a', 10);
    pool.remove('b');
    runNow(makeFlow({ pool, saturationDetector: () => 0 }).flow).release();
    expect(pool.version).toBe(version);
  });
});

describe('an overload mark', () => {
  it('lasts for the time that it was given, by the clock of the controller', () => {
    const { pool, clock, woken } = poolAt(1000);
    const endpoint = pool.add('a');
    const before = woken();
    expect(pool.markOverloaded('a', 5000)).toBe(true);
    expect(endpoint.overloadedUntilMs).toBe(6000);
    expect(woken()).toBe(before + 1);
    clock.advance(10_000);
    pool.markOverloaded(endpoint, 1);
    expect(endpoint.overloadedUntilMs).toBe(11_001);
  });

  it('is extended by later ones, and never shortened', () => {
    const { pool, clock } = poolAt();
    const endpoint = pool.add('a');
    pool.markOverloaded('a', 100);
    clock.advance(50);
    pool.markOverloaded('a', 10);
    expect(endpoint.overloadedUntilMs).toBe(100);
    pool.markOverloaded('a', 100);
    expect(endpoint.overloadedUntilMs).toBe(150);
  });

  it('stays until its time is up, whatever the servers report meanwhile', () => {
    const { pool, clock } = poolAt();
    const [marked] = [pool.add('a'), pool.add('b')];
    const { flow } = makeFlow({ pool, clock, saturationDetector: () => 0 });
    pool.markOverloaded('a', 100);
    for (const id of ['a', 'b']) pool.report(id, idle);
    expect(marked.overloadedUntilMs).toBe(100);
    expect([runNow(flow), runNow(flow)].map(({ endpoint }) => endpoint?.id)).toEqual(['b', 'b']);
    clock.advance(100);
    expect(runNow(flow).endpoint?.id).toBe('a');
  });

  it('can be taken off', () => {
    const { pool, woken } = poolAt();
    const endpoint = pool.add('a');
    pool.markOverloaded('a', 100);
    const before = woken();
    expect(pool.clearOverloaded('a')).toBe(true);
    expect(endpoint.overloadedUntilMs).toBe(0);
    expect(pool.clearOverloaded('a')).toBe(true);
    expect(woken()).toBe(before + 1);
  });

  it.each([[0], [-1], [Number.NaN], [Number.POSITIVE_INFINITY], ['5s'], [undefined]])(
    'refuses %j as its time',
    (forMs) => {
      const { pool } = poolAt();
      const endpoint = pool.add('a');
      expect(pathsOf(() => pool.markOverloaded('a', forMs as number))).toEqual(['forMs']);
      expect(endpoint.overloadedUntilMs).toBe(0);
    },
  );

  it('does not pass to a successor of the same name', () => {
    const { pool } = poolAt();
    const former = pool.add('a');
    pool.markOverloaded('a', 100);
    pool.remove('a');
    expect(pool.add('a').overloadedUntilMs).toBe(0);
    expect(pool.clearOverloaded(former)).toBe(false);
    expect(former.overloadedUntilMs).toBe(100);
  });
});

describe('a view of a server that was replaced', () => {
  it('changes nothing about its successor', () => {
    const { pool } = poolAt();
    const former = pool.add('a');
    pool.remove(former);
    const successor = pool.add('a');
    const answers = [
      pool.update(former, { weight: 3 }),
      pool.report(former, idle),
      pool.markOverloaded(former, 100),
      pool.clearOverloaded(former),
    ];
    expect(answers).toEqual([false, false, false, false]);
    expect(successor).toMatchObject({ weight: 1, metrics: undefined, overloadedUntilMs: 0 });
  });

  it('and names that nobody has are told so', () => {
    const { pool } = poolAt();
    expect([
      pool.update('x', {}),
      pool.markOverloaded('x', 1),
      pool.clearOverloaded('x'),
      pool.report('x', idle),
    ]).toEqual(Array.from({ length: 4 }, () => false));
  });
});

describe('a sample', () => {
  it('from the future counts as taken now, and so becomes stale', () => {
    const { pool, clock } = poolAt(100);
    const endpoint = pool.add('a');
    pool.report('a', { ...idle, sampledAtMs: 1e12 });
    expect(endpoint.metrics?.sampledAtMs).toBe(100);
    clock.advance(50);
    pool.report('a', { ...idle, waitingQueueSize: 3 });
    expect(endpoint.metrics).toMatchObject({ waitingQueueSize: 3, sampledAtMs: 150 });
  });

  it('brings LoRA adapters, which stay until it says otherwise', () => {
    const { pool } = poolAt();
    const endpoint = pool.add('a');
    const loraAdapters = { running: ['sql'], waiting: ['chat'], max: 4 };
    pool.report('a', { ...idle, loraAdapters });
    pool.report('a', { ...idle, waitingQueueSize: 1 });
    expect(endpoint.metrics).toMatchObject({ waitingQueueSize: 1, loraAdapters });
    pool.report('a', { ...idle, loraAdapters: { running: [], waiting: [] } });
    expect(endpoint.metrics?.loraAdapters).toEqual({ running: [], waiting: [] });
  });

  it.each<[string, unknown, string[]]>([
    ['no object', 'sql', ['loraAdapters']],
    ['no lists', { running: 'sql', waiting: undefined }, ['loraAdapters.running', 'loraAdapters.waiting']],
    ['names that are no text', { running: [1], waiting: [] }, ['loraAdapters.running[0]']],
    ['a negative most', { running: [], waiting: [], max: -1 }, ['loraAdapters.max']],
  ])('is refused when its adapters are %s', (_, loraAdapters, paths) => {
    const { pool } = poolAt();
    pool.add('a');
    expect(pathsOf(() => pool.report('a', { ...idle, loraAdapters } as MetricsReport))).toEqual(paths);
  });
});

describe('events', () => {
  function recorded(pool: EndpointPool): string[] {
    const log: string[] = [];
    for (const event of ['added', 'removed', 'updated', 'reported', 'overloaded'] as const) {
      pool.on(event, ({ id, overloadedUntilMs }: EndpointView) => log.push(`${event} ${id} ${overloadedUntilMs}`));
    }
    return log;
  }

  it('tell every change, and nothing else', () => {
    const { pool, clock } = poolAt();
    const log = recorded(pool);
    pool.add('a');
    pool.update('a', { weight: 2 });
    pool.update('a', { weight: 2 });
    pool.report('a', idle);
    clock.advance(10);
    pool.report('a', { ...idle, sampledAtMs: 5 });
    pool.report('a', { ...idle, sampledAtMs: 4 });
    pool.markOverloaded('a', 100);
    pool.markOverloaded('a', 50);
    pool.clearOverloaded('a');
    pool.clearOverloaded('a');
    pool.remove('a');
    pool.remove('a');
    expect(log).toEqual([
      'added a 0',
      'updated a 0',
      'reported a 0',
      'reported a 0',
      'overloaded a 110',
      'overloaded a 0',
      'removed a 0',
    ]);
  });

  it('come after the controllers have acted', () => {
    const pool = new EndpointPool();
    const { flow } = makeFlow({ pool });
    void flow.enqueue({ byteSize: 1 }, { fairnessId: 'a' });
    const waiting: number[] = [];
    pool.on('added', () => waiting.push(flow.stats().waiting));
    pool.add('a');
    expect(waiting).toEqual([0]);
  });

  it('end where their listener was taken off', () => {
    const { pool } = poolAt();
    const seen: string[] = [];
    const listener = ({ id }: EndpointView): void => void seen.push(id);
    const stop = pool.on('added', listener);
    pool.on('added', listener);
    pool.add('a');
    stop();
    stop();
    pool.add('b');
    expect(seen).toEqual(['a', 'a', 'b']);
  });

  it('survive listeners that throw or reject, and tell of it', async () => {
    const { pool } = poolAt();
    const faults: unknown[] = [];
    pool.on('listenerError', (fault) => faults.push(fault));
    pool.on('listenerError', () => {
      throw new Error('nobody hears this');
    });
    const [thrown, rejected] = [new Error('thrown'), new Error('rejected')];
    pool.on('added', () => {
      throw thrown;
    });
    pool.on('added', () => Promise.reject(rejected));
    const log = recorded(pool);
    expect(pool.add('a').id).toBe('a');
    await Promise.resolve();
    expect(log).toEqual(['added a 0']);
    expect(faults).toEqual([
      { event: 'added', error: thrown },
      { event: 'added', error: rejected },
    ]);
  });

  it('may change the pool from within', () => {
    const { pool } = poolAt();
    const log = recorded(pool);
    pool.on('added', (endpoint) => pool.remove(endpoint));
    pool.add('a');
    expect(pool.endpoints).toEqual([]);
    expect(log).toEqual(['added a 0', 'removed a 0']);
  });
});

it('now is the controller’s, or the platform’s before there is one', () => {
  const pool = new EndpointPool();
  const before = performance.now();
  expect(pool.now()).toBeGreaterThanOrEqual(before);
  const { clock } = makeFlow({ pool });
  clock.advance(77);
  expect(pool.now()).toBe(clock.now());
});
