import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as z from 'zod/mini';
import { type ConfigSource, type LoadedConfig, loadConfig } from '../../src/config/index.js';
import {
  defaultRegistry,
  definePlugin,
  EndpointPool,
  FlowConfigError,
  FlowController,
  resolveOptions,
} from '../../src/index.js';
import type { ConfigurableKind } from '../../src/types/index.js';

const manifests = readFileSync(new URL('./manifests.yaml', import.meta.url), 'utf8');

/** A document with flow control on. */
function document(flowControl: unknown, rest: object = {}): object {
  return {
    apiVersion: 'llm-d.ai/v1alpha1',
    kind: 'EndpointPickerConfig',
    featureGates: ['flowControl'],
    flowControl,
    ...rest,
  };
}

/** The types of one kind, as messages list them. */
function known(kind: ConfigurableKind): string {
  return defaultRegistry().types(kind).join(', ');
}

function objective(name: string, spec?: unknown, apiVersion = 'llm-d.ai/v1alpha2'): object {
  return { apiVersion, kind: 'InferenceObjective', metadata: { name }, spec };
}

function load(flowControl: unknown, rest: object = {}): LoadedConfig {
  return loadConfig(document(flowControl, rest));
}

function resolved(flowControl: unknown, rest: object = {}): ReturnType<typeof resolveOptions> {
  return resolveOptions({ ...load(flowControl, rest).options, pool: new EndpointPool() });
}

/** The problems of a source that cannot be loaded, one a line, without the message's first words. */
function problems(source: ConfigSource): string[] {
  try {
    loadConfig(source);
  } catch (error) {
    if (error instanceof FlowConfigError)
      return error.issues.map(({ path, expected, got }) => `${path}: expected ${expected}; got ${got}`);
    throw error;
  }
  return [];
}

describe('the documented manifests', () => {
  const { options, objectives, enabled, warnings } = loadConfig(manifests);

  it('turn flow control on and name three classes of traffic', () => {
    expect(enabled).toBe(true);
    expect([...objectives]).toEqual([
      ['premium-traffic', 100],
      ['standard-traffic', 0],
      ['best-effort-traffic', -10],
    ]);
  });

  it('become options for the constructor', () => {
    const { limits, bands, defaultBand, noEndpointRequestTtlMs } = resolveOptions(options);
    expect(limits).toEqual({ maxRequests: 1000, maxBytes: 10_737_418_240 });
    expect(bands.map(({ priority, limits: { maxRequests, maxBytes } }) => [priority, maxRequests, maxBytes])).toEqual([
      [100, 500, 1e9],
      [0, 200, 1e9],
      [-10, 50, 1e9],
    ]);
    for (const band of bands) {
      expect(band).toMatchObject({
        requestTtlMs: 60_000,
        fairness: { type: 'round-robin-fairness-policy' },
        ordering: { type: 'fcfs-ordering-policy' },
      });
    }
    expect(defaultBand.fairness.type).toBe('global-strict-fairness-policy');
    expect(noEndpointRequestTtlMs).toBe(60_000);
  });

  it('hold requests back from the 16th on', async () => {
    const flow = new FlowController(options);
    for (let count = 1; count <= 15; count++)
      expect(flow.tryEnqueue({ byteSize: 1 }, { fairnessId: 'a' })?.type).toBe('Dispatched');
    expect(flow.tryEnqueue({ byteSize: 1 }, { fairnessId: 'a' })).toBeUndefined();
    await flow.close();
  });

  it('warn that the bands hold fewer bytes than the global limit promises, and of nothing else', () => {
    expect(warnings).toEqual([
      'EndpointPickerConfig default-config: flowControl: bands without maxBytes hold 1000000000, less than the global 10737418240: priority 100, priority 0, priority -10, any other priority',
    ]);
  });
});

describe('sources', () => {
  it('may be text, a parsed document, or a list of either', () => {
    const text =
      'kind: InferenceObjective\napiVersion: llm-d.ai/v1alpha2\nmetadata: { name: a }\nspec: { priority: 1 }\n';
    const { objectives, enabled } = loadConfig([text, objective('b', { priority: 2 }), document({})]);
    expect([...objectives]).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
    expect(enabled).toBe(true);
  });

  it('may contain empty documents, anchors and merge keys', () => {
    const { options } = loadConfig(`---
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
flowControl:
  priorityBands:
  - &band { priority: 1, maxRequests: 7 }
  - { <<: *band, priority: 2 }
---
`);
    expect(options.bands?.map(({ priority, limits }) => [priority, limits?.maxRequests])).toEqual([
      [1, 7],
      [2, 7],
    ]);
  });

  it('tell syntax errors with line and column, those of every document at once', () => {
    expect(problems('kind: X\n  a: b: c\n---\nkind: [\n')).toEqual([
      'line 1, column 7: expected valid YAML; got Nested mappings are not allowed in compact mappings',
      'line 5, column 1: expected valid YAML; got Flow sequence in block collection must be sufficiently indented and end with a ]',
    ]);
    expect(problems('kind: *nobody')).toEqual([
      'line 1, column 7: expected an alias of an anchor that stands before it; got *nobody',
    ]);
  });

  it.each<[string, ConfigSource, string]>([
    ['nothing', '', ': expected at least one document; got none'],
    [
      'a file name',
      'gateway.yaml',
      'document 1: expected an object with apiVersion and kind; got "gateway.yaml" (string)',
    ],
    [
      'a list inside the list',
      [[] as object],
      'document 1: expected an object with apiVersion and kind; got an array of 0',
    ],
    [
      'a document without a kind',
      { apiVersion: 'v1' },
      'document 1: kind: expected text that is not empty; got nothing',
    ],
    [
      'two configurations',
      [document({}), document({}, { metadata: { name: 'b' } })],
      'EndpointPickerConfig b: kind: expected only one EndpointPickerConfig; got another one',
    ],
    [
      'a configuration of another time',
      document({}, { apiVersion: 'llm-d.ai/v9' }),
      'EndpointPickerConfig: apiVersion: expected one of "llm-d.ai/v1alpha1", "inference.networking.x-k8s.io/v1alpha1"; got "llm-d.ai/v9" (string)',
    ],
  ])('cannot be %s', (_, source, problem) => {
    expect(problems(source)).toEqual([problem]);
  });

  it('may hold documents of other kinds, which are ignored with a warning', () => {
    const pool = { apiVersion: 'v1', kind: 'InferencePool', metadata: { name: 'p' } };
    expect(loadConfig([pool, document({})]).warnings).toEqual(['InferencePool p: documents of this kind are ignored']);
  });

  it('without an EndpointPickerConfig stand for the defaults, with flow control off', () => {
    const { enabled, options, warnings } = loadConfig(objective('a'));
    expect(enabled).toBe(false);
    expect(options.saturationDetector).toMatchObject({ type: 'utilization-detector' });
    expect(warnings).toEqual(['EndpointPickerConfig: there is none; defaults apply, and flow control is off']);
  });

  it('survive an object that contains itself', () => {
    const loop: Record<string, unknown> = { ...document({ maxRequests: 5 }) };
    loop.metadata = loop;
    expect(loadConfig(loop).options.limits?.maxRequests).toBe(5);
  });
});

