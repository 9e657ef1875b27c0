/** Mistakes that nobody sees in a type, told when they are made: what came, and what was expected. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  concurrencyDetector,
  EndpointPool,
  edf,
  FlowConfigError,
  FlowController,
  type FlowControllerOptions,
  leastLoaded,
  overviewOf,
  roundRobin,
  utilizationDetector,
} from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { key, makeFlow, request, runNow } from '../support/flow.js';

const saturationDetector = concurrencyDetector({ maxConcurrency: 1 });

/** The message for options that a caller without types may write. */
function messageFor(options: object): string {
  try {
    new FlowController({ saturationDetector, clock: new ManualClock(), ...options } as FlowControllerOptions);
  } catch (error) {
    if (error instanceof FlowConfigError) return error.message;
    throw error;
  }
  return 'no error';
}

/** What is written to stderr from now on. */
function stderr(): string[] {
  const lines: string[] = [];
  for (const method of ['warn', 'error'] as const) {
    const spy = vi
      .spyOn(console, method)
      .mockImplementation((...parts: unknown[]) => void lines.push(parts.map(String).join(' ')));
    onTestFinished(() => spy.mockRestore());
  }
  return lines;
}

describe('a factory that is passed uncalled', () => {
  it.each([
    ['of a detector with options', concurrencyDetector],
    ['of a detector without any', utilizationDetector],
    ['of one’s own', (): object => ({ type: 'own', saturation: () => 0 })],
  ])('is told when it is the detector: %s', (_, factory) => {
    expect(messageFor({ saturationDetector: factory })).toBe(
      'FlowController options: saturationDetector: expected a saturation detector, such as concurrencyDetector({ maxConcurrency: 15 }), ' +
        'or a function that returns the saturation; got a function that makes detectors, and has to be called',
    );
  });

  it('is told when it is a detector of a band', () => {
    expect(messageFor({ bands: [{ priority: 1, saturationDetector: concurrencyDetector }] })).toContain(
      'bands[0].saturationDetector: expected a saturation detector',
    );
  });

  it.each([
    [
      'fairness policy',
      { defaultBand: { fairness: roundRobin } },
      'defaultBand.fairness: expected a fairness policy, such as roundRobin()',
    ],
    [
      'ordering policy',
      { defaultBand: { ordering: edf } },
      'defaultBand.ordering: expected an ordering policy, such as fcfs()',
    ],
    [
      'picker',
      { pool: new EndpointPool(), endpointPicker: leastLoaded },
      'endpointPicker: expected an endpoint picker, such as leastLoaded()',
    ],
  ])('is told when it is a %s', (_, options, expected) => {
    expect(messageFor(options)).toBe(`FlowController options: ${expected}; got a function: call it if it makes one`);
  });

  it('does not stand in the way of a detector that is a function, whatever it makes of an empty pool', () => {
    expect(messageFor({ saturationDetector: ({ endpoints }: { endpoints: unknown[] }) => 1 / endpoints.length })).toBe(
      'no error',
    );
    expect(
      messageFor({
        saturationDetector: ({ endpoints }: { endpoints: { metrics: { kv: number } }[] }) => endpoints[0]!.metrics.kv,
      }),
    ).toBe('no error');
  });
});

describe('an async function where the answer is needed at once', () => {
  it('is told of a detector that is a function', () => {
    const expected = 'expected a function that returns the saturation at once, a number; got an async function';
    expect(messageFor({ saturationDetector: async () => 0 })).toBe(
      `FlowController options: saturationDetector: ${expected}`,
    );
    // As compilers write it for old targets.
    expect(messageFor({ saturationDetector: () => Promise.reject(new Error('unheard')) })).toContain(
      'expected a function that returns the saturation at once, a number; got a function that returns a promise',
    );
  });

  it.each([
    [
      'saturationDetector',
      { saturationDetector: { type: 'own', saturation: async () => 0 } },
      'saturationDetector.saturation',
    ],
    [
      'ordering',
      { defaultBand: { ordering: { type: 'own', compare: async () => 0 } } },
      'defaultBand.ordering.compare',
    ],
    ['admission', { admission: { type: 'own', admit: async (): Promise<string> => 'admit' } }, 'admission.admit'],
    [
      'optional hook',
      { admission: { type: 'own', admit: (): string => 'admit', released: async () => {} } },
      'admission.released',
    ],
  ])('is told of a method of a plugin: %s', (_, options, path) => {
    expect(messageFor(options)).toBe(
      `FlowController options: ${path}: expected a method that answers at once; got an async function`,
    );
  });

  it('costs a detector whose promise nobody foresaw its reading, and the process nothing', async () => {
    const { flow } = makeFlow({
      saturationDetector: {
        type: 'own',
        saturation: (() => Promise.reject(new Error('unheard'))) as unknown as () => number,
      },
    });
    const errors: unknown[] = [];
    flow.on('pluginError', ({ error }) => errors.push(error));
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
    await new Promise(setImmediate);
    expect(String(errors[0])).toBe('RangeError: saturation must be a finite number from 0 up; got a promise');
  });
});

