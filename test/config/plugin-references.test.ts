import { describe, expect, it } from 'vitest';
import { type LoadedConfig, loadConfig } from '../../src/config/index.js';
import { EndpointPool, FlowConfigError } from '../../src/index.js';
import type { CompositeDetector } from '../../src/types/index.js';

function load(plugins: readonly object[], pluginRef: string): LoadedConfig {
  return loadConfig({
    apiVersion: 'llm-d.ai/v1alpha1',
    kind: 'EndpointPickerConfig',
    featureGates: ['flowControl'],
    plugins,
    flowControl: { saturationDetector: { pluginRef } },
  });
}

function problems(plugins: readonly object[], pluginRef: string): string[] {
  try {
    load(plugins, pluginRef);
  } catch (error) {
    if (error instanceof FlowConfigError)
      return error.issues.map(({ path, expected, got }) => `${path}: expected ${expected}; got ${got}`);
    throw error;
  }
  return [];
}

const pool = new EndpointPool();
pool.add('a');
const busy = { endpoints: pool.endpoints, inFlightRequests: 6, inFlightTokens: 0 };

describe('plugins that name other plugins', () => {
  it('get the declared ones, whatever their place in the list', () => {
    const { options, warnings } = load(
      [
        { type: 'max-saturation-detector', parameters: { detectors: ['narrow', 'wide'] } },
        { type: 'concurrency-detector', name: 'wide', parameters: { maxConcurrency: 20 } },
        { type: 'concurrency-detector', name: 'narrow', parameters: { maxConcurrency: 10 } },
      ],
      'max-saturation-detector',
    );
    const detector = options.saturationDetector as CompositeDetector;
    expect(detector.saturation(busy, 0)).toBe(0.6);
    expect(detector.winner).toBe('narrow');
    expect(warnings).toEqual([]);
  });

  it('share one instance under one name', () => {
    const { options } = load(
      [
        { type: 'stage-aware-saturation-detector', name: 'staged', parameters: { detector: 'both' } },
        {
          type: 'mean-saturation-detector',
          name: 'both',
          parameters: { detectors: ['concurrency-detector', 'utilization-detector'] },
        },
        { type: 'concurrency-detector' },
        { type: 'utilization-detector' },
      ],
      'staged',
    );
    expect(options.saturationDetector).toMatchObject({ type: 'stage-aware-saturation-detector', needsPool: true });
  });

  it('are told at their own place what is wrong with a name', () => {
    expect(
      problems(
        [{ type: 'max-saturation-detector', parameters: { detectors: ['concurency-detector'] } }],
        'max-saturation-detector',
      ),
    ).toEqual([
      expect.stringMatching(
        /plugins\[0\]\.parameters\.detectors\[0\]: expected the name of a saturation detector, one of .* \(did you mean "concurrency-detector"\?\); got "concurency-detector"/,
      ),
    ]);
    const wrongKind = [
      { type: 'max-saturation-detector', name: 'max', parameters: { detectors: ['fcfs-ordering-policy'] } },
    ];
    expect(problems(wrongKind, 'max')).toEqual([
      expect.stringMatching(
        /plugins\[0\]\.parameters\.detectors\[0\]: expected the name of a saturation detector; got "fcfs-ordering-policy", which is an ordering/,
      ),
    ]);
  });

  it('do not tell again what is wrong with another plugin', () => {
    const plugins = [
      { type: 'max-saturation-detector', name: 'max', parameters: { detectors: ['bad'] } },
      { type: 'concurrency-detector', name: 'bad', parameters: { maxConcurrency: 0 } },
    ];
    expect(problems(plugins, 'max')).toEqual([
      expect.stringContaining('plugins[1].parameters.maxConcurrency: expected an integer from 1 up'),
    ]);
  });

  it('cannot name themselves, or each other in a circle', () => {
    const self = [{ type: 'max-saturation-detector', name: 'a', parameters: { detectors: ['a'] } }];
    expect(problems(self, 'a')).toEqual([
      expect.stringContaining(
        'plugins[0].parameters.detectors[0]: expected a saturation detector that does not refer back to this one; got "a"',
      ),
    ]);
    const circle = [
      { type: 'max-saturation-detector', name: 'a', parameters: { detectors: ['b'] } },
      { type: 'mean-saturation-detector', name: 'b', parameters: { detectors: ['a'] } },
    ];
    expect(problems(circle, 'a')).toEqual([expect.stringContaining('plugins[1].parameters.detectors[0]')]);
  });
});
