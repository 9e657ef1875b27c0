import { afterEach, describe, expect, it, vi } from 'vitest';
import { deficitRoundRobin, FlowController, type FlowFairnessPolicy } from '../../../src/index.js';
import { Random } from '../../property/random.js';
import { cpuMsOf } from '../../support/cpu-time.js';
import { dial } from '../../support/flow.js';
import { byPrompt } from './by-cost/backlogged.js';
import { FakeBand, usage } from './by-cost/fake-band.js';
import { watchRounds } from './by-cost/watch-rounds.js';

function serve(band: FakeBand, count: number): string {
  return Array.from({ length: count }, () => band.serve()?.flow.fairnessId ?? '-').join(' ');
}

function make(quantum?: number): FlowFairnessPolicy {
  return deficitRoundRobin({ ...byPrompt, quantum });
}

afterEach(() => void vi.restoreAllMocks());

describe('deficitRoundRobin', () => {
  it('lets a flow go on until its quantum is used up, and by the request that exceeds it', () => {
    const band = new FakeBand(make(25));
    for (let i = 0; i < 6; i++) for (const name of ['a', 'b']) band.add(name, { tokens: 10 });
    expect(serve(band, 12)).toBe('a a a b b b a a b b a b');
  });

  it('passes the turn on without a second quantum when the last request of the turn is cancelled', () => {
    const band = new FakeBand(make(100));
    for (let i = 0; i < 2; i++) for (const name of ['a', 'b', 'c']) band.add(name, { tokens: 10 });
    expect(serve(band, 1)).toBe('a');
    band.cancel('a', 0);
    expect(serve(band, 1)).toBe('b');
    band.add('a', { tokens: 10 });
    expect(serve(band, 4)).toBe('b c c a');
  });

  it('keeps what a flow owes, and not what it has left, when it falls idle', () => {
    const band = new FakeBand(make(100));
    band.add('a', { tokens: 250 });
    band.add('b', { tokens: 10 });
    band.add('b', { tokens: 10 });
    expect(serve(band, 2)).toBe('a b');
    for (let i = 0; i < 2; i++) band.add('a', { tokens: 100 });
    for (let i = 0; i < 30; i++) band.add('b', { tokens: 10 });
    // b has 90 left of this round and 100 of the next, before a has paid what it owes.
    expect(serve(band, 20)).toBe(`${'b '.repeat(19)}a`);
  });

  it('does not loop for costs that are a million times the quantum', () => {
    const band = new FakeBand(make(1));
    for (let i = 0; i < 100; i++) for (const name of ['a', 'b', 'c']) band.add(name, { tokens: 1e9 });
    const spentMs = cpuMsOf(() => expect(serve(band, 6)).toBe('a b c a b c'));
    // Walking through the rounds would take minutes.
    expect(spentMs).toBeLessThan(3000);
  });

  it('serves flows by weight', () => {
    const band = new FakeBand(make(10), { weights: { a: 3 } });
    for (let i = 0; i < 20; i++) for (const name of ['a', 'b']) band.add(name, { tokens: 10 });
    expect(serve(band, 8)).toBe('a a a b a a a b');
  });

  it('puts a misprediction right, while the flow waits and after it has left', () => {
    const band = new FakeBand(make(10));
    for (let i = 0; i < 4; i++) for (const name of ['a', 'b']) band.add(name, { tokens: 10 });
    const first = band.serve();
    if (first === undefined) throw new Error('nothing was served');
    band.settle(first, usage(40));
    expect(serve(band, 5)).toBe('b b b b a');
  });

  it('finds a quantum that pays for every request, whatever the unit', () => {
    for (const unit of [0.001, 1, 1e6]) {
      const band = new FakeBand(make());
      for (let i = 0; i < 3000; i++)
        for (const name of ['a', 'b']) band.add(name, { tokens: unit * (name === 'a' ? 1 : 4) });
      const received = { a: 0, b: 0 };
      for (let i = 0; i < 2500; i++) {
        const served = band.serve();
        if (served !== undefined) received[served.flow.fairnessId as 'a' | 'b'] += served.item.tokens;
      }
      expect(Math.abs(received.a - received.b)).toBeLessThanOrEqual(12 * Math.max(unit, 1));
    }
  });

  it('finds a quantum by itself that a flow of a small weight does not enlarge, nor many of a large one', () => {
    for (const [weights, apart] of [
      [{ light: 0.001 }, 200],
      [{ light: 1e-6 }, 200],
      [{ a: 100, b: 100, light: 100 }, 200],
    ] as const) {
      const band = new FakeBand(make(), { weights });
      for (const name of ['a', 'b', 'light']) for (let i = 0; i < 3000; i++) band.add(name, { tokens: 100 });
      const received: Record<string, number> = { a: 0, b: 0, light: 0 };
      let most = 0;
      for (let i = 0; i < 4000; i++) {
        const name = band.serve()?.flow.fairnessId ?? '-';
        received[name] = (received[name] ?? 0) + 100;
        if (i > 100) most = Math.max(most, Math.abs((received.a as number) - (received.b as number)));
      }
      expect(most).toBeLessThanOrEqual(apart);
      expect(received.light).toBeGreaterThan(0);
    }
  });

  it.each([0, -1, 9e-7, 2 ** 53 + 2, 1.7e308, Number.NaN, Number.POSITIVE_INFINITY])(
    'refuses a quantum of %d',
    (quantum) => {
      expect(() => make(quantum)).toThrowError(
        'deficitRoundRobin: quantum: expected a number from 0.000001 to 9007199254740992',
      );
    },
  );

  it('takes a quantum from 1e-6 to 2^53', () => {
    watchRounds(200);
    for (const quantum of [1e-6, 2 ** 53]) {
      const band = new FakeBand(make(quantum));
      for (let i = 0; i < 2; i++) for (const name of ['a', 'b']) band.add(name, { tokens: 2 ** 52 });
      expect(serve(band, 4)).toBe(quantum < 1 ? 'a b a b' : 'a a b b');
    }
  });
});

