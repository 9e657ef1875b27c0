import { expect, it } from 'vitest';
import * as z from 'zod/mini';
import { isSamePlugin } from '../../src/base/plugin-origin.js';
import { loadConfig } from '../../src/config/index.js';
import {
  defaultRegistry,
  definePlugin,
  FlowController,
  type FlowControllerOptions,
  overviewOf,
  roundRobin,
} from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { leaseOf } from '../support/flow.js';

const counter = 'virtual-token-counter-fairness-policy';

interface Settings {
  readonly parameters?: object;
  readonly band?: object;
  readonly flowControl?: object;
}

/** A file that shares its bands by cost. */
function file({ parameters = {}, band = {}, flowControl = {} }: Settings = {}): FlowControllerOptions {
  const plugins = [
    { type: counter, parameters },
    { type: 'concurrency-detector', parameters: { maxConcurrency: 1 } },
  ];
  return loadConfig({
    apiVersion: 'llm-d.ai/v1alpha1',
    kind: 'EndpointPickerConfig',
    featureGates: ['flowControl'],
    plugins,
    flowControl: {
      saturationDetector: { pluginRef: 'concurrency-detector' },
      defaultPriorityBand: { fairnessPolicyRef: counter, ...band },
      ...flowControl,
    },
  }).options;
}

/** The order in which five of each go, while a request of `heavy` runs that cost 100,000. */
async function orderAfter(reload: (flow: FlowController) => void): Promise<string> {
  const flow = new FlowController({ ...file(), clock: new ManualClock() });
  const holder = leaseOf(await flow.enqueue({ byteSize: 1, tokens: 100_000 }, { fairnessId: 'heavy' }));
  const order: string[] = [];
  const ends = ['heavy', 'light'].flatMap((fairnessId) =>
    Array.from({ length: 5 }, async () => {
      const lease = leaseOf(await flow.enqueue({ byteSize: 1, tokens: 100 }, { fairnessId }));
      order.push(fairnessId[0] as string);
      lease.report({ promptTokens: 100 });
      lease.release();
    }),
  );
  reload(flow);
  holder.report({ promptTokens: 100_000, completionTokens: 5000 });
  holder.release();
  await Promise.all(ends);
  await flow.close();
  return order.join('');
}

it('a file that is read again keeps what tenants have received', async () => {
  const debtCounts = 'lllllhhhhh';
  expect(await orderAfter(() => {})).toBe(debtCounts);
  expect(await orderAfter((flow) => flow.reconfigure(file()))).toBe(debtCounts);
  expect(
    await orderAfter((flow) => flow.reconfigure(file({ band: { maxRequests: 77 }, parameters: { lift: 'floor' } }))),
  ).toBe(debtCounts);
  expect(await orderAfter((flow) => [file(), file(), {}].forEach((next) => void flow.reconfigure(next)))).toBe(
    debtCounts,
  );
});

it('a file that is read again keeps what an admission policy has counted, and with other parameters it begins anew', async () => {
  const read = (refillPerSecond: number): FlowControllerOptions => {
    const { options } = loadConfig({
      apiVersion: 'llm-d.ai/v1alpha1',
      kind: 'EndpointPickerConfig',
      featureGates: ['flowControl'],
      plugins: [{ type: 'token-bucket', parameters: { capacity: 100, refillPerSecond } }],
      flowControl: { admissionPolicyPluginRef: 'token-bucket' },
    });
    return { ...options, saturationDetector: () => 0 };
  };
  const flow = new FlowController({ ...read(1), clock: new ManualClock() });
  const typeOf = async (tokens: number): Promise<string> =>
    (await flow.enqueue({ byteSize: 1, tokens }, { fairnessId: 'a' })).type;
  expect(await typeOf(80)).toBe('Dispatched');
  flow.reconfigure(read(1));
  expect(await typeOf(50)).toBe('RejectedCapacity');
  flow.reconfigure(read(1));
  expect(await typeOf(20)).toBe('Dispatched');
  flow.reconfigure(read(2));
  expect(await typeOf(50)).toBe('Dispatched');
  await flow.close();
});

it('a file with other parameters begins anew', async () => {
  expect(await orderAfter((flow) => flow.reconfigure(file({ parameters: { completionTokenPrice: 3 } })))).not.toBe(
    'lllllhhhhh',
  );
});