describe('the name of a hook that is nearly right', () => {
  it.each([
    ['onDispatched', 'dispatched'],
    ['handleDispatched', 'dispatched'],
    ['Dispatched', 'dispatched'],
    ['dispatch', 'dispatched'],
    ['subcribe', 'subscribe'],
  ])('is told of a plugin: %s', (given, meant) => {
    const detector = { type: 'own', saturation: () => 0, [given]: () => {} };
    expect(messageFor({ saturationDetector: detector })).toBe(
      `FlowController options: saturationDetector.${given}: expected the name "${meant}", or one that cannot be taken for it; ` +
        `got a method that a saturation detector never has called`,
    );
  });

  it('is told of a class', () => {
    class Own {
      readonly type = 'own';
      admit(): 'admit' {
        return 'admit';
      }
      onReleased(): void {}
    }
    expect(messageFor({ admission: new Own() })).toContain('admission.onReleased: expected the name "released"');
  });

  it('is no problem beside the hook itself, nor where it is no method', () => {
    const own = { type: 'own', saturation: () => 0, dispatched: () => {}, onDispatched: () => {}, release: 7 };
    expect(messageFor({ saturationDetector: own })).toBe('no error');
  });

  it('of a fairness selector is an error of the plugin, which works on without it', () => {
    const lines = stderr();
    const { flow } = makeFlow({
      defaultBand: {
        fairness: {
          type: 'own',
          createSelector: (band) => ({ pick: () => [...band.activeFlows()][0], onDispatched: () => {} }) as never,
        },
      },
    });
    expect(flow.tryEnqueue(request, key())).toMatchObject({ type: 'Dispatched' });
    expect(lines.join()).toContain('has a method "onDispatched" that is never called: the name is "dispatched"');
  });
});

describe('calls that cannot be right', () => {
  it.each([
    [undefined, 'nothing'],
    ['work', '"work" (string)'],
  ])('run without work is rejected before anything is queued: %s', async (work, got) => {
    const { flow } = makeFlow();
    await expect(flow.run(request, key(), work as never)).rejects.toThrow(
      new FlowConfigError('run', [{ path: 'work', expected: 'a function that takes the lease', got }]),
    );
    expect(flow.stats()).toMatchObject({ enqueued: 0 });
  });

  it('run with a misspelt word for evictions is rejected', async () => {
    const { flow } = makeFlow();
    await expect(flow.run(request, key(), () => 1, { onEvicted: 'requeu' as never })).rejects.toThrow(
      'run: options.onEvicted: expected one of "drop", "requeue" (did you mean "requeue"?); got "requeu" (string)',
    );
  });

  it('on names the events when there is none of that name', () => {
    const { flow } = makeFlow();
    expect(() => flow.on('dispatch' as never, () => {})).toThrow(
      /^on: event: expected one of "enqueued", .*"flowRemoved" \(did you mean "dispatched"\?\); got "dispatch" \(string\)$/,
    );
    expect(() => flow.on('toString' as never, () => {})).toThrow(FlowConfigError);
    expect(() => flow.on('dispatched', undefined as never)).toThrow('on: listener: expected a function; got nothing');
  });

  it('on of a pool names its events, too', () => {
    const pool = new EndpointPool();
    expect(() => pool.on('add' as never, () => {})).toThrow(
      /^on: event: expected one of "added", .*did you mean "added"/,
    );
    expect(() => pool.on('added', 7 as never)).toThrow('on: listener: expected a function; got 7 (number)');
  });
});

describe('a time to live that was meant in seconds', () => {
  it.each([
    ['defaultRequestTtl', { defaultRequestTtl: 60 }],
    ['noEndpointRequestTtl', { noEndpointRequestTtl: 30 }],
    ['bands[0].requestTtl', { bands: [{ priority: 1, requestTtl: 5 }] }],
    ['defaultBand.requestTtl', { defaultBand: { requestTtl: 300 } }],
    ['defaultNegativeBand.requestTtl', { defaultNegativeBand: { requestTtl: 10 } }],
  ])('is warned of: %s', (path, options) => {
    const lines = stderr();
    new FlowController({ saturationDetector, ...options });
    const ms = Object.values(options).flat()[0];
    const value = typeof ms === 'number' ? ms : ms!.requestTtl;
    expect(lines).toEqual([
      `headgate: ${path} is ${value}, which is ${value} ms. Write "${value}s" if you mean seconds, and "${value}ms" if you mean it.`,
    ]);
  });

  it('is warned of when it is put in later', () => {
    const flow = new FlowController({ saturationDetector });
    const lines = stderr();
    flow.reconfigure({ defaultRequestTtl: 60 });
    expect(lines).toHaveLength(1);
    flow.reconfigure({ limits: { maxRequests: 7 } });
    expect(lines).toHaveLength(1);
  });

  it.each([[{ defaultRequestTtl: '60ms' }], [{ defaultRequestTtl: 0 }], [{ defaultRequestTtl: 1000 }], [{}]])(
    'is no matter for %o',
    (options) => {
      const lines = stderr();
      new FlowController({ saturationDetector, ...options });
      expect(lines).toEqual([]);
    },
  );

  it('is no matter on a clock of one’s own, on which tests and simulations run', () => {
    const lines = stderr();
    new FlowController({ saturationDetector, defaultRequestTtl: 60, clock: new ManualClock() });
    expect(lines).toEqual([]);
  });
});

