import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  EndpointPool,
  edf,
  explainWait,
  FlowConfigError,
  type FlowController,
  type FlowControllerOptions,
  type FlowRequest,
  inFlightEviction,
  type OrderingPolicy,
  overviewOf,
  roundRobin,
  staticUsageLimit,
  weightedBands,
} from '../../../src/index.js';
import { pluginFaults } from '../../../src/testing/contracts/plugin-faults.js';
import { dropOf, key, leaseOf, makeFlow, record, request, runNow } from '../../support/flow.js';
import { live } from '../../support/life.js';

type Act = () => unknown;

/** Every method of foreign code that the controller calls: `act` is called inside it, and its answer is the answer. */
const hooks: Readonly<Record<string, (act: Act) => Partial<FlowControllerOptions>>> = {
  'fairness createSelector': (act) => fair({ createSelector: act }),
  'fairness fairnessIndex': (act) => ({
    bands: [{ priority: 0, fairness: Object.defineProperty({ ...roundRobin() }, 'fairnessIndex', { get: act }) }],
  }),
  ...Object.fromEntries(
    [
      'pick',
      'flowActivated',
      'flowDeactivated',
      'itemAdded',
      'itemRemoved',
      'dispatched',
      'consumed',
      'settled',
      'lead',
      'service',
      'flowRemoved',
    ].map((method) => [
      `fairness ${method}`,
      (act: Act) =>
        fair({
          createSelector: (band: never) =>
            Object.assign(Object.create(roundRobin().createSelector(band)), { [method]: act }),
        }),
    ]),
  ),
  'ordering compare': (act) => ({ bands: [{ priority: 0, ordering: { type: 'x', compare: act as never } }] }),
  'ordering isInfeasible': (act) => ({ bands: [{ priority: 0, ordering: { ...edf(), isInfeasible: act as never } }] }),
  'ordering firstToken': (act) => ({ bands: [{ priority: 0, ordering: { ...edf(), firstToken: act as never } }] }),
  'ordering score': (act) => ({ bands: [{ priority: 0, ordering: scored({ score: act as never }) }] }),
  'ordering dispatched': (act) => ({
    bands: [{ priority: 0, ordering: scored({ score: () => 1, dispatched: act as never }) }],
  }),
  'detector saturation': (act) => ({ saturationDetector: { type: 'x', saturation: act as never } }),
  'detector as a function': (act) => ({
    saturationDetector: ({ endpoints }) => (endpoints.length === 0 ? 1 : (act() as number)),
  }),
  'detector filter': (act) => detector({ filter: act }),
  'detector isBlindTo': (act) => detector({ isBlindTo: act }),
  'detector seatsOf': (act) => detector({ seatsOf: act }),
  'detector subscribe': (act) => detector({ subscribe: act }),
  'detector unsubscribe': (act) => detector({ subscribe: () => act }),
  'detector dispatched': (act) => detector({ dispatched: act }),
  'detector sessionOf': (act) => detector({ sessionOf: act }),
  'detector sessionEnded': (act) => detector({ sessionEnded: act }),
  'detector released': (act) => detector({ released: act }),
  'detector reported': (act) => detector({ reported: act }),
  'detector answered': (act) => detector({ answered: act }),
  'detector withRoomFor': (act) => detector({ withRoomFor: act }),
  'detector waitOf': (act) => detector({ withRoomFor: () => [], waitOf: act }),
  'detector quotas': (act) => detector({ quotas: act }),
  'detector sessions': (act) => detector({ sessions: act }),
  "a band's detector": (act) => ({
    bands: [{ priority: 0, saturationDetector: { type: 'x', saturation: act as never } }],
  }),
  'usage limit computeLimits': (act) => ({
    usageLimitPolicy: {
      type: 'x',
      computeLimits(_saturation, _priorities, ceilings) {
        for (let rank = 0; rank < ceilings.length; rank++) ceilings[rank] = act() as number;
      },
    },
  }),
  'usage limit answers': (act) => ({ usageLimitPolicy: { type: 'x', computeLimits: act as never } }),
  'usage limit dispatched': (act) => ({ usageLimitPolicy: { ...staticUsageLimit(), dispatched: act as never } }),
  'band order rank': (act) => ({
    bandOrder: {
      type: 'x',
      rank(_saturation, _priorities, _ceilings, order) {
        for (let rank = 0; rank < order.length; rank++) order[rank] = act() as number;
      },
    },
  }),
  'band order answers': (act) => ({ bandOrder: { type: 'x', rank: act as never } }),
  'band order recordDispatch': (act) => ({ bandOrder: { ...weightedBands(), recordDispatch: act as never } }),
  'picker pick': (act) => ({ endpointPicker: { type: 'x', pick: act as never } }),
  'filter classOf': (act) => ({
    endpointFilters: [{ type: 'x', classOf: act as never, keep: (endpoints) => endpoints }],
  }),
  'filter keep': (act) => ({
    endpointFilters: [{ type: 'x', classOf: () => 'm', keep: act as never }],
    headroom: 'preferred',
  }),
  'filter keep, flows held back': (act) => ({
    endpointFilters: [{ type: 'x', classOf: () => 'm', keep: act as never }],
    holBlocking: 'flow',
  }),
  'admission admit': (act) => ({ admission: { type: 'x', admit: act as never } }),
  'admission refusal': (act) => ({
    admission: { type: 'x', admit: () => ({ reason: 'no', retryAfterMs: act() as never }) },
  }),
  'admission refusal of another policy': (act) => ({
    admission: { type: 'x', admit: () => ({ reason: 'no', policy: act() as never }) },
  }),
  'admission refusal of a cause': (act) => ({
    admission: { type: 'x', admit: () => ({ reason: 'no', cause: act() as never }) },
  }),
  'admission released': (act) => ({ admission: { type: 'x', admit: () => 'admit', released: act as never } }),
  onDispatch: (act) => ({ onDispatch: act as never }),
  flows: (act) => ({ flows: act as never, bands: [{ priority: 0, maxInFlightPerFlow: 1 }] }),
  'eviction filter accepts': (act) => ({
    eviction: inFlightEviction({ filter: { type: 'x', accepts: act as never } }),
  }),
  'eviction ordering compare': (act) => ({
    eviction: inFlightEviction({
      filter: { type: 'x', accepts: () => true },
      ordering: { type: 'x', compare: act as never },
    }),
  }),
};

