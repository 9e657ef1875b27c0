/** What the store answers is held against what was asked: nothing is granted beyond it, and nothing is NaN. */
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { FlowController, quotaDetector, virtualTokenCounter } from '../../../src/index.js';
import {
  type IoRedisClient,
  sharedBudgets,
  sharedConcurrency,
  sharedFairness,
  sharedQuotas,
} from '../../../src/redis/index.js';
import { readMessage } from '../../../src/redis/sessions/session-messages.js';
import { numbersOf } from '../../../src/redis/store/store-link.js';
import { ManualClock } from '../../../src/testing/index.js';

type Random = () => number;

const oddities: readonly unknown[] = [
  'inf',
  '-inf',
  'nan',
  'NaN',
  'Infinity',
  '1e999',
  '-1',
  '-9007199254740993',
  '9007199254740993',
  '1e30',
  '0.5',
  '',
  ' ',
  'abc',
  '0x',
  null,
  undefined,
  true,
  [],
  ['1'],
  {},
  Number.NaN,
  Number.POSITIVE_INFINITY,
  -5,
  1e12,
];

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;

/** A right answer in which something is wrong; sometimes none at all. */
function spoilt(random: Random, right: readonly unknown[]): unknown {
  if (random() < 0.1) return pick(random, [null, undefined, 'OK', '1', 1, {}, [], new Error('odd')]);
  const answer = [...right];
  for (let count = 0; count <= random() * 3; count++) {
    const at = Math.floor(random() * answer.length);
    const change = random();
    if (change < 0.15) answer.splice(at, 1);
    else if (change < 0.3) answer.push(pick(random, oddities));
    else answer[at] = pick(random, oddities);
  }
  return answer;
}

function storeOf(answer: (args: string[]) => unknown): IoRedisClient {
  const evalsha = async (_script: string, keys: number, ...rest: string[]): Promise<unknown> =>
    answer(rest.slice(keys));
  return { evalsha, eval: evalsha };
}

async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    clock.advance(50);
    for (let turn = 0; turn < 12; turn++) await undefined;
  }
}

describe('an answer', () => {
  it('is so many finite numbers, as texts, bytes or numbers', () => {
    expect(numbersOf(['1', Buffer.from('-2.5'), 3], 3)).toEqual([1, -2.5, 3]);
    expect(numbersOf([], 0)).toEqual([]);
  });

  it.each(['inf', 'nan', '1e999', '', ' ', null, undefined, [], ['1'], {}, true, Number.NaN])(
    'is none with %j',
    (part) => {
      expect(numbersOf(['1', part], 2)).toBeUndefined();
    },
  );

  it.each([[['1']], [['1', '2', '3']], ['12'], [null], [{ length: 2 }]])('is not %j for two numbers', (reply) => {
    expect(numbersOf(reply, 2)).toBeUndefined();
  });
});

describe('a lease', () => {
  const setUp = (answer: (right: readonly unknown[]) => unknown) => {
    const clock = new ManualClock();
    const store = storeOf(([, incarnation, , , , , , , sequence]) =>
      answer([incarnation, sequence, 8, 4, 1, 0, 1, 8, 8, 8, 8, 1, 1, 0, 0]),
    );
    const shared = sharedConcurrency(store, {
      pool: 'a',
      maxConcurrency: 8,
      replicas: 2,
      callTimeout: '200ms',
      clock,
      random: () => 0.5,
    });
    const problems: string[] = [];
    shared.on('problem', ({ code }) => problems.push(code));
    return { clock, shared, problems };
  };

  it.each([
    ['more than the limit', 2, 9],
    ['less than nothing', 2, -2],
    ['half a seat', 2, 1.5],
    ['a safe share above the grant', 3, 9],
    ['a negative safe share', 3, -1],
    ['a larger limit than any replica asked for', 7, 16],
    ['no replica', 6, 0],
    ['NaN', 2, 'nan'],
    ['infinity', 2, 'inf'],
    ['a call that was never made', 1, 1e9],
  ])('of %s is told, and not used', async (_, at, value) => {
    const { clock, shared, problems } = setUp((right) => right.map((each, i) => (i === at ? value : each)));
    await pass(clock, 1_000);
    expect([shared.limit, problems]).toEqual([0, ['bad-reply']]);
    await pass(clock, 10_000);
    expect(shared.limit).toBe(4); // The first share, as of a store that is away.
    await shared.close();
  });

  it('is no more than a limit that was lowered meanwhile', async () => {
    const { clock, shared } = setUp((right) => right);
    await pass(clock, 1_000);
    shared.setLimit(3);
    expect(shared.limit).toBe(3);
    await shared.close();
  });

  it('is a number from 0 to the limit, whatever the store answers', async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = seededRandom(seed);
      const { clock, shared } = setUp((right) => (random() < 0.3 ? right : spoilt(random, right)));
      for (let step = 0; step < 20; step++) {
        await pass(clock, 500);
        expect(shared.limit).toSatisfy((limit: number) => limit >= 0 && limit <= 8);
        for (const status of shared.status)
          for (const figure of Object.values(status)) if (typeof figure === 'number') expect(figure).not.toBeNaN();
      }
      await shared.close();
    }
  });
});