describe('feature gates', () => {
  it.each([
    [['flowControl'], true],
    [['flowControl=true'], true],
    [['flowControl= T '], true],
    [['flowControl=1'], true],
    [['flowControl=false'], false],
    [['flowControl=0'], false],
    [['flowControl', 'flowControl=f'], false],
    [['flowControl=false', 'flowControl'], true],
    [[], false],
    [undefined, false],
    [null, false],
  ])('%j: flow control is on: %s', (featureGates, enabled) => {
    expect(load({}, { featureGates }).enabled).toBe(enabled);
  });

  it('warn when the section has settings but the gate is off; the options are there all the same', () => {
    const { warnings, options } = load({ maxRequests: 10 }, { featureGates: ['flowControl=false'] });
    expect(warnings).toEqual(['EndpointPickerConfig: flowControl is ignored: the feature gate "flowControl" is off']);
    expect(options.limits).toEqual({ maxRequests: 10, maxBytes: Infinity });
    expect(load({ enableEviction: false }, { featureGates: [] }).warnings).toHaveLength(1);
  });

  it('do not warn about a section that only names the detector', () => {
    expect(load({ saturationDetector: { pluginRef: 'utilization-detector' } }, { featureGates: [] }).warnings).toEqual(
      [],
    );
    expect(load(undefined, { featureGates: [] }).warnings).toEqual([]);
  });

  it('of the scheduler are ignored with a warning; a misspelt one of ours, or one with a bad value, is an error', () => {
    expect(load({}, { featureGates: ['flowControl', 'prepareDataPlugins'] }).warnings).toEqual([
      "EndpointPickerConfig: featureGates: not headgate's, ignored: prepareDataPlugins",
    ]);
    expect(problems(document({}, { featureGates: ['flowcontrol', 'flowControl=maybe', 5] }))).toEqual([
      'EndpointPickerConfig: featureGates[0]: expected the name of a feature gate (did you mean "flowControl"?); got "flowcontrol" (string)',
      'EndpointPickerConfig: featureGates[1]: expected "flowControl", "flowControl=true" or "flowControl=false"; got "flowControl=maybe" (string)',
      'EndpointPickerConfig: featureGates[2]: expected the name of a feature gate, such as "flowControl"; got 5 (number)',
    ]);
  });
});