function scored(
  scores: Pick<NonNullable<OrderingPolicy['scores']>, 'score'> & { dispatched?: () => void },
): OrderingPolicy {
  return { type: 'x', compare: () => 0, arrivalOrder: true, scores: { lookahead: 4, overtakings: 2, ...scores } };
}

function fair(policy: object): Partial<FlowControllerOptions> {
  return { bands: [{ priority: 0, fairness: { type: 'x', ...policy } as never }], flowIdleTimeout: 50 };
}

function detector(methods: object): Partial<FlowControllerOptions> {
  return {
    saturationDetector: Object.defineProperties(concurrencyDetector({ maxConcurrency: 1 }), descriptors(methods)),
  };
}

function descriptors(methods: object): PropertyDescriptorMap {
  return Object.getOwnPropertyDescriptors(methods);
}

const rejections: unknown[] = [];
const noteRejection = (reason: unknown): void => void rejections.push(reason);

beforeEach(() => {
  rejections.length = 0;
  process.on('unhandledRejection', noteRejection);
});

afterEach(async () => {
  await new Promise(setImmediate);
  process.off('unhandledRejection', noteRejection);
  expect(rejections.length).toBe(0);
});

/** Plays a life for every misdeed, and says which one broke it. */
async function survives(play: (act: Act) => Promise<void>): Promise<void> {
  for (const { name, act } of pluginFaults) {
    await play(act).catch((error: unknown) => {
      throw new Error(`broken when it ${name}`, { cause: error });
    });
  }
}

describe('foreign code that answers anything, or throws, breaks no caller', () => {
  it.each(Object.entries(hooks))('%s', async (_hook, optionsFor) => {
    await survives((act) => live(optionsFor(act)));
  });

  it('a listener of every event', async () => {
    await survives((act) => live({ eviction: inFlightEviction() }, { listener: act }));
  });

  it.each(['addEventListener', 'removeEventListener'])('%s of a signal', async (method) => {
    await survives(async (act) => {
      const signal = (): object => ({
        aborted: false,
        addEventListener: () => {},
        removeEventListener: () => {},
        [method]: act,
      });
      await live(
        {},
        { request: () => ({ signal: signal() }), allows: /its signal is not the one that is listened to/ },
      );
    });
  });

  it('a signal that cannot be read any more once its request waits', async () => {
    const signal = (): object => {
      let reads = 0;
      const aborted = (): boolean => {
        if (++reads > 2) throw new Error('aborted');
        return false;
      };
      return Object.defineProperty({ addEventListener: () => {}, removeEventListener: () => {} }, 'aborted', {
        get: aborted,
      });
    };
    await live({}, { request: () => ({ signal: signal() }) });
  });
});

describe('foreign code that calls the controller back breaks no caller', () => {
  let newest = 100;
  const calls: readonly ((flow: FlowController) => unknown)[] = [
    (flow) => flow.enqueue({ byteSize: 1, ttlMs: 5 }, { fairnessId: 'inside', priority: newest++ }),
    (flow) => flow.tryEnqueue({ byteSize: 1 }, { fairnessId: 'inside', priority: newest++ }),
    (flow) => flow.reconfigure({ limits: { maxRequests: 50 } }),
    (flow) => overviewOf(flow),
    (flow) => overviewOf(flow, { flows: 'all' }),
    (flow) => flow.figures(),
    (flow) => flow.figures(),
    (flow) => explainWait(flow, 3),
  ];

  it.each(Object.entries(hooks))('%s', async (_hook, optionsFor) => {
    for (const call of calls) {
      let depth = 0;
      let left = 200;
      const act = (flow: FlowController | undefined): unknown => {
        if (flow === undefined || depth > 0 || left-- <= 0) return undefined;
        depth++;
        try {
          return call(flow);
        } finally {
          depth--;
        }
      };
      await live((flow) => optionsFor(() => act(flow())), { isMeddledWith: true });
    }
  });
});

