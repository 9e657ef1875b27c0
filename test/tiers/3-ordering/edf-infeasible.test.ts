import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  edf,
  FlowController,
  type FlowControllerOptions,
  roundRobin,
} from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { Random } from '../../property/random.js';
import { dial, dropOf, key, leaseOf, makeFlow, request } from '../../support/flow.js';

const dropping = { priority: 0, ordering: edf({ dropInfeasible: true, firstTokenAfter: 300 }) };

describe('edf({ dropInfeasible: true })', () => {
  it('drops a request at its turn that could not have met its deadline, and says so', async () => {
    const { flow, clock, detector } = valve({ bands: [dropping] });
    const late = flow.enqueue({ byteSize: 1, ttlMs: 1000 }, key('a'));
    const fine = flow.enqueue({ byteSize: 1, ttlMs: 5000 }, key('b'));
    clock.advance(701);
    detector.turnTo(0);
    const drop = dropOf(await late);
    expect(drop).toMatchObject({ type: 'EvictedOther', reason: 'infeasible', queuedMs: 701 });
    expect(drop.explanation).toMatchObject({ decidedBy: 'ordering' });
    expect(drop.explanation?.text).toContain('could not have met its deadline');
    leaseOf(await fine).release();
    expect(flow.stats()).toMatchObject({ waiting: 0, waitingBytes: 0, inFlight: 0, pluginErrors: 0 });
  });

  it('lets a request go that may just make it', async () => {
    const { flow, clock, detector } = valve({ bands: [dropping] });
    const waiting = flow.enqueue({ byteSize: 1, ttlMs: 1000 }, key('a'));
    clock.advance(700);
    detector.turnTo(0);
    leaseOf(await waiting);
  });

  it('takes the target of the first token where that is earlier, in its order too', async () => {
    const { flow, clock, detector } = valve({ bands: [{ ...dropping, fairness: roundRobin() }] });
    const first: string[] = [];
    flow.on('dispatched', ({ item }) => first.push(String(item.byteSize)));
    const plain = flow.enqueue({ byteSize: 1, ttlMs: 10_000 }, key('a'));
    const urgent = flow.enqueue({ byteSize: 2, ttlMs: 60_000, sloTtftMs: 2000 }, key('a'));
    const missed = flow.enqueue({ byteSize: 3, ttlMs: 60_000, sloTtftMs: 1000 }, key('a'));
    clock.advance(1000);
    detector.turnTo(0);
    expect(dropOf(await missed).reason).toBe('infeasible');
    await Promise.all([plain, urgent]);
    expect(first).toEqual(['2', '1']);
  });

  it('never drops what has no deadline, and what finds room at once', async () => {
    const { flow, clock, detector } = valve({ bands: [dropping] });
    const endless = flow.enqueue({ byteSize: 1, ttlMs: 0 }, key('a'));
    clock.advance(1e9);
    detector.turnTo(0);
    leaseOf(await endless).release();
    leaseOf(await flow.enqueue({ byteSize: 1, ttlMs: 100 }, key('a')));
  });

  it('learns what a first token takes, from reports and from requests that end without any', async () => {
    const ordering = edf({ dropInfeasible: true });
    const { flow, clock, detector } = valve({ bands: [{ priority: 0, ordering }] });
    detector.turnTo(0);
    for (let i = 0; i < 20; i++) {
      const lease = leaseOf(await flow.enqueue(request, key('a')));
      clock.advance(400);
      if (i % 2 === 0) lease.report({ completionTokens: 1 });
      if (i % 2 === 0) clock.advance(5000);
      lease.report({ promptTokens: 5, completionTokens: i % 2 === 0 ? 9 : 0 });
      lease.release();
    }
    detector.turnTo(1);
    const late = flow.enqueue({ byteSize: 1, ttlMs: 1000 }, key('a'));
    const fine = flow.enqueue({ byteSize: 1, ttlMs: 1001 }, key('a'));
    clock.advance(601);
    detector.turnTo(0);
    expect(dropOf(await late).reason).toBe('infeasible');
    leaseOf(await fine);
  });

  it('goes on when its question fails', async () => {
    const broken = { ...edf({ dropInfeasible: true }), isInfeasible: () => { throw new Error('broken'); } }; // biome-ignore format: one line
    const { flow, detector } = valve({ bands: [{ priority: 0, ordering: broken }] });
    const waiting = flow.enqueue(request, key('a'));
    detector.turnTo(0);
    leaseOf(await waiting);
    expect(flow.stats().pluginErrors).toBe(1);
  });

  it.each([
    [{ dropInfeasible: 1 as never }, 'dropInfeasible'],
    [{ firstTokenAfter: 0 }, 'firstTokenAfter'],
    [{ firstTokenAfter: Number.NaN }, 'firstTokenAfter'],
    [{ maxWait: -1 }, 'maxWait'],
    [{ dropInfeasable: true } as never, 'dropInfeasible'],
  ])('rejects %j', (options, path) => {
    expect(() => edf(options)).toThrowError(path);
  });
});