describe('limits', () => {
  it("are unlimited when the global one is absent or 0, and the default when a band's is", () => {
    const { limits, bands, defaultBand } = resolved({
      maxRequests: 0,
      priorityBands: [{ priority: 1, maxRequests: '0' }, { priority: 0 }],
    });
    expect(limits).toEqual({ maxRequests: Infinity, maxBytes: Infinity });
    for (const band of [...bands, defaultBand]) expect(band.limits).toEqual({ maxRequests: 5000, maxBytes: 1e9 });
  });

  it('may be quantities or numbers', () => {
    const { limits, bands } = resolved({
      maxBytes: '1Gi',
      maxRequests: 1.5,
      priorityBands: [{ priority: 1, maxBytes: '500Mi', maxRequests: 3 }],
    });
    expect(limits).toEqual({ maxBytes: 1_073_741_824, maxRequests: 2 });
    expect(bands[0]?.limits).toEqual({ maxBytes: 524_288_000, maxRequests: 3 });
  });

  it('may be lifted for a band with .inf', () => {
    const { options } = loadConfig(
      'kind: EndpointPickerConfig\napiVersion: llm-d.ai/v1alpha1\nflowControl: { defaultPriorityBand: { maxBytes: .inf } }',
    );
    expect(resolveOptions({ ...options, pool: new EndpointPool() }).bands[0]?.limits).toEqual({
      maxRequests: 5000,
      maxBytes: Infinity,
    });
  });

  it('may be set for each flow of a band', () => {
    const { bands } = resolved({ priorityBands: [{ priority: 1, flowLimits: { maxRequests: '5', maxBytes: 0 } }] });
    expect(bands[0]?.flowLimits).toEqual({ maxRequests: 5, maxBytes: Infinity });
    expect(bands[1]?.flowLimits).toEqual({ maxRequests: Infinity, maxBytes: Infinity });
  });

  it('come with a warning where a band holds less than the global limit promises', () => {
    expect(
      load({ maxRequests: '10k', priorityBands: [{ priority: 1 }, { priority: 0, maxRequests: 6000 }] }).warnings,
    ).toEqual([
      'EndpointPickerConfig: flowControl: bands without maxRequests hold 5000, less than the global 10000: priority 1, any other priority',
    ]);
    expect(load({ maxBytes: 0, defaultPriorityBand: { maxBytes: 1 } }).warnings).toEqual([]);
    expect(load({ maxBytes: 0, priorityBands: [{ priority: 0 }] }).warnings).toEqual([
      'EndpointPickerConfig: flowControl: bands without maxBytes hold 1000000000, less than the global unlimited: priority 0, any other priority',
    ]);
    expect(load({ maxRequests: 5000, maxBytes: '1G' }).warnings).toEqual([]);
  });

  it('warns of bands that together hold more than the queue, unless others leave for higher ones', () => {
    const section = {
      maxRequests: 100,
      priorityBands: [
        { priority: 1, maxRequests: 60 },
        { priority: -1, maxRequests: 60 },
      ],
    };
    const warning =
      'EndpointPickerConfig: flowControl: the maxRequests of the bands add up to 120, more than the global 100: ' +
      'lower bands can fill the queue, and higher ones are rejected then (overflow: fair)';
    expect(load(section).warnings).toEqual([warning]);
    expect(load({ ...section, overflow: 'fair' }).warnings).toEqual([]);
    expect(load({ ...section, overflow: 'displace' }).warnings).toEqual([]);
    expect(load({ ...section, maxRequests: 120 }).warnings).toEqual([]);
  });
});

describe('templates', () => {
  it('shape the bands made on first use, and the added priority 0', () => {
    const { bands, defaultBand, defaultNegativeBand } = resolved({
      defaultPriorityBand: { maxRequests: '200', orderingPolicyRef: 'edf-ordering-policy' },
    });
    for (const band of [...bands, defaultBand, defaultNegativeBand]) {
      expect(band).toMatchObject({ limits: { maxRequests: 200 }, ordering: { type: 'edf-ordering-policy' } });
    }
  });

  it('may differ for negative priorities', () => {
    const { defaultBand, defaultNegativeBand } = resolved({ defaultNegativePriorityBand: { maxBytes: '100' } });
    expect(defaultBand.limits.maxBytes).toBe(1e9);
    expect(defaultNegativeBand.limits).toEqual({ maxRequests: 5000, maxBytes: 100 });
  });
});

describe('times', () => {
  it.each([
    [undefined, undefined, 60_000, 60_000],
    ['10s', undefined, 10_000, 10_000],
    ['10s', '5m', 10_000, 300_000],
    ['0s', undefined, Infinity, Infinity],
    [undefined, '0s', 60_000, Infinity],
  ])(
    'default TTL %s and no-endpoint TTL %s are %d and %d ms',
    (defaultRequestTTL, noEndpointRequestTTL, ttlMs, noEndpointTtlMs) => {
      expect(resolved({ defaultRequestTTL, noEndpointRequestTTL })).toMatchObject({
        defaultBand: { requestTtlMs: ttlMs },
        noEndpointRequestTtlMs: noEndpointTtlMs,
      });
    },
  );

  it('of a band replace the global TTL, 0s included', () => {
    const priorityBands = [
      { priority: 2, defaultRequestTTL: '5s' },
      { priority: 1, defaultRequestTTL: '0s' },
      { priority: 0 },
    ];
    expect(resolved({ defaultRequestTTL: '10s', priorityBands }).bands.map(({ requestTtlMs }) => requestTtlMs)).toEqual(
      [5000, Infinity, 10_000],
    );
  });
});

describe("headgate's own fields", () => {
  it('become the options of the same meaning', () => {
    expect(
      resolved({
        gate: { closeAt: 0.9, openAt: 0.7, failValue: 0, recheckInterval: '50ms' },
        maxBands: 8,
        maxFlows: 500,
        flowIdleTimeout: '1m',
        bandIdleTimeout: '2m',
      }),
    ).toMatchObject({
      gate: { closeAt: 0.9, openAt: 0.7, failValue: 0, recheckIntervalMs: 50 },
      maxBands: 8,
      maxFlows: 500,
      flowIdleTimeoutMs: 60_000,
      bandIdleTimeoutMs: 120_000,
    });
  });
});

describe('where requests may go', () => {
  it('is what the fields say; a band may have a detector of its own', () => {
    const plugins = [{ type: 'concurrency-detector', name: 'seats', parameters: { maxConcurrency: 2 } }];
    const { options, warnings } = load(
      {
        headroom: 'required',
        holBlocking: 'flow',
        saturationDetector: { pluginRef: 'seats' },
        priorityBands: [{ priority: 1, saturationDetectorRef: 'utilization-detector' }, { priority: 0 }],
        defaultNegativePriorityBand: { saturationDetectorRef: 'seats' },
      },
      { plugins },
    );
    expect(options).toMatchObject({
      headroom: 'required',
      holBlocking: 'flow',
      bands: [{ saturationDetector: { type: 'utilization-detector' } }, { saturationDetector: undefined }],
    });
    expect(options.defaultNegativeBand?.saturationDetector).toBe(options.saturationDetector);
    expect(warnings).toEqual([]);
    expect(() => new FlowController(options)).toThrow(
      'FlowController options: pool: expected an EndpointPool, for utilization-detector to read; got nothing',
    );
  });

  it('is left to the constructor where they say nothing', () => {
    expect(resolved({})).toMatchObject({ headroom: 'preferred', holBlocking: 'band' });
    expect(resolved({ endpointFilterPluginRefs: ['subset-hint-filter'] })).toMatchObject({ headroom: 'required' });
  });

  it('must be one of the words, and a detector', () => {
    const priorityBands = [{ priority: 0, saturationDetectorRef: 'fcfs-ordering-policy' }];
    expect(problems(document({ headroom: 'yes', holBlocking: true, priorityBands }))).toEqual([
      'EndpointPickerConfig: flowControl.priorityBands[0].saturationDetectorRef: expected the name of a saturation detector; got "fcfs-ordering-policy", which is an ordering policy',
      'EndpointPickerConfig: flowControl.headroom: expected one of "preferred", "required"; got "yes" (string)',
      'EndpointPickerConfig: flowControl.holBlocking: expected one of "band", "flow", "none"; got true (boolean)',
    ]);
  });
});