describe('a budget', () => {
  const rates = [{ name: 'requests', limit: 60, per: '1m', burst: 10 }] as const;
  const key = { fairnessId: 'tenant', priority: 0 };

  it.each([
    ['infinite level', ['1', '5', '1', 'inf']],
    ['level that is none', ['1', '5', '1', 'nan']],
    ['negative level', ['1', '5', '1', '-1']],
    ['level that leaks for ever', ['1', '5', '1', '1e30']],
    ['sale beyond what was asked for', ['1', '5', '2', '2']],
    ['sale of a part', ['1', '5', '0.5', '2']],
    ['sale beyond all that was sold', ['1', '0.5', '1', '2']],
    ['negative sale', ['1', '5', '-1', '2']],
    ['missing level', ['1', '5', '1']],
    ['bucket that is none', ['', '5', '1', '2']],
  ])('with an answer of %s is told, and the share of this replica holds', async (_, answer) => {
    const budgets = sharedBudgets(
      storeOf(() => answer),
      { name: 'b', budgets: rates, clock: new ManualClock() },
    );
    const problems: string[] = [];
    budgets.onProblem(({ code }) => problems.push(code));
    const taken = await budgets.take({ byteSize: 1 }, key);
    expect(taken).toMatchObject({ isTaken: true, isLocal: true });
    expect(problems).toEqual(['bad-reply']);
    budgets.close();
  });

  it('never says NaN, and never has more than its burst left, whatever the store answers', async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = seededRandom(seed);
      const rights = [
        ['1', '6', '1', '5'],
        ['1', '6', '0', '9.5'],
      ];
      const clock = new ManualClock();
      const store = storeOf(() => spoilt(random, pick(random, rights)));
      const budgets = sharedBudgets(store, { name: 'b', budgets: rates, clock, random });
      for (let step = 0; step < 30; step++) {
        const taken = await budgets.take({ byteSize: 1 }, key);
        if (!taken.isTaken) expect(taken.retryAfterMs).toSatisfy((ms: number) => ms > 0 && ms < 1e13);
        const left = await budgets.peek('tenant');
        if (left !== undefined) expect(left.requests).toSatisfy((units: number) => units <= 10);
        await pass(clock, 100);
      }
      budgets.close();
    }
  });
});

