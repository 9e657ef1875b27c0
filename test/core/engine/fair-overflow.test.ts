import { describe, expect, it } from 'vitest';
import {
  EndpointPool,
  edf,
  type FlowController,
  type FlowControllerOptions,
  type FlowRequest,
  globalStrict,
  labelFilter,
  type Outcome,
  overviewOf,
} from '../../../src/index.js';
import { audit } from '../../../src/testing/index.js';
import { dial, dropOf, key, leaseOf, makeFlow, runNow } from '../../support/flow.js';

type Ask = (name: string, priority?: number, byteSize?: number) => Promise<Outcome>;

/** A full pool and a queue for four. */
function fullQueue(options: Partial<FlowControllerOptions> = {}): { flow: FlowController; ask: Ask } {
  const { flow } = makeFlow({ overflow: 'fair', limits: { maxRequests: 4, maxBytes: 1000 }, ...options });
  runNow(flow);
  return { flow, ask: (name, priority = 0, byteSize = 10) => flow.enqueue({ byteSize }, key(name, priority)) };
}

function waitingOf(flow: FlowController, priority = 0): Record<string, number> {
  const band = overviewOf(flow, { flows: 'all' }).bands.find((each) => each.priority === priority);
  return Object.fromEntries((band?.flows ?? []).map(({ fairnessId, waiting }) => [fairnessId, waiting]));
}

/** The outcome, if it is known by now. */
async function now(outcome: Promise<Outcome>): Promise<Outcome | undefined> {
  return Promise.race([outcome, new Promise<undefined>((resolve) => setImmediate(() => resolve(undefined)))]);
}