describe('plugins', () => {
  it('are referred to by name, which is the type unless they have one', () => {
    const plugins = [
      { type: 'edf-ordering-policy', name: 'deadlines' },
      { type: 'round-robin-fairness-policy' },
      { type: 'static-usage-limit-policy', name: 'tight', parameters: { threshold: 0.5 } },
      { type: 'concurrency-detector', name: 'seats', parameters: { maxConcurrency: 2 } },
      { type: 'weighted-band-selection-policy', parameters: { weights: { '1': 3, '0': 1 } } },
    ];
    const flowControl = {
      priorityBands: [
        { priority: 1, orderingPolicyRef: 'deadlines', fairnessPolicyRef: 'round-robin-fairness-policy' },
      ],
      usageLimitPolicyPluginRef: 'tight',
      bandSelectionPolicyPluginRef: 'weighted-band-selection-policy',
      saturationDetector: { pluginRef: 'seats' },
    };
    const { options, warnings } = load(flowControl, { plugins });
    expect(options).toMatchObject({
      bands: [{ ordering: { type: 'edf-ordering-policy' }, fairness: { type: 'round-robin-fairness-policy' } }],
      saturationDetector: { type: 'concurrency-detector' },
      bandOrder: { type: 'weighted-band-selection-policy' },
    });
    const ceilings = [1];
    options.usageLimitPolicy?.computeLimits(0, [0], ceilings);
    expect(ceilings).toEqual([0.5]);
    expect(warnings).toEqual([]);
  });

  it('that are the default apply as they were declared', () => {
    const { options } = load({}, { plugins: [{ type: 'static-usage-limit-policy', parameters: { threshold: 0.25 } }] });
    const ceilings = [1];
    options.usageLimitPolicy?.computeLimits(0, [0], ceilings);
    expect(ceilings).toEqual([0.25]);
  });

  it('that are the default need no declaration, and others a warning', () => {
    const priorityBands = [
      { priority: 1, orderingPolicyRef: 'fcfs-ordering-policy', fairnessPolicyRef: 'global-strict-fairness-policy' },
      { priority: 2, orderingPolicyRef: 'edf-ordering-policy' },
      { priority: 3, orderingPolicyRef: 'edf-ordering-policy' },
    ];
    expect(load({ priorityBands }).warnings).toEqual([
      'EndpointPickerConfig: plugins: edf-ordering-policy is not declared, and gets its default parameters',
    ]);
  });

  it('of the scheduler, and its sections, are ignored with a warning', () => {
    const rest = {
      plugins: [{ type: 'prefix-cache-scorer' }, { type: 'max-score-picker' }],
      schedulingProfiles: [{}],
      dataLayer: {},
    };
    expect(load({}, rest).warnings).toEqual([
      "EndpointPickerConfig: sections that are not flow control's are ignored: schedulingProfiles, dataLayer",
      'EndpointPickerConfig: plugins of types unknown to headgate are ignored: prefix-cache-scorer, max-score-picker',
    ]);
  });

  it('may be your own', () => {
    const newest = definePlugin({
      kind: 'ordering',
      type: 'newest-first',
      parameters: z.strictObject({}),
      create: () => ({ type: 'newest-first', compare: (a, b) => b.sequence - a.sequence }),
    });
    const source = document(
      { defaultPriorityBand: { orderingPolicyRef: 'newest-first' } },
      { plugins: [{ type: 'newest-first' }] },
    );
    const { options } = loadConfig(source, { registry: defaultRegistry().add(newest) });
    expect(options.defaultBand?.ordering?.type).toBe('newest-first');
  });

  it('cannot be declared wrongly', () => {
    const plugins = [
      { name: 'nameless' },
      { type: 'concurrency-detector', parameters: { maxConcurency: 15, headroom: -1 } },
      { type: 'fcfs-ordering-policy' },
      { type: 'edf-ordering-policy', name: 'fcfs-ordering-policy' },
      { type: 'edf-ordering-policy', parameters: [] },
      { type: 'round-robin-fairness-policy', paramters: {} },
      'least-loaded-picker',
    ];
    expect(problems(document({}, { plugins }))).toEqual([
      'EndpointPickerConfig: plugins[0].type: expected the type name of a plugin; got nothing',
      'EndpointPickerConfig: plugins[1].parameters.headroom: expected a number from 0 up; got -1 (number)',
      'EndpointPickerConfig: plugins[1].parameters.maxConcurency: expected one of the keys concurrencyMode, maxConcurrency, maxTokenConcurrency, headroom, countIncoming (did you mean "maxConcurrency"?); got an unknown key',
      'EndpointPickerConfig: plugins[3].name: expected a name that no other plugin has; got "fcfs-ordering-policy"',
      'EndpointPickerConfig: plugins[4].parameters: expected an object; got an array of 0',
      'EndpointPickerConfig: plugins[5].paramters: expected one of the keys type, name, parameters (did you mean "parameters"?); got an unknown key',
      'EndpointPickerConfig: plugins[6]: expected an object; got "least-loaded-picker" (string)',
    ]);
  });

  it('whose factory fails are told like any other problem', () => {
    const broken = definePlugin({
      kind: 'ordering',
      type: 'broken',
      parameters: z.strictObject({}),
      create: () => {
        throw new RangeError('no entropy');
      },
    });
    const registry = defaultRegistry().add(broken);
    expect(() => loadConfig(document({}, { plugins: [{ type: 'broken' }] }), { registry })).toThrow(
      'configuration: EndpointPickerConfig: plugins[0].parameters: expected parameters that broken can be made with; got the error RangeError: no entropy',
    );
  });
});