describe('edf({ maxWait })', () => {
  it('gives requests without a deadline one, so that they do not starve', () => {
    const { compare } = edf({ maxWait: '5s' });
    const endless = item({ ttlMs: Number.POSITIVE_INFINITY });
    expect(compare(endless, item({ ttlMs: 5001 }))).toBeLessThan(0);
    expect(compare(endless, item({ ttlMs: 4999 }))).toBeGreaterThan(0);
  });
});

describe('under overload', () => {
  const uniform = (random: Random): number => 500 + 1000 * random.next();
  const exponential = (random: Random): number => -Math.log(1 - random.next()) * 1000;

  /**
   * The part of requests whose first token came in time, with one server of service times of 1 s in the mean and
   * deadlines from 2 to 20 s.
   */
  function metDeadlines(load: number, serviceOf: typeof uniform, options: Parameters<typeof edf>[0]): number {
    const clock = new ManualClock();
    const flow = new FlowController({
      clock,
      saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
      limits: { maxRequests: 1e6 },
      bands: [{ priority: 0, limits: { maxRequests: 1e6 }, ordering: edf(options) }],
    });
    const random = new Random(5);
    let met = 0;
    flow.on('dispatched', ({ item: { enqueuedAtMs, ttlMs }, lease }) => {
      clock.setTimeout(() => {
        lease.report({ completionTokens: 1 });
        if (clock.now() <= enqueuedAtMs + ttlMs) met++;
        lease.release();
      }, serviceOf(random));
    });
    const sent = 3000;
    for (let i = 0; i < sent; i++) {
      void flow.enqueue({ byteSize: 1, ttlMs: 2000 + 18_000 * random.next() }, key('a'));
      clock.advance((-Math.log(1 - random.next()) * 1000) / load);
    }
    clock.advance(30_000);
    return met / sent;
  }

  const page = readFileSync(new URL('../../../docs/policies/edf-ordering-policy.md', import.meta.url), 'utf8');

  it.each([
    ['evenly spread', uniform],
    ['exponential', exponential],
  ])(
    'meets more deadlines than without where times are %s, as its page says, and in underload no fewer',
    (name, serviceOf) => {
      const [without, learnt] = [{}, { dropInfeasible: true }].map((options) => metDeadlines(1.5, serviceOf, options));
      expect(metDeadlines(0.6, serviceOf, { dropInfeasible: true })).toBeGreaterThanOrEqual(
        metDeadlines(0.6, serviceOf, {}) - 0.01,
      );
      const percent = (part = 0): string => `${Math.round(part * 100)} %`;
      expect(page).toContain(`| ${name} | ${percent(without)} | ${percent(learnt)} |`);
      expect(learnt).toBeGreaterThan(1.2 * (without ?? 1));
    },
  );
});

describe('what is learnt of one model', () => {
  it('is not held against requests for another', async () => {
    const ordering = edf({ dropInfeasible: true });
    const { flow, clock, detector } = valve({ bands: [{ priority: 0, ordering }] });
    detector.turnTo(0);
    const ask = (model: string, ttlMs: number) => ({ byteSize: 1, ttlMs, model });
    for (let i = 0; i < 40; i++) {
      const lease = leaseOf(await flow.enqueue(ask(i % 2 === 0 ? 'small' : 'large', 60_000), key('a')));
      clock.advance(i % 2 === 0 ? 100 : 5000);
      lease.report({ completionTokens: 1 });
      lease.release();
    }
    detector.turnTo(1);
    const [small, large] = ['small', 'large'].map((model) => flow.enqueue(ask(model, 2000), key(model)));
    clock.advance(1000);
    detector.turnTo(0);
    expect(dropOf(await large).reason).toBe('infeasible');
    leaseOf(await small);
  });
});

function valve(options: Partial<FlowControllerOptions>) {
  const detector = dial(1, true);
  return { ...makeFlow({ saturationDetector: detector, ...options }), detector };
}

function item(figures: { ttlMs: number }) {
  return {
    ...{ enqueuedAtMs: 0, receivedAtMs: 0, ttftDeadlineAtMs: Number.POSITIVE_INFINITY, sequence: 1 },
    ...figures,
  } as Parameters<ReturnType<typeof edf>['compare']>[0];
}