describe("overflow: 'fair'", () => {
  it('takes nothing from a flow of the same weight that would then have as much waiting as the newcomer', async () => {
    const { flow, ask } = fullQueue({ limits: { maxRequests: 9 }, flows: { a: { weight: 3 }, b: { weight: 3 } } });
    for (let i = 0; i < 5; i++) void ask('a');
    for (let i = 0; i < 4; i++) void ask('b');
    expect(dropOf(await now(ask('b'))).reason).toBe('global-max-requests');
    expect(waitingOf(flow)).toEqual({ a: 5, b: 4 });
  });

  it('lets the newest request of the flow with most waiting leave for a newcomer of a flow with less', async () => {
    const { flow, ask } = fullQueue();
    const hog = [ask('hog'), ask('hog'), ask('hog'), ask('hog')];
    void ask('polite');
    expect(dropOf(await hog[3])).toMatchObject({ type: 'EvictedOther', reason: 'displaced' });
    expect(waitingOf(flow)).toEqual({ hog: 3, polite: 1 });
    void ask('polite');
    expect(dropOf(await hog[2]).reason).toBe('displaced');
    expect(audit(flow).violations).toEqual([]);
  });

  it('gives nobody more than an equal share of a full queue', async () => {
    const { flow, ask } = fullQueue();
    for (let i = 0; i < 4; i++) void ask('hog');
    void ask('polite');
    void ask('polite');
    expect(dropOf(await ask('polite')).reason).toBe('global-max-requests');
    expect(waitingOf(flow)).toEqual({ hog: 2, polite: 2 });
    expect(dropOf(await ask('hog')).reason).toBe('global-max-requests');
  });

  it('counts weights', async () => {
    const { flow, ask } = fullQueue({ flows: { gold: { weight: 3 } } });
    for (let i = 0; i < 4; i++) void ask('gold');
    void ask('plain');
    expect(dropOf(await ask('plain')).reason).toBe('global-max-requests');
    expect(waitingOf(flow)).toEqual({ gold: 3, plain: 1 });
  });

  it('gives a newcomer of a heavier flow as much more', async () => {
    const { flow, ask } = fullQueue({ flows: { gold: { weight: 3 } } });
    for (const name of ['gold', 'gold', 'plain', 'plain']) void ask(name);
    void ask('gold');
    expect(waitingOf(flow)).toEqual({ gold: 3, plain: 1 });
    expect(dropOf(await ask('gold')).reason).toBe('global-max-requests');
  });

  it('takes as many of a heavier flow as leave it more than the newcomer has for its weight', () => {
    const { flow, ask } = fullQueue({ limits: { maxRequests: 100, maxBytes: 100 }, flows: { gold: { weight: 2 } } });
    for (let i = 0; i < 10; i++) void ask('gold', 0, 10);
    void ask('polite', 0, 30);
    expect(waitingOf(flow)).toEqual({ gold: 7, polite: 1 });
  });

  it('drops nobody only to exchange who has more', async () => {
    const { flow, ask } = fullQueue();
    for (const name of ['hog', 'hog', 'other', 'polite']) void ask(name);
    expect(dropOf(await ask('polite')).reason).toBe('global-max-requests');
    expect(waitingOf(flow)).toEqual({ hog: 2, other: 1, polite: 1 });
  });

  it('goes by requests where the bytes just suffice', () => {
    const { flow, ask } = fullQueue({ limits: { maxRequests: 4, maxBytes: 50 } });
    for (let i = 0; i < 3; i++) void ask('many', 0, 2);
    void ask('large', 0, 34);
    void ask('polite', 0, 10);
    expect(waitingOf(flow)).toEqual({ many: 2, large: 1, polite: 1 });
  });

  it('passes over requests without bytes where bytes alone are short', () => {
    const { flow, ask } = fullQueue({ limits: { maxRequests: 100, maxBytes: 100 } });
    void ask('hog', 0, 60);
    void ask('hog', 0, 40);
    void ask('hog', 0, 0);
    void ask('polite', 0, 30);
    expect(waitingOf(flow)).toEqual({ hog: 2, polite: 1 });
    expect(flow.stats().waitingBytes).toBe(90);
  });

  it('takes requests without bytes as well where requests are short too', () => {
    const { flow, ask } = fullQueue({ limits: { maxRequests: 3, maxBytes: 100 } });
    void ask('hog', 0, 60);
    void ask('hog', 0, 40);
    void ask('hog', 0, 0);
    void ask('polite', 0, 30);
    expect(waitingOf(flow)).toEqual({ hog: 1, polite: 1 });
    expect(flow.stats().waitingBytes).toBe(90);
  });

  it('takes as many requests as are too many once the limit is lowered', () => {
    const { flow, ask } = fullQueue({ limits: { maxRequests: 6 } });
    for (let i = 0; i < 6; i++) void ask('hog');
    flow.reconfigure({ limits: { maxRequests: 4 } });
    void ask('polite');
    expect(waitingOf(flow)).toEqual({ hog: 3, polite: 1 });
  });

  it('lets a request without bytes leave a lower band where requests are short', () => {
    const { flow, ask } = fullQueue();
    void ask('empty', -1, 0);
    for (let i = 0; i < 3; i++) void ask('middle', 0);
    void ask('premium', 1);
    expect(waitingOf(flow, -1)).toEqual({});
    expect(waitingOf(flow, 1)).toEqual({ premium: 1 });
  });

  it.each(['one', 'two'])('counts weights that change while requests wait, here of %s', (lighter) => {
    const { flow, ask } = fullQueue({ limits: { maxRequests: 8 } });
    for (let i = 0; i < 8; i++) void ask(i % 2 === 0 ? 'one' : 'two');
    flow.reconfigure({ flows: { one: { weight: 4 }, two: { weight: 4 }, [lighter]: { weight: 2 } } });
    void ask('polite');
    expect(waitingOf(flow)).toEqual({ one: 4, two: 4, [lighter]: 3, polite: 1 });
  });

  it('lets a request of a lower band leave for one of a higher band, whatever their flows have waiting', async () => {
    const { flow, ask } = fullQueue();
    void ask('one', 0);
    const low = ask('other', -1);
    for (let i = 0; i < 2; i++) void ask('premium', 10);
    void ask('premium', 10);
    expect(dropOf(await low).reason).toBe('displaced');
    expect(waitingOf(flow, 10)).toEqual({ premium: 3 });
    void ask('premium', 10);
    expect(waitingOf(flow, 10)).toEqual({ premium: 4 });
    expect(waitingOf(flow, 0)).toEqual({});
    expect(dropOf(await ask('premium', 10)).reason).toBe('global-max-requests');
  });

  it('never lets a request of a higher band leave for one of a lower band', async () => {
    const { flow, ask } = fullQueue();
    for (let i = 0; i < 4; i++) void ask('premium', 10);
    expect(dropOf(await ask('polite', 0)).reason).toBe('global-max-requests');
    expect(waitingOf(flow, 10)).toEqual({ premium: 4 });
  });

  it('makes room within the limits of a band as well', async () => {
    const { flow, ask } = fullQueue({
      limits: { maxRequests: 100 },
      bands: [{ priority: 0, limits: { maxRequests: 3 } }],
    });
    const hog = [ask('hog'), ask('hog'), ask('hog')];
    void ask('low', -5);
    void ask('polite');
    expect(dropOf(await hog[2]).reason).toBe('displaced');
    expect(waitingOf(flow)).toEqual({ hog: 2, polite: 1 });
    expect(waitingOf(flow, -5)).toEqual({ low: 1 });
  });

  it('goes by the resource that is short: bytes where bytes are', async () => {
    const { flow, ask } = fullQueue({ limits: { maxRequests: 100, maxBytes: 100 } });
    for (let i = 0; i < 5; i++) void ask('many small', 0, 1);
    const large = [ask('large', 0, 40), ask('large', 0, 40)];
    void ask('polite', 0, 20);
    expect(dropOf(await large[1]).reason).toBe('displaced');
    expect(waitingOf(flow)).toEqual({ 'many small': 5, large: 1, polite: 1 });
  });

  it('takes as many of one flow as it needs, and nobody when that would not be enough', async () => {
    const { flow, ask } = fullQueue({ limits: { maxRequests: 100, maxBytes: 100 } });
    const small = Array.from({ length: 10 }, () => ask('hog', 0, 10));
    expect(dropOf(await ask('greedy', 0, 60)).reason).toBe('global-max-bytes');
    expect(flow.stats().evicted).toBe(0);
    void ask('polite', 0, 30);
    for (const gone of small.slice(7)) expect(dropOf(await gone).reason).toBe('displaced');
    expect(waitingOf(flow)).toEqual({ hog: 7, polite: 1 });
  });

  it('takes from lower bands first, and from its own band what is missing', async () => {
    const { flow, ask } = fullQueue({ limits: { maxRequests: 100, maxBytes: 100 } });
    void ask('low', -1, 20);
    for (let i = 0; i < 8; i++) void ask('hog', 0, 10);
    void ask('polite', 0, 40);
    expect(waitingOf(flow)).toEqual({ hog: 6, polite: 1 });
    expect(waitingOf(flow, -1)).toEqual({});
  });

  it('passes over lower bands that hold no bytes where bytes are short', async () => {
    const { flow, ask } = fullQueue({ limits: { maxRequests: 100, maxBytes: 100 } });
    void ask('empty', -2, 0);
    void ask('large', -1, 100);
    void ask('premium', 1, 50);
    expect(waitingOf(flow, -2)).toEqual({ empty: 1 });
    expect(waitingOf(flow, -1)).toEqual({});
    expect(waitingOf(flow, 1)).toEqual({ premium: 1 });
  });

  it('does not help a flow over its own limit', async () => {
    const { flow, ask } = fullQueue({ defaultBand: { flowLimits: { maxRequests: 1 } } });
    for (const name of ['a', 'b', 'c']) void ask(name, -1);
    void ask('premium', 5);
    expect(dropOf(await ask('premium', 5)).reason).toMatch(/max-requests/);
    expect(flow.stats()).toMatchObject({ waiting: 4, evicted: 0 });
  });

  it.each([
    ['by deadline', { ordering: edf() }],
    ['in one queue for all', { fairness: globalStrict() }],
    ['by deadline in one queue', { ordering: edf(), fairness: globalStrict() }],
  ])('knows the newest of a flow whose requests stand %s', async (_, defaultBand) => {
    const { flow, ask } = fullQueue({ defaultBand, flows: {} });
    const hog = [1, 2, 3].map((i) => flow.enqueue({ byteSize: 1, ttlMs: 1000 - i }, key('hog')));
    void ask('other');
    void ask('polite');
    expect(dropOf(await hog[2]).reason).toBe('displaced');
    expect(waitingOf(flow)).toEqual({ hog: 2, other: 1, polite: 1 });
    expect(audit(flow).violations).toEqual([]);
  });

  it('knows what waited before it was switched on', async () => {
    const { flow, ask } = fullQueue({ overflow: 'reject' });
    const hog = [ask('hog'), ask('hog'), ask('hog')];
    void ask('other');
    expect(dropOf(await ask('polite')).reason).toBe('global-max-requests');
    flow.reconfigure({ overflow: 'fair' });
    void ask('polite');
    expect(dropOf(await hog[2]).reason).toBe('displaced');
  });

  it('goes by the weight that refreshFlow found', async () => {
    const weights = new Map([['gold', 4]]);
    const { flow, ask } = fullQueue({ flows: (name) => ({ weight: weights.get(name) ?? 1 }) });
    const gold = ['gold', 'gold', 'gold', 'plain'].map((name) => ask(name));
    weights.set('gold', 1);
    flow.refreshFlow('gold');
    void ask('newcomer');
    expect(dropOf((await now(gold[2]!))!).reason).toBe('displaced');
    expect(waitingOf(flow)).toEqual({ gold: 2, plain: 1, newcomer: 1 });
  });

  it('counts flows that are dispatched, cancelled and expired', async () => {
    const { flow, clock } = makeFlow({
      overflow: 'fair',
      limits: { maxRequests: 6 },
      defaultBand: { fairness: globalStrict() },
    });
    const running = runNow(flow);
    const abort = new AbortController();
    const first = flow.enqueue({ byteSize: 1 }, key('a'));
    void flow.enqueue({ byteSize: 1, signal: abort.signal }, key('a'));
    void flow.enqueue({ byteSize: 1, ttlMs: 10 }, key('a'));
    void flow.enqueue({ byteSize: 1 }, key('a'));
    for (let i = 0; i < 2; i++) void flow.enqueue({ byteSize: 1 }, key('b'));
    running.release();
    leaseOf(await first);
    abort.abort();
    clock.advance(20);
    expect(waitingOf(flow)).toEqual({ a: 1, b: 2 });
    const b = flow.enqueue({ byteSize: 1 }, key('b'));
    for (let i = 0; i < 2; i++) void flow.enqueue({ byteSize: 1 }, key('c'));
    void flow.enqueue({ byteSize: 1 }, key('a'));
    expect(dropOf(await b).reason).toBe('displaced');
    expect(waitingOf(flow)).toEqual({ a: 2, b: 2, c: 2 });
  });

  it('says who took the place', async () => {
    const { ask } = fullQueue();
    const hog = [1, 2, 3, 4].map(() => ask('hog'));
    void ask('polite');
    const own = dropOf(await hog[3]);
    expect(own.explanation?.decidedBy).toBe('limit');
    expect(own.explanation?.text).toContain('its flow had the most waiting');
    void ask('premium', 7);
    const higher = dropOf(await hog[2]);
    expect(higher.explanation).toMatchObject({ decidedBy: 'priority' });
  });

  it('leaves a polite tenant alone while a hog floods the queue', async () => {
    const { flow, ask } = fullQueue({ limits: { maxRequests: 50 } });
    let refused = 0;
    for (let i = 0; i < 400; i++) {
      void ask('hog');
      if (i % 20 === 0) void ask('polite').then((outcome) => (refused += outcome.type === 'Dispatched' ? 0 : 1));
    }
    await now(ask('hog'));
    expect(refused).toBe(0);
    expect(waitingOf(flow)).toEqual({ hog: 30, polite: 20 });
  });
});