describe('references', () => {
  it.each<[string, object, object, string]>([
    [
      'to nothing',
      { usageLimitPolicyPluginRef: 'non-existent-policy' },
      {},
      `flowControl.usageLimitPolicyPluginRef: expected the name of a usage-limit policy, one of ${known('usageLimit')}; got "non-existent-policy" (string)`,
    ],
    [
      'misspelt',
      { defaultPriorityBand: { orderingPolicyRef: 'edf-ordering-polcy' } },
      {},
      'flowControl.defaultPriorityBand.orderingPolicyRef: expected the name of an ordering policy, one of edf-ordering-policy, fcfs-ordering-policy, prefix-ordering-policy, shortest-first-ordering-policy, slo-deadline-ordering-policy (did you mean "edf-ordering-policy"?); got "edf-ordering-polcy" (string)',
    ],
    [
      'to a plugin of another kind',
      { priorityBands: [{ priority: 0, fairnessPolicyRef: 'fcfs-ordering-policy' }] },
      {},
      'flowControl.priorityBands[0].fairnessPolicyRef: expected the name of a fairness policy; got "fcfs-ordering-policy", which is an ordering policy',
    ],
    [
      'to a plugin of an unknown type',
      { saturationDetector: { pluginRef: 'mine' } },
      { plugins: [{ type: 'crystal-ball', name: 'mine' }] },
      `flowControl.saturationDetector.pluginRef: expected the name of a saturation detector of a known type (${known('saturationDetector')}); got "mine", of the unknown type "crystal-ball"`,
    ],
    [
      'at the top level',
      {},
      { saturationDetector: { pluginRef: 'nobody' } },
      `saturationDetector.pluginRef: expected the name of a saturation detector, one of ${known('saturationDetector')}; got "nobody" (string)`,
    ],
    [
      'two orders of bands',
      { bandOrder: 'fifo', bandSelectionPolicyPluginRef: 'strict-band-selection-policy' },
      {},
      'flowControl.bandOrder: expected nothing, because bandSelectionPolicyPluginRef names the order; got "fifo"',
    ],
    [
      'that are no text',
      { usageLimitPolicyPluginRef: 5 },
      {},
      `flowControl.usageLimitPolicyPluginRef: expected the name of a usage-limit policy, one of ${known('usageLimit')}; got 5 (number)`,
    ],
  ])('%s are errors', (_, flowControl, rest, problem) => {
    const found = problems(document(flowControl, rest));
    expect(found).toEqual([`EndpointPickerConfig: ${problem}`]);
  });

  it('to a plugin that could not be made are not complained about a second time', () => {
    const plugins = [{ type: 'concurrency-detector', parameters: { maxConcurrency: 0 } }];
    expect(problems(document({ saturationDetector: { pluginRef: 'concurrency-detector' } }, { plugins }))).toEqual([
      'EndpointPickerConfig: plugins[0].parameters.maxConcurrency: expected an integer from 1 up; got 0 (number)',
    ]);
  });
});

describe('the saturation detector', () => {
  it('is the utilization detector by default, which needs a pool that reports', () => {
    const { options } = load({});
    const pool = new EndpointPool();
    pool.add('server-1');
    expect(options.saturationDetector).toMatchObject({ type: 'utilization-detector' });
    expect(() => new FlowController({ ...options, pool })).not.toThrow();
  });

  it('is the one of the flowControl section when both places name one', () => {
    const { options, warnings } = load(
      { saturationDetector: { pluginRef: 'concurrency-detector' } },
      { plugins: [{ type: 'concurrency-detector' }], saturationDetector: { pluginRef: 'utilization-detector' } },
    );
    expect(options.saturationDetector).toMatchObject({ type: 'concurrency-detector' });
    expect(warnings).toEqual([
      'EndpointPickerConfig: saturationDetector is ignored: flowControl.saturationDetector takes its place',
    ]);
  });
});