it('a file that is read again keeps what an ordering policy has learnt, for all bands of one object', async () => {
  let made = 0;
  const registry = defaultRegistry().add(
    definePlugin({
      kind: 'ordering',
      type: 'numbered',
      parameters: z.strictObject({ step: z._default(z.number(), 1) }),
      create: () => {
        const type = `numbered ${++made}`;
        return { type, compare: (a, b) => a.sequence - b.sequence };
      },
    }),
  );
  const read = (step: number, priorities: number[]): FlowControllerOptions => {
    const { options } = loadConfig(
      {
        apiVersion: 'llm-d.ai/v1alpha1',
        kind: 'EndpointPickerConfig',
        featureGates: ['flowControl'],
        plugins: [{ type: 'numbered', parameters: { step } }],
        flowControl: {
          defaultPriorityBand: { orderingPolicyRef: 'numbered' },
          priorityBands: priorities.map((priority) => ({ priority, orderingPolicyRef: 'numbered' })),
        },
      },
      { registry },
    );
    return { ...options, saturationDetector: () => 0 };
  };
  const flow = new FlowController(read(1, [5]));
  const orders = (): string[] => overviewOf(flow).bands.map(({ priority, ordering }) => `${priority} ${ordering}`);
  flow.reconfigure(read(1, [7, 5]));
  expect(orders()).toEqual(['7 numbered 1', '5 numbered 1', '0 numbered 1']);
  leaseOf(await flow.enqueue({ byteSize: 1 }, { fairnessId: 'a', priority: -3 })).release();
  expect(orders()).toEqual(['7 numbered 1', '5 numbered 1', '0 numbered 1', '-3 numbered 1']);
  flow.reconfigure(read(2, [7]));
  expect(orders().map((line) => line.slice(-1))).toEqual(['3', '3', '3', '3']);
  await flow.close();
});

it('a file that is read again begins anew with a policy that refers to a detector, which begins anew too', async () => {
  let made = 0;
  const registry = defaultRegistry()
    .add(
      definePlugin({
        kind: 'saturationDetector',
        type: 'numbered',
        parameters: z.strictObject({}),
        create: () => ({ type: `numbered ${++made}`, saturation: () => 0 }),
      }),
    )
    .add(
      definePlugin({
        kind: 'admission',
        type: 'asking',
        parameters: z.strictObject({}),
        create: (_, references) => {
          const detector = references.resolve('saturationDetector', 'numbered');
          return { type: 'asking', admit: () => ({ reason: detector.type }) };
        },
      }),
    );
  const read = (): FlowControllerOptions =>
    loadConfig(
      {
        apiVersion: 'llm-d.ai/v1alpha1',
        kind: 'EndpointPickerConfig',
        featureGates: ['flowControl'],
        plugins: [{ type: 'numbered' }, { type: 'asking' }],
        flowControl: { saturationDetector: { pluginRef: 'numbered' }, admissionPolicyPluginRef: 'asking' },
      },
      { registry },
    ).options;
  const flow = new FlowController(read());
  const asked = async (): Promise<unknown> => (await flow.enqueue({ byteSize: 1 }, { fairnessId: 'a' })) as unknown;
  expect(await asked()).toMatchObject({ detail: 'numbered 1' });
  flow.reconfigure(read());
  expect(await asked()).toMatchObject({ detail: 'numbered 2' });
  await flow.close();
});

it('plugins are the same by definition, parameters and the plugins behind their references', () => {
  const registry = defaultRegistry();
  const detectorOf = (maxConcurrency: number): object => registry.create('concurrency-detector', { maxConcurrency });
  const limit = (x: object, y: object) => {
    const others: Record<string, object> = { x, y };
    const references = { resolve: (_kind: string, name: string) => others[name] as never };
    return registry.create('max-saturation-detector', { detectors: ['x', 'y'] }, references);
  };
  const [one, other] = [detectorOf(1), detectorOf(1)];
  expect(isSamePlugin(one, other)).toBe(true);
  expect(isSamePlugin(one, detectorOf(2))).toBe(false);
  expect(isSamePlugin(limit(one, other), limit(one, other))).toBe(true);
  expect(isSamePlugin(limit(one, other), limit(one, detectorOf(1)))).toBe(false);
  expect(isSamePlugin(registry.create(counter), registry.create(counter, { lift: 'floor' }))).toBe(true);
  expect(isSamePlugin(registry.create(counter), registry.create(counter, { lift: 'none' }))).toBe(false);
  expect(isSamePlugin(registry.create(counter), registry.create('start-time-fair-queueing-fairness-policy'))).toBe(
    false,
  );
  expect(isSamePlugin(roundRobin(), roundRobin())).toBe(false);
  const once = roundRobin();
  expect(isSamePlugin(once, once)).toBe(true);
});

it('parameters are equal as files have them: lists, plain objects and values', () => {
  const anything = z.looseObject({});
  const plugin = definePlugin({
    kind: 'ordering',
    type: 'any',
    parameters: anything,
    create: () => ({ type: 'any', compare: (a, b) => a.sequence - b.sequence }),
  });
  const isSame = (a: object, b: object): boolean => isSamePlugin(plugin.create(a), plugin.create(b));
  expect(isSame({ a: [1, { b: 'c' }], d: null }, { d: null, a: [1, { b: 'c' }] })).toBe(true);
  expect(isSame({ a: [1, 2] }, { a: [1] })).toBe(false);
  expect(isSame({ a: [] }, { a: {} })).toBe(false);
  expect(isSame({ a: 1, b: undefined }, { a: 1, c: undefined })).toBe(false);
  expect(isSame({ a: { b: 1 } }, { a: { b: 2 } })).toBe(false);
  expect(isSame({ a: new Date(0) }, { a: new Date(0) })).toBe(false);
});