describe('a request that could go at once needs no place in the queue', () => {
  it('where lower bands wait before a gate that is open for it', async () => {
    const { flow } = makeFlow({
      saturationDetector: dial(0.6, true),
      limits: { maxRequests: 2 },
      usageLimitPolicy: {
        type: 'two-steps',
        computeLimits: (_, priorities, ceilings) =>
          void ceilings.splice(0, ceilings.length, ...priorities.map((p) => (p > 0 ? 1 : 0.5))),
      },
    });
    for (let i = 0; i < 2; i++) void flow.enqueue({ byteSize: 1 }, key('batch', 0));
    expect(flow.stats().waiting).toBe(2);
    leaseOf(await now(flow.enqueue({ byteSize: 1 }, key('premium', 10))));
    expect(leaseOf(flow.tryEnqueue({ byteSize: 1 }, key('premium', 10))).isReleased).toBe(false);
  });

  it.each(['reject', 'fair'] as const)(
    'so that an idle model is served while another one fills the band, with overflow %s',
    async (overflow) => {
      const pool = new EndpointPool();
      for (const model of ['a', 'b']) pool.add(model, { labels: { model } });
      const { flow } = makeFlow({
        overflow,
        pool,
        endpointFilters: [labelFilter({ label: 'model', of: (request) => (request as { model?: string }).model })],
        holBlocking: 'none',
        bands: [{ priority: 0, limits: { maxRequests: 3 } }],
      });
      const ask = (model: string) => flow.enqueue({ byteSize: 1, model } as FlowRequest, key('tenant'));
      for (let i = 0; i < 4; i++) void ask('a');
      expect(flow.stats().waiting).toBe(3);
      expect(leaseOf(await now(ask('b'))).endpoint?.id).toBe('b');
      const second = await now(ask('b'));
      // With a fair overflow a place is found for what must wait as well.
      if (overflow === 'fair') expect(second).toBeUndefined();
      else expect(dropOf(second).reason).toBe('band-max-requests');
    },
  );

  it('but one that is larger than a limit is rejected, idle or not', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 2, maxBytes: 10 } });
    expect(dropOf(await flow.enqueue({ byteSize: 11 }, key())).reason).toBe('global-max-bytes');
  });
});