describe('eviction', () => {
  it('that is off warns of what is set for it', () => {
    const settings = {
      maxRevocationsPerDecision: 3,
      evictionConfirmationGrace: '0s',
      evictionFilterPluginRef: 'sheddable-eviction-filter',
    };
    const plugins = [{ type: 'sheddable-eviction-filter' }];
    const warning =
      'EndpointPickerConfig: flowControl: ignored without enableEviction: evictionFilterPluginRef, maxRevocationsPerDecision, evictionConfirmationGrace';
    expect(load(settings, { plugins }).warnings).toEqual([warning]);
    expect(load({ ...settings, enableEviction: false }, { plugins }).warnings).toEqual([warning]);
    expect(load({ ...settings, enableEviction: true }, { plugins }).warnings).toEqual([]);
  });

  it('is on or off', () => {
    expect(resolved({ enableEviction: true }).eviction).toMatchObject({
      maxPerDecision: 2,
      graceMs: 500,
      timeoutMs: 10_000,
    });
    expect(resolved({ enableEviction: false }).eviction).toBeUndefined();
    expect(resolved({}).eviction).toBeUndefined();
  });

  it('may be shaped', () => {
    const { eviction } = resolved({
      enableEviction: true,
      evictionOrderingPluginRef: 'least-progress-eviction-order-policy',
      maxRevocationsPerDecision: 5,
      evictionConfirmationGrace: '0s',
      evictionConfirmationTimeout: '3s',
    });
    expect(eviction).toMatchObject({
      filter: { type: 'sheddable-eviction-filter' },
      ordering: { type: 'least-progress-eviction-order-policy' },
      maxPerDecision: 5,
      graceMs: 0,
      timeoutMs: 3000,
    });
  });
});

describe('what happens when the queue is full, who goes next, and who comes in', () => {
  it('may be said', () => {
    const options = resolved({
      mode: 'admission',
      admissionPolicyPluginRef: 'reject-all',
      overflow: 'displace',
      bandOrder: 'aging',
      bandPromotion: '10s',
      priorityBands: [{ priority: -1, minShare: 0.05 }],
      flows: { greedy: { weight: 2, limits: { maxRequests: 5, maxBytes: 0 } } },
    });
    expect(options).toMatchObject({ mode: 'admission', admission: { type: 'reject-all' }, overflow: 'displace' });
    expect(options.bandOrder.needsOldest).toBe(true);
    expect(options.bands.map(({ priority, minShare }) => [priority, minShare])).toEqual([
      [0, 0],
      [-1, 0.05],
    ]);
    expect(options.flows.get('greedy')).toEqual({
      weight: 2,
      limits: { maxRequests: 5, maxBytes: Infinity },
      maxInFlight: undefined,
    });
  });

  it('caps what runs, for each flow of a band and for tenants by their plans', () => {
    const section = {
      priorityBands: [{ priority: 0, maxInFlightPerFlow: { requests: 8, tokens: '16k' } }],
      flows: { vip: { maxInFlight: 100 } },
      plans: {
        free: { maxInFlight: 2 },
        team: { weight: 3, maxInFlight: { tokens: '200k' }, limits: { maxRequests: 0 } },
      },
      tenants: { acme: 'team', '*': 'free' },
    };
    const { flows, bands } = resolved(section);
    expect(bands[0]?.maxInFlightPerFlow).toEqual({ maxRequests: 8, maxTokens: 16_000 });
    expect(flows.get('vip')).toMatchObject({ weight: 1, maxInFlight: { maxRequests: 100, maxTokens: Infinity } });
    const unlimited = { maxRequests: Infinity, maxBytes: Infinity };
    expect(flows.get('acme')).toEqual({
      weight: 3,
      limits: unlimited,
      maxInFlight: { maxRequests: Infinity, maxTokens: 200_000 },
    });
    expect(flows.get('anybody')).toMatchObject({ maxInFlight: { maxRequests: 2, maxTokens: Infinity } });
    const named = resolved({ ...section, tenants: { acme: 'team' } }).flows;
    expect([named.size, named.get('anybody')]).toEqual([2, undefined]);
  });

  it('lists every wrong cap, plan and tenant', () => {
    const section = {
      priorityBands: [{ priority: 0, maxInFlightPerFlow: 0 }],
      flows: { acme: {} },
      plans: { free: { maxInFlight: { token: 5 } } },
      tenants: { acme: 'fre' },
    };
    const wrong = (): unknown => resolved(section);
    expect(wrong).toThrow(
      'priorityBands[0].maxInFlightPerFlow: expected an integer from 1 up, or a quantity like "16k"; got 0 (number)',
    );
    expect(wrong).toThrow('plans.free.maxInFlight.token: expected one of the keys requests, tokens');
    expect(wrong).toThrow('tenants.acme: expected one of the plans free (did you mean "free"?)');
    expect(wrong).toThrow('tenants.acme: expected a tenant that does not stand under "flows" as well');
  });

  it("is llm-d's without flow control, in mode admission without a policy", () => {
    expect(resolved({ mode: 'admission' }).admission?.type).toBe('gaie-legacy');
  });
});

describe('where requests go', () => {
  it('may be said: one picker, and filters in their order', () => {
    const pool = new EndpointPool();
    const { options } = loadConfig(
      document(
        {
          saturationDetector: { pluginRef: 'concurrency-detector' },
          endpointPickerPluginRef: 'affinity-picker',
          endpointFilterPluginRefs: ['by-model', 'subset-hint-filter'],
        },
        {
          plugins: [
            { type: 'label-filter', name: 'by-model', parameters: { label: 'model' } },
            { type: 'affinity-picker', parameters: { by: 'fairnessId', loadCap: 2 } },
          ],
        },
      ),
    );
    expect(resolveOptions({ ...options, pool })).toMatchObject({
      endpointPicker: { type: 'affinity-picker' },
      endpointFilters: [{ type: 'label-filter' }, { type: 'subset-hint-filter' }],
    });
    expect(() => resolveOptions(options)).toThrow('pool: expected an EndpointPool, for endpointFilters to choose from');
  });

  it('is told what is no picker, and what is no filter', () => {
    const flowControl = { endpointPickerPluginRef: 'label-filter', endpointFilterPluginRefs: ['least-loaded-picker'] };
    expect(() => loadConfig(document(flowControl))).toThrow(
      /endpointPickerPluginRef: expected the name of an endpoint picker.*endpointFilterPluginRefs\[0\]: expected the name of an endpoint filter/s,
    );
  });
});