describe('a quota', () => {
  const setUp = (answer: (most: number, least: number) => unknown) => {
    const clock = new ManualClock();
    const store = storeOf((args) => answer(Number(args[6]), Number(args[5])));
    const shared = sharedQuotas(store, { name: 'q', replicas: 2, callTimeout: '200ms', clock, random: () => 0.5 });
    const detector = quotaDetector({
      groups: [{ quotas: [{ unit: 'requests', limit: 60, per: '1m', burst: 12 }] }],
    });
    detector.drawFrom(shared);
    const flow = new FlowController({ constraints: [detector], clock, defaultRequestTtl: 0 });
    const problems: string[] = [];
    shared.onProblem(({ code }) => problems.push(code));
    return { clock, shared, flow, problems };
  };
  const key = { fairnessId: 'tenant', priority: 0 };

  it('that sells more than was asked for is told, and the share of this replica holds', async () => {
    const { clock, shared, flow, problems } = setUp(() => ['1', '1000', '1000', '0']);
    for (let i = 0; i < 100; i++) void flow.enqueue({ byteSize: 1 }, key);
    await pass(clock, 1_000);
    expect(problems).toEqual(['bad-reply']);
    expect(shared.status[0]).toMatchObject({ isLocal: true });
    // Its half of the burst and of what a second brings, and the first chunk.
    expect(flow.stats().outcomes.Dispatched).toBeLessThanOrEqual(9);
    await flow.close();
    await shared.close();
  });

  it('has finite figures, and no more than its burst, whatever the store answers', async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const random = seededRandom(seed);
      const { clock, shared, flow } = setUp((most, least) => {
        const sold = Math.max(least, Math.min(most, 3 * random()));
        const right = ['1', String(100 + sold), String(sold), String(6 * random())];
        return random() < 0.3 ? right : spoilt(random, right);
      });
      for (let step = 0; step < 20; step++) {
        void flow.enqueue({ byteSize: 1 }, key).then((outcome) => {
          if (outcome.type === 'Dispatched') outcome.lease.release();
        });
        await pass(clock, 200);
        for (const { balance, used } of shared.status) {
          expect(balance).toSatisfy((units: number) => units >= 0 && units <= 12);
          expect(used).not.toBeNaN();
        }
      }
      await flow.close();
      await shared.close();
    }
  });
});

describe('what flows received elsewhere', () => {
  it('is charged when it is a number, and only then', async () => {
    for (const answer of [['inf'], ['nan'], [null], ['-inf', '1'], 'OK']) {
      const clock = new ManualClock();
      const charged: number[] = [];
      const policy = virtualTokenCounter();
      const spied = {
        ...policy,
        type: policy.type,
        createSelector: (band: Parameters<typeof policy.createSelector>[0]) => {
          const selector = policy.createSelector(band);
          const charge = selector.charge?.bind(selector);
          selector.charge = (flow, cost) => {
            charged.push(cost);
            charge?.(flow, cost);
          };
          return selector;
        },
      };
      let calls = 0;
      const store = storeOf(() => (calls++ === 0 ? ['1000'] : answer));
      const fairness = sharedFairness(store, spied, { name: 'f', clock, random: () => 0.5 });
      const flow = new FlowController({
        saturationDetector: () => 1,
        clock,
        defaultBand: { fairness },
        defaultRequestTtl: 0,
      });
      void flow.enqueue({ byteSize: 1 }, { fairnessId: 'tenant', priority: 0 });
      await pass(clock, 5_000);
      expect(calls).toBeGreaterThan(2);
      expect([charged, fairness.store.problem?.code]).toEqual([[], 'bad-reply']);
      fairness.close();
      await flow.close();
    }
  });
});

describe('a message about sessions', () => {
  it('is understood with finite numbers, or not at all, whatever it says', () => {
    const random = seededRandom(7);
    const odd = [...oddities, 1e308, -0, '"', 'x'.repeat(300)];
    for (let count = 0; count < 5_000; count++) {
      const session = { name: 'a', endpoint: 'e', tokens: 5, forMs: 10, prefix: { id: 'p', tokens: 3 } };
      const message: Record<string, unknown> = {
        kind: pick(random, ['held', 'ended', 'new', 'odd']),
        from: 'x',
        name: 'n',
        sessions: [session],
      };
      const target = pick(random, [
        message,
        session as Record<string, unknown>,
        session.prefix as Record<string, unknown>,
      ]);
      target[pick(random, Object.keys(target))] = pick(random, odd);
      const read = readMessage(JSON.stringify(message).replace('1e+308', '1e999'));
      if (read?.kind !== 'held') continue;
      for (const { tokens, forMs, prefix } of read.sessions)
        for (const amount of [tokens, forMs, prefix?.tokens ?? 0])
          expect(amount).toSatisfy((value: number) => value >= 0 && value <= Number.MAX_SAFE_INTEGER);
    }
  });
});