describe('a request whose properties change at every reading', () => {
  const changing = (name: string, ...answers: unknown[]): FlowRequest =>
    Object.defineProperty({ byteSize: 10 }, name, {
      get: () => (answers.length > 1 ? answers.shift() : answers[0]),
    }) as FlowRequest;

  it('is booked with the bytes that were checked', async () => {
    const { flow } = makeFlow({ limits: { maxBytes: 25 } });
    const lease = runNow(flow);
    const waiting = flow.enqueue(changing('byteSize', 20, Number.NaN, '20', -1), key());
    expect(flow.stats().waitingBytes).toBe(20);
    expect(dropOf(await flow.enqueue({ byteSize: 10 }, key())).reason).toBe('global-max-bytes');
    lease.release();
    leaseOf(await waiting).release();
    expect(flow.stats().waitingBytes).toBe(0);
  });

  it('is rejected, in a plugin as well, when a reading throws or cannot be right', async () => {
    const { flow } = makeFlow();
    const wrong = (): FlowRequest => changing('tokens', Number.NaN);
    await expect(flow.enqueue(wrong(), key())).rejects.toThrow(
      'enqueue: request.tokens: expected an integer from 0 up; got NaN (number)',
    );
    expect(() => flow.tryEnqueue(wrong(), key())).toThrow(FlowConfigError);
    const inside: Promise<unknown>[] = [];
    const thrown: unknown[] = [];
    flow.on('dispatched', () => {
      inside.push(flow.enqueue(wrong(), key()), flow.enqueue(changing('byteSize', 1, 'x'), key()));
      try {
        flow.tryEnqueue(wrong(), key());
      } catch (error) {
        thrown.push(error);
      }
    });
    runNow(flow);
    for (const call of inside) await expect(call).rejects.toThrow(FlowConfigError);
    expect(thrown).toEqual([expect.any(FlowConfigError)]);
    expect(flow.stats()).toMatchObject({ enqueued: 1, dispatched: 1, waiting: 0 });
  });

  it('waits, and is no less served, when its signal cannot be listened to', async () => {
    const { flow } = makeFlow();
    const errors = record(flow, 'pluginError');
    const lease = runNow(flow);
    const signal = {
      aborted: false,
      addEventListener: () => {
        throw new Error('no listeners here');
      },
      removeEventListener: () => {},
    };
    const waiting = flow.enqueue({ byteSize: 1, signal: signal as never }, key());
    expect(flow.stats().waiting).toBe(1);
    expect(errors).toEqual([{ kind: 'signal', type: 'AbortSignal', error: new Error('no listeners here') }]);
    lease.release();
    expect((await waiting).type).toBe('Dispatched');
  });
});

describe('wrong answers', () => {
  it('of a filter: endpoints that it was not given are no endpoints, and are reported', async () => {
    const pool = new EndpointPool();
    for (const id of ['a', 'b']) pool.add(id);
    const stranger = new EndpointPool().add('c');
    const { flow } = makeFlow({
      pool,
      saturationDetector: { type: 'x', saturation: () => 0, filter: ([first]) => [first, null, stranger] as never },
    });
    const errors = record(flow, 'pluginError');
    const lease = runNow(flow);
    expect(['a', 'b']).toContain(lease.endpoint?.id);
    expect(errors.map(({ type, error }) => [type, String(error)])).toEqual([
      ['x', expect.stringContaining('filter must return an array of the endpoints that it was given; got ')],
    ]);
    expect(() => lease.release()).not.toThrow();
  });

  it('of subscribe: the gate is looked at again by a timer, as if it announced nothing', async () => {
    let saturation = 1;
    const { flow, clock } = makeFlow({
      saturationDetector: { type: 'x', saturation: () => saturation, subscribe: () => null as never },
    });
    const waiting = flow.enqueue(request, key());
    saturation = 0;
    clock.advance(10);
    expect((await waiting).type).toBe('Dispatched');
  });

  it.each([Number.NaN, -1, '5', null, {}])(
    'of an admission policy: a refusal with a retryAfterMs of %j is none',
    async (retryAfterMs) => {
      const { flow } = makeFlow({
        admission: { type: 'x', admit: () => ({ reason: 'no', retryAfterMs: retryAfterMs as never }) },
      });
      const errors = record(flow, 'pluginError');
      expect((await flow.enqueue(request, key())).type).toBe('Dispatched');
      expect(errors).toMatchObject([
        { kind: 'admission', type: 'x', error: { message: expect.stringContaining('a retryAfterMs from 0 up') } },
      ]);
    },
  );
});