describe('objectives', () => {
  it('have priority 0 unless they say otherwise, in either group', () => {
    const { objectives } = loadConfig([
      document({}),
      objective('none'),
      objective('null', null),
      objective('empty', {}),
      objective('old', { priority: -3, poolRef: { name: 'p' } }, 'inference.networking.x-k8s.io/v1alpha2'),
    ]);
    expect([...objectives]).toEqual([
      ['none', 0],
      ['null', 0],
      ['empty', 0],
      ['old', -3],
    ]);
  });

  it('cannot be wrong', () => {
    const source = [
      document({}),
      objective('a', { prority: 5 }),
      objective('b', { priority: '5' }),
      objective('c', {}, 'v1'),
      objective('d'),
      objective('d'),
      { ...objective('e'), metadata: {} },
    ];
    expect(problems(source)).toEqual([
      'InferenceObjective a: spec.prority: expected one of the keys priority, poolRef (did you mean "priority"?); got an unknown key',
      'InferenceObjective b: spec.priority: expected a safe integer; got "5" (string)',
      'InferenceObjective c: apiVersion: expected one of "inference.networking.x-k8s.io/v1alpha2", "llm-d.ai/v1alpha2"; got "v1" (string)',
      'InferenceObjective d: metadata.name: expected a name that no other InferenceObjective has; got "d"',
      'InferenceObjective: metadata.name: expected the name of the objective; got nothing',
    ]);
  });
});

describe('the flowControl section', () => {
  it.each<[string, object, string]>([
    [
      'a negative global limit',
      { maxBytes: '-1' },
      'maxBytes: expected a quantity from 0 (unlimited) up, such as "10Gi"; got "-1" (string)',
    ],
    [
      'a negative band limit',
      { priorityBands: [{ priority: 1, maxRequests: '-100' }] },
      'priorityBands[0].maxRequests: expected a quantity from 0 (the default) up, such as "500"; got "-100" (string)',
    ],
    [
      'a negative template limit',
      { defaultPriorityBand: { maxRequests: '-5' } },
      'defaultPriorityBand.maxRequests: expected a quantity from 0 (the default) up, such as "500"; got "-5" (string)',
    ],
    [
      'a limit beyond the safe integers',
      { maxBytes: '9Ei' },
      'maxBytes: expected a quantity of at most 9007199254740991 (2^53 - 1); got "9Ei" (string)',
    ],
    [
      'a negative TTL',
      { defaultRequestTTL: '-1m' },
      'defaultRequestTTL: expected a duration from "0s" (for ever) up, such as "60s"; got "-1m" (string)',
    ],
    [
      'a TTL without a unit',
      { noEndpointRequestTTL: 60 },
      'noEndpointRequestTTL: expected a duration from "0s" (for ever) up, such as "60s"; got 60 (number)',
    ],
    [
      'a duplicate band',
      { priorityBands: [{ priority: 1 }, { priority: 1 }] },
      'priorityBands[1].priority: expected a priority that no other band has; got 1 (number), the priority of priorityBands[0]',
    ],
    [
      'a band without a priority',
      { priorityBands: [{}] },
      'priorityBands[0].priority: expected a safe integer; got nothing',
    ],
    [
      'an unknown key',
      { gate: { closeat: 1 } },
      'gate.closeat: expected one of the keys closeAt, openAt, failValue, recheckInterval (did you mean "closeAt"?); got an unknown key',
    ],
    ['a word for a flag', { enableEviction: 'yes' }, 'enableEviction: expected true or false; got "yes" (string)'],
    [
      'an idle timeout of 0',
      { flowIdleTimeout: '0s' },
      'flowIdleTimeout: expected a duration above 0, such as "5m"; got "0s" (string)',
    ],
    [
      'bands that go before their flows',
      { flowIdleTimeout: '20m', bandIdleTimeout: '10m' },
      'bandIdleTimeout: expected at least flowIdleTimeout (1200000 ms); got "10m" (string)',
    ],
    [
      'a gate that opens above its closing',
      { gate: { openAt: 2 } },
      'gate.openAt: expected a number of at most closeAt (1); got 2 (number)',
    ],
    [
      'too few bands',
      { priorityBands: [{ priority: 1 }], maxBands: 1 },
      'maxBands: expected at least 2, for the 2 configured bands, priority 0 included; got 1 (number)',
    ],
    ['something else than a section', [], ': expected an object; got an array of 0'],
  ])('cannot contain %s', (_, flowControl, problem) => {
    const path = problem.startsWith(':') ? 'flowControl' : 'flowControl.';
    expect(problems(document(flowControl))).toEqual([`EndpointPickerConfig: ${path}${problem}`]);
  });

  it('cannot be misspelt', () => {
    expect(problems(document({}, { flowControll: { maxRequests: 5 } }))).toEqual([
      'EndpointPickerConfig: flowControll: expected a known section (did you mean "flowControl"?); got an unknown key',
    ]);
  });
});

