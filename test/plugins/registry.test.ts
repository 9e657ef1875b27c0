import { describe, expect, it } from 'vitest';
import * as z from 'zod/mini';
import { FlowConfigError } from '../../src/base/faults/flow-config-error.js';
import { defaultRegistry } from '../../src/plugins/built-ins.js';
import { definePlugin } from '../../src/plugins/definition.js';
import { PluginRegistry } from '../../src/plugins/registry.js';

const newest = definePlugin({
  kind: 'ordering',
  type: 'newest-first',
  parameters: z.strictObject({}),
  create: () => ({ type: 'newest-first', compare: (a, b) => b.sequence - a.sequence }),
});

describe('PluginRegistry', () => {
  it('is a value: adding leaves the old one as it was', () => {
    const empty = new PluginRegistry();
    const one = empty.add(newest);
    expect(empty.types()).toEqual([]);
    expect(one.types()).toEqual(['newest-first']);
    expect(one.types('fairness')).toEqual([]);
    expect(one.kindOf('newest-first')).toBe('ordering');
    expect(one.kindOf('oldest-first')).toBeUndefined();
  });

  it('makes a new plugin each time', () => {
    const registry = new PluginRegistry([newest]);
    expect(registry.create('newest-first')).not.toBe(registry.create('newest-first'));
  });

  it('rejects a type that is taken', () => {
    expect(() => defaultRegistry().add(newest).add(newest)).toThrow(
      'PluginRegistry: type: expected a type name that is not taken; got "newest-first", which is an ordering policy already',
    );
  });

  it('lists the known types when asked for an unknown one', () => {
    expect(() => new PluginRegistry([newest]).create('newest')).toThrow(FlowConfigError);
    expect(() => new PluginRegistry([newest]).create('newestfirst')).toThrow(
      'PluginRegistry: type: expected one of the known plugin types newest-first (did you mean "newest-first"?); got "newestfirst"',
    );
    expect(() => new PluginRegistry().create('x')).toThrow('expected one of the known plugin types (none); got "x"');
  });
});