describe('a pick', () => {
  /** Serves all that waits of `a`, one request of each cost, and of `b`, as many of 1. */
  function serveCosts(
    quantum: number | undefined,
    costs: readonly number[],
    options: Parameters<typeof deficitRoundRobin>[0] = {},
  ): number {
    const watch = watchRounds();
    const band = new FakeBand(deficitRoundRobin({ ...byPrompt, ...options, quantum }));
    for (const tokens of costs) band.add('a', { tokens });
    for (const _ of costs) band.add('b', { tokens: 1 });
    let served = 0;
    for (; band.waiting > 0; served++) {
      watch.reset();
      band.serve();
    }
    return served;
  }

  it.each([
    ['1', 1, [2 ** 53, 1, 1, 1]],
    ['1, at half the largest cost', 1, [2 ** 52, 1, 1, 1]],
    ['1e-4, below the counters that are lowered', 1e-4, [2 ** 40 - 3e6, 1e6, 1e6, 1e6, 1e6, 1e6]],
    ['1e-4', 1e-4, [1e9, 1, 999.3, 1]],
    ['1e-6', 1e-6, [1e12, 1, 1, 1]],
    ['1e-6, at the largest cost', 1e-6, [2 ** 53, 2 ** 53, 2 ** 53, 1]],
    ['2^53', 2 ** 53, [2 ** 53, 2 ** 53, 2 ** 53, 1]],
    ['its own choice', undefined, [2 ** 53, 1, 1, 1]],
  ])('ends with a quantum of %s', (_, quantum, costs) => {
    expect(serveCosts(quantum, costs)).toBe(2 * costs.length);
  });

  it.each([1e-6, 1, undefined])('ends with the least weight and the largest cost, with a quantum of %s', (quantum) => {
    expect(serveCosts(quantum, [2 ** 53, 2 ** 53, 1, 1], { weightOf: () => 1e-6 })).toBe(8);
  });

  it('ends after a report that a request took 2^53', () => {
    const watch = watchRounds();
    const band = new FakeBand(make());
    band.add('a', { tokens: 1 });
    const first = band.serve();
    if (first === undefined) throw new Error('nothing was served');
    band.settle(first, usage(2 ** 53));
    for (let i = 0; i < 5; i++) {
      watch.reset();
      band.add('a', { tokens: 1 });
      expect(serve(band, 1)).toBe('a');
    }
  });

  it('ends in a controller whose requests tell the largest number of tokens', async () => {
    watchRounds(64);
    const detector = dial(1, true);
    const flow = new FlowController({
      saturationDetector: detector,
      bands: [{ priority: 0, fairness: deficitRoundRobin({ quantum: 1 }) }],
    });
    const order: string[] = [];
    const send = async (fairnessId: string, tokens: number): Promise<void> => {
      const outcome = await flow.enqueue({ byteSize: 1, tokens }, { fairnessId });
      order.push(fairnessId);
      if (outcome.type === 'Dispatched') outcome.lease.release();
    };
    const sent = Array.from({ length: 3 }, () => [send('a', Number.MAX_SAFE_INTEGER), send('b', 10)]).flat();
    detector.turnTo(0);
    await Promise.all(sent);
    expect([order.join(' '), flow.stats().pluginErrors]).toEqual(['a b b b a a', 0]);
  });

  it('keeps the bound, a quantum and one request of each, whatever the sizes of quantum and costs', () => {
    for (const quantum of [1e-6, 1e-4, 1, 1e4, 1e9]) {
      for (const costs of [[1, 10, 1000], [1, 1e6, 1e9], [1e3, 1e12], [2 ** 40], [0.001, 0.01]]) {
        const watch = watchRounds();
        const random = new Random(7);
        const band = new FakeBand(make(quantum));
        const received = { a: 0, b: 0 };
        let [low, high] = [0, 0];
        for (const name of ['a', 'b']) for (let i = 0; i < 2; i++) band.add(name, { tokens: random.pick(costs) });
        for (let i = 0; i < 500; i++) {
          watch.reset();
          const served = band.serve();
          if (served === undefined) throw new Error('nothing was served');
          const name = served.flow.fairnessId as 'a' | 'b';
          received[name] += served.item.tokens;
          band.add(name, { tokens: random.pick(costs) });
          low = Math.min(low, received.a - received.b);
          high = Math.max(high, received.a - received.b);
        }
        const bound = quantum + 2 * Math.max(...costs);
        expect(high - low).toBeLessThanOrEqual(bound * (1 + 1e-9));
        vi.restoreAllMocks();
      }
    }
  });
});