describe('everything that is wrong', () => {
  it('is told in one error that a person can read', () => {
    const source = `
apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
metadata:
  name: default-config
featureGates:
- flowControl
plugins:
- type: concurrency-detector
  parameters:
    maxConcurency: 15
saturationDetector:
  pluginRef: concurrency-detector
flowControl:
  maxBytes: 10GB
  defaultRequestTTL: 60
  priorityBands:
  - priority: 100
    maxRequests: "-500"
    fairnessPolicyRef: round-robin
  - priority: 100
---
apiVersion: inference.networking.x-k8s.io/v1alpha2
kind: InferenceObjective
metadata:
  name: premium-traffic
spec:
  priority: high
`;
    expect(() => loadConfig(source)).toThrow(`configuration: 7 problems
  EndpointPickerConfig default-config: plugins[0].parameters.maxConcurency: expected one of the keys concurrencyMode, maxConcurrency, maxTokenConcurrency, headroom, countIncoming (did you mean "maxConcurrency"?); got an unknown key
  EndpointPickerConfig default-config: flowControl.maxBytes: expected a quantity from 0 (unlimited) up, such as "10Gi"; got "10GB" (string)
  EndpointPickerConfig default-config: flowControl.defaultRequestTTL: expected a duration from "0s" (for ever) up, such as "60s"; got 60 (number)
  EndpointPickerConfig default-config: flowControl.priorityBands[0].maxRequests: expected a quantity from 0 (the default) up, such as "500"; got "-500" (string)
  EndpointPickerConfig default-config: flowControl.priorityBands[0].fairnessPolicyRef: expected the name of a fairness policy, one of deficit-round-robin-fairness-policy, global-strict-fairness-policy, hierarchical-fairness-policy, least-service-fairness-policy, program-aware-fairness, round-robin-fairness-policy, shuffle-sharded-fairness-policy, start-time-fair-queueing-fairness-policy, virtual-token-counter-fairness-policy (did you mean "round-robin-fairness-policy"?); got "round-robin" (string)
  EndpointPickerConfig default-config: flowControl.priorityBands[1].priority: expected a priority that no other band has; got 100 (number), the priority of priorityBands[0]
  InferenceObjective premium-traffic: spec.priority: expected a safe integer; got "high" (string)`);
  });
});

describe('what the loader lets through', () => {
  /** Mostly something right or nothing, now and then something wrong. */
  const some = (right: unknown[], wrong: unknown[]): fc.Arbitrary<unknown> =>
    fc.oneof(
      { weight: 30, arbitrary: fc.constantFrom(undefined, ...right) },
      { weight: 1, arbitrary: fc.constantFrom(...wrong) },
    );
  const limit = some([0, '0', 5, '1k', '10Gi', 0.5, Infinity, null], ['-1', 'x', '9Ei']);
  const ttl = some(['0s', '60s', null], ['-1s', 60]);
  const idle = some(['5m', null], ['1ms', '20m', '0s']);
  const level = some([0.5, 1], [0, 2, -1, 'x']);
  const band = fc.record({
    priority: fc.oneof(
      { weight: 30, arbitrary: fc.integer({ min: -9, max: 9 }) },
      { weight: 1, arbitrary: fc.constantFrom(1.5, 'x') },
    ),
    maxRequests: limit,
    maxBytes: limit,
    defaultRequestTTL: ttl,
    orderingPolicyRef: some(['edf-ordering-policy'], ['round-robin-fairness-policy', 'x']),
    flowLimits: some([{}, { maxRequests: 0 }], [5]),
    saturationDetectorRef: some(['concurrency-detector', 'utilization-detector'], ['edf-ordering-policy']),
  });
  const section = fc.record({
    maxRequests: limit,
    maxBytes: limit,
    defaultRequestTTL: ttl,
    noEndpointRequestTTL: ttl,
    priorityBands: fc.option(fc.array(band, { maxLength: 3 }), { nil: undefined }),
    gate: fc.record({ closeAt: level, openAt: level, failValue: level, recheckInterval: idle }),
    maxBands: some([4, 64], [1, 2, 1025]),
    maxFlows: some([1, 10], [0]),
    flowIdleTimeout: idle,
    bandIdleTimeout: idle,
    headroom: some(['preferred', 'required'], ['maybe']),
    holBlocking: some(['band', 'flow', 'none'], [true]),
  });

  it('is right for the constructor, whatever the file says', () => {
    let accepted = 0;
    fc.assert(
      fc.property(section, (flowControl) => {
        let config: LoadedConfig;
        try {
          config = load(flowControl);
        } catch (error) {
          expect(error).toBeInstanceOf(FlowConfigError);
          return;
        }
        accepted++;
        resolveOptions({ ...config.options, pool: new EndpointPool() });
      }),
      { numRuns: 500 },
    );
    expect(accepted).toBeGreaterThan(0);
  });
});

describe('the depth of the servers’ queues', () => {
  const one = { type: 'utilization-detector' };
  const pool = new EndpointPool();
  pool.add('server');
  pool.report('server', { waitingQueueSize: 1, runningRequests: 0, kvCacheUsage: 0, sampledAtMs: 0 });

  /** What a server with one waiting request reads. */
  function reading(defaults: 'llm-d' | 'headgate', rest: object): number {
    const { saturationDetector } = loadConfig(document({}, rest), { defaults }).options;
    if (typeof saturationDetector !== 'object') throw new Error('a detector was expected');
    return saturationDetector.saturation(pool, 0);
  }

  it.each([
    ['llm-d', {}, 0.2],
    ['llm-d', { plugins: [one] }, 0.2],
    ['llm-d', { plugins: [{ ...one, parameters: { kvCacheUtilThreshold: 0.9 } }] }, 0.2],
    ['llm-d', { plugins: [{ ...one, parameters: { queueDepthThreshold: 2 } }] }, 0.5],
    ['headgate', {}, 1],
    ['headgate', { plugins: [one] }, 1],
    ['headgate', { plugins: [{ ...one, parameters: { queueDepthThreshold: 2 } }] }, 0.5],
  ] as const)('is the reference’s in files of llm-d, and shallow otherwise: %s %j', (defaults, rest, expected) => {
    expect(reading(defaults, rest)).toBe(expected);
  });
});