describe('defaultRegistry', () => {
  it('knows every built-in plugin by its type name', () => {
    const registry = defaultRegistry();
    expect(registry.types('fairness')).toEqual([
      'deficit-round-robin-fairness-policy',
      'global-strict-fairness-policy',
      'hierarchical-fairness-policy',
      'least-service-fairness-policy',
      'program-aware-fairness',
      'round-robin-fairness-policy',
      'shuffle-sharded-fairness-policy',
      'start-time-fair-queueing-fairness-policy',
      'virtual-token-counter-fairness-policy',
    ]);
    expect(registry.types('ordering')).toEqual([
      'edf-ordering-policy',
      'fcfs-ordering-policy',
      'prefix-ordering-policy',
      'shortest-first-ordering-policy',
      'slo-deadline-ordering-policy',
    ]);
    expect(registry.types('saturationDetector')).toEqual([
      'aimd-latency-detector',
      'busy-threshold-detector',
      'concurrency-detector',
      'gradient2-detector',
      'hysteresis-saturation-detector',
      'max-saturation-detector',
      'mean-saturation-detector',
      'scraped-concurrency-detector',
      'stage-aware-saturation-detector',
      'utilization-detector',
      'vegas-detector',
    ]);
    expect(registry.types('constraint')).toEqual([
      'capacity-ledger',
      'circuit-breaker-detector',
      'quota-detector',
      'session-limit-detector',
    ]);
    expect(registry.types('usageLimit')).toEqual([
      'interpolated-usage-limit-policy',
      'priority-holdback-policy',
      'soft-reflective-ceiling-policy',
      'static-usage-limit-policy',
    ]);
    expect(registry.types('admission')).toEqual([
      'all-workers-busy',
      'always-admit',
      'gaie-legacy',
      'probabilistic-admitter',
      'reject-all',
      'tenant-budgets',
      'tier-shed',
      'token-bucket',
    ]);
    expect(registry.types('endpointPicker')).toEqual([
      'affinity-picker',
      'least-kv-picker',
      'least-loaded-picker',
      'most-budget-left-picker',
      'weighted-random-two-picker',
    ]);
    expect(registry.types('endpointFilter')).toEqual(['label-filter', 'subset-hint-filter']);
  });

  /** They have parameters for which there is no safe guess. */
  const demanding = [
    'capacity-ledger',
    'aimd-latency-detector',
    'gradient2-detector',
    'hysteresis-saturation-detector',
    'label-filter',
    'max-saturation-detector',
    'mean-saturation-detector',
    'priority-holdback-policy',
    'session-limit-detector',
    'stage-aware-saturation-detector',
    'tenant-budgets',
    'vegas-detector',
  ];

  it.each(defaultRegistry().types())('makes a %s without parameters, or says which it needs', (type) => {
    if (demanding.includes(type)) expect(() => defaultRegistry().create(type)).toThrow(`${type}: `);
    else expect(defaultRegistry().create(type)).toMatchObject({ type });
  });

  it.each<[string, object]>([
    [
      'concurrency-detector',
      { concurrencyMode: 'hybrid', maxConcurrency: 50, maxTokenConcurrency: 5000, headroom: 0.2 },
    ],
    ['concurrency-detector', { inFlightLoadProducerName: 'inflight-load-producer' }],
    ['concurrency-detector', { concurrencyMode: 'tokens', countIncoming: true }],
    ['scraped-concurrency-detector', { maxConcurrency: 64, ownDispatchWindow: '1s' }],
    [
      'utilization-detector',
      { queueDepthThreshold: 5, kvCacheUtilThreshold: 0.8, metricsStalenessThreshold: '200ms', headroom: 2 },
    ],
    ['utilization-detector', { stalenessPolicy: 'ignore' }],
    ['busy-threshold-detector', { activeDecodeBlocksThreshold: 0.85, activePrefillTokensThreshold: 10_000 }],
    ['busy-threshold-detector', { activePrefillTokensThresholdFrac: 1.5 }],
    [
      'max-saturation-detector',
      { detectors: ['concurrency-detector'], stages: { 'concurrency-detector': ['decode'] } },
    ],
    ['mean-saturation-detector', { detectors: ['concurrency-detector', 'utilization-detector'] }],
    ['stage-aware-saturation-detector', { detector: 'concurrency-detector' }],
    ['stage-aware-saturation-detector', { prefill: 'concurrency-detector', decode: 'utilization-detector' }],
    ['aimd-latency-detector', { targetMs: 2000, signal: 'ttft-per-prompt-token', statistic: 'p90', minLimit: 4 }],
    ['gradient2-detector', { maxLimit: 100, maxFactor: 2 }],
    ['vegas-detector', { maxLimit: 100, probeMultiplier: 60 }],
    ['hysteresis-saturation-detector', { detector: 'concurrency-detector', openAt: 0.8, minDwellMs: 500 }],
    ['static-usage-limit-policy', { threshold: 0.9 }],
    ['priority-holdback-policy', { shape: 'linear', domain: 'value', minCeiling: 0.3, maxCeiling: 0.9 }],
    ['interpolated-usage-limit-policy', { threshold: 0.6 }],
    ['weighted-random-two-picker', { seed: -7 }],
    ['affinity-picker', { by: 'fairnessId', loadCap: 2 }],
    ['label-filter', { label: 'model', field: 'target', allowsNoLabel: true }],
    ['label-filter', { label: 'role', validValues: ['decode', 'both'] }],
  ])('accepts parameters of %s as files spell them: %j', (type, parameters) => {
    expect(defaultRegistry().create(type, parameters)).toMatchObject({ type });
  });

  it.each<[string, object, string]>([
    ['concurrency-detector', { maxConcurrency: 'invalid_type' }, 'parameters.maxConcurrency'],
    ['concurrency-detector', { maxTokenConcurrency: 0 }, 'parameters.maxTokenConcurrency'],
    ['concurrency-detector', { concurrencyMode: 'magic' }, 'parameters.concurrencyMode'],
    ['concurrency-detector', { headroom: -0.1 }, 'parameters.headroom'],
    ['concurrency-detector', { maxConcurency: 5 }, 'parameters.maxConcurency'],
    ['concurrency-detector', { countIncoming: true }, 'parameters.concurrencyMode'],
    ['utilization-detector', { queueDepthThreshold: 0 }, 'parameters.queueDepthThreshold'],
    ['utilization-detector', { kvCacheUtilThreshold: 0 }, 'parameters.kvCacheUtilThreshold'],
    ['utilization-detector', { kvCacheUtilThreshold: 1.1 }, 'parameters.kvCacheUtilThreshold'],
    ['utilization-detector', { metricsStalenessThreshold: '0s' }, 'parameters.metricsStalenessThreshold'],
    ['static-usage-limit-policy', { threshold: 'x' }, 'parameters.threshold'],
    ['utilization-detector', { stalenessPolicy: 'hope' }, 'parameters.stalenessPolicy'],
    ['weighted-random-two-picker', { random: 'Math.random' }, 'parameters.random'],
    ['affinity-picker', { loadCap: 0.9 }, 'parameters.loadCap'],
    ['affinity-picker', { by: 'session' }, 'parameters.by'],
    ['label-filter', { label: 'model', of: 'model' }, 'parameters.of'],
    ['label-filter', { label: 'model', field: 'a', validValues: ['b'] }, 'parameters'],
    ['busy-threshold-detector', { activePrefillTokensThreshold: 1.5 }, 'parameters.activePrefillTokensThreshold'],
    ['max-saturation-detector', { detectors: [] }, 'parameters.detectors'],
    [
      'max-saturation-detector',
      { detectors: ['concurrency-detector', 'fcfs-ordering-policy'] },
      'parameters.detectors[1]',
    ],
    [
      'max-saturation-detector',
      { detectors: ['concurrency-detector'], stages: { other: ['decode'] } },
      'parameters.stages.other',
    ],
    [
      'max-saturation-detector',
      { detectors: ['concurrency-detector'], stages: { 'concurrency-detector': [] } },
      'parameters.stages.concurrency-detector',
    ],
    ['stage-aware-saturation-detector', { detector: 'x', prefill: 'y' }, 'parameters'],
    ['stage-aware-saturation-detector', { prefill: 'concurrency-detector', decode: 'x' }, 'parameters.decode'],
    ['aimd-latency-detector', {}, 'parameters.targetMs'],
    ['aimd-latency-detector', { targetMs: 1000, minLimit: 2000 }, 'parameters.minLimit'],
    ['gradient2-detector', { maxLimit: 10, maxFactor: 1 }, 'parameters.maxFactor'],
    ['vegas-detector', { maxLimit: 10, random: 1 }, 'parameters.random'],
    ['hysteresis-saturation-detector', { detector: 'nobody' }, 'parameters.detector'],
    ['hysteresis-saturation-detector', { detector: 'concurrency-detector', openAt: 2 }, 'parameters.openAt'],
    ['priority-holdback-policy', { minCeiling: 0.5, maxCeiling: 0 }, 'parameters.maxCeiling'],
    ['soft-reflective-ceiling-policy', { threshold: 0.5 }, 'parameters.threshold'],
    ['round-robin-fairness-policy', { weight: 1 }, 'parameters.weight'],
    ['token-bucket', { capacity: 0 }, 'parameters.capacity'],
    ['tier-shed', { overloadThreshold: -1 }, 'parameters.overloadThreshold'],
    ['gaie-legacy', { kvCacheUtilThreshold: 1.1 }, 'parameters.kvCacheUtilThreshold'],
    ['tenant-budgets', { budgets: { alice: 2 }, capacity: 1 }, 'parameters.budgets.alice'],
    ['probabilistic-admitter', { random: () => 0 }, 'parameters.random'],
    ['reject-all', { rate: 1 }, 'parameters.rate'],
    ['concurrency-detector', [], 'parameters'],
  ])('refuses %s with %j', (type, parameters, path) => {
    expect(() => defaultRegistry().create(type, parameters)).toThrow(
      expect.objectContaining({ issues: [expect.objectContaining({ path })] }),
    );
  });
});

describe('PluginRegistry.add', () => {
  const oldest = definePlugin({ ...blueprintOf('oldest-first') });

  function blueprintOf(type: string): Parameters<typeof definePlugin<'ordering', object>>[0] {
    return {
      kind: 'ordering',
      type,
      parameters: z.strictObject({}),
      create: () => ({ type, compare: (a, b) => a.sequence - b.sequence }),
    };
  }

  it('takes several at once', () => {
    expect(new PluginRegistry().add(newest, oldest).types()).toEqual(['newest-first', 'oldest-first']);
  });

  it.each([
    ['a factory', (): object => ({}), 'a function'],
    ['a plugin', { type: 'newest-first', compare: () => 0 }, 'an object with keys type, compare'],
    ['nothing', undefined, 'nothing'],
  ])('tells of what is no definition: %s', (_, given, got) => {
    expect(() => new PluginRegistry().add(newest, given as never)).toThrow(
      `PluginRegistry: definition: expected what definePlugin returns; got ${got}`,
    );
  });
});