describe('limits of bands that add up to more than that of all', () => {
  const limits = { maxRequests: 100 };
  const bands = [
    { priority: 1, limits: { maxRequests: 60 } },
    { priority: 0, limits: { maxRequests: 60 } },
  ];

  it('are warned of, also when they are put in later', () => {
    const lines = stderr();
    const flow = new FlowController({ saturationDetector, limits, bands });
    const warning =
      'headgate: limits.maxRequests of the bands add up to 120, more than the 100 of all: lower bands can fill the queue. ' +
      "With overflow: 'fair' higher ones pass.";
    expect(lines).toEqual([warning]);
    flow.reconfigure({ defaultRequestTtl: '1m' });
    expect(lines).toHaveLength(1);
    flow.reconfigure({ limits: { maxRequests: 110 } });
    expect(lines).toHaveLength(2);
  });

  it.each([
    ['somebody leaves for a higher band', { limits, bands, overflow: 'fair' as const }],
    ['they fit', { limits: { maxRequests: 120 }, bands }],
    ['only one band has a limit of its own', { limits, bands: [bands[0]!, { priority: 0 }] }],
    ['the clock is one’s own', { limits, bands, clock: new ManualClock() }],
  ])('are no matter where %s', (_, options) => {
    const lines = stderr();
    new FlowController({ saturationDetector, ...options });
    expect(lines).toEqual([]);
  });
});

describe('an error of a plugin that nobody listens for', () => {
  function failing(): FlowController {
    return makeFlow({
      saturationDetector: () => {
        throw new Error('no metrics');
      },
      gate: { failValue: 0 },
      defaultBand: {
        ordering: {
          type: 'own',
          compare: () => {
            throw new Error('no order');
          },
        },
      },
    }).flow;
  }

  it('is written to stderr once for each kind', () => {
    const lines = stderr();
    const flow = failing();
    for (let i = 0; i < 3; i++) flow.tryEnqueue(request, key());
    expect(lines).toEqual([
      'headgate: the saturationDetector "function" failed, and a fallback stood in. This is written once; ' +
        "flow.on('pluginError', …) tells of every time. Error: no metrics",
    ]);
    expect(flow.stats().pluginErrors).toBeGreaterThan(1);
  });

  it('is not written while somebody listens', () => {
    const lines = stderr();
    const flow = failing();
    const stop = flow.on('pluginError', () => {});
    flow.tryEnqueue(request, key());
    expect(lines).toEqual([]);
    stop();
    flow.tryEnqueue(request, key());
    expect(lines).toHaveLength(1);
  });

  it('of a listener is written as well, and of a pool’s listener', () => {
    const lines = stderr();
    const pool = new EndpointPool();
    const { flow } = makeFlow({ pool });
    flow.on('dispatched', () => {
      throw new Error('no log');
    });
    pool.on('added', () => {
      throw new Error('no entry');
    });
    pool.add('a');
    pool.add('b');
    flow.tryEnqueue(request, key());
    expect(lines).toEqual([expect.stringContaining('Error: no entry'), expect.stringContaining('Error: no log')]);
  });
});

describe('options of methods off the way of a request', () => {
  it('close tells an unknown option, and does not close', async () => {
    const { flow } = makeFlow();
    await expect(flow.close({ drianMs: 5 } as never)).rejects.toThrow(
      /^close: drianMs: expected .*did you mean.*drainMs.*; got an unknown key/,
    );
    await expect(flow.close({ drainMs: '5s' } as never)).rejects.toThrow(
      'close: drainMs: expected milliseconds from 0 up; got "5s" (string)',
    );
    await expect(flow.close(5 as never)).rejects.toThrow('close: expected an object; got 5 (number)');
    expect(runNow(flow).isReleased).toBe(false);
  });

  it('overview tells bounds that are wrong', () => {
    const { flow } = makeFlow();
    expect(() => overviewOf(flow, { flow: 5 } as never)).toThrow(
      /^overviewOf: flow: expected .*did you mean.*flows.*; got an unknown key/,
    );
    expect(() => overviewOf(flow, { flows: -1 })).toThrow(
      "overviewOf: flows: expected a number from 0 up, or 'all'; got -1 (number)",
    );
    expect(overviewOf(flow, { flows: Number.POSITIVE_INFINITY, waits: undefined }).bands).toHaveLength(1);
  });
});
