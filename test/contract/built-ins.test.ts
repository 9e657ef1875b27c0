import { describe, expect, it } from 'vitest';
import {
  type ConfigurableKind,
  concurrencyDetector,
  defaultRegistry,
  type Plugins,
  programAware,
  utilizationDetector,
} from '../../src/index.js';
import { describeEndpointFilter } from './describe-endpoint-filter.js';
import { describeEndpointPicker } from './describe-endpoint-picker.js';
import { describeFairnessPolicy } from './describe-fairness-policy.js';
import { describeOrderingPolicy } from './describe-ordering-policy.js';
import { describeSaturationDetector } from './describe-saturation-detector.js';
import { describeUsageLimitPolicy } from './describe-usage-limit-policy.js';

/** For types that cannot be made without. */
const parameters: Readonly<Record<string, unknown>> = {
  'affinity-picker': { by: 'fairnessId' },
  'aimd-latency-detector': { targetMs: 1000 },
  'gradient2-detector': { maxLimit: 200 },
  'hysteresis-saturation-detector': { detector: 'concurrency-detector', minDwellMs: 50 },
  'label-filter': { label: 'model' },
  'priority-holdback-policy': { minCeiling: 0.3 },
  'max-saturation-detector': { detectors: ['concurrency-detector', 'utilization-detector'] },
  'mean-saturation-detector': { detectors: ['concurrency-detector', 'utilization-detector'] },
  'stage-aware-saturation-detector': { detector: 'concurrency-detector' },
  'vegas-detector': { maxLimit: 200 },
};

/** All of one kind that a configuration file can name: a new one is covered from its first day. */
function builtIns<K extends ConfigurableKind>(kind: K, describePlugin: (name: string, make: () => Plugins[K]) => void): void {
  for (const type of defaultRegistry().types(kind))
    describePlugin(type, () => defaultRegistry().create(type, parameters[type]) as Plugins[K]);
}

builtIns('fairness', describeFairnessPolicy);
builtIns('ordering', describeOrderingPolicy);
builtIns('saturationDetector', describeSaturationDetector);
builtIns('endpointPicker', describeEndpointPicker);
builtIns('endpointFilter', describeEndpointFilter);
builtIns('usageLimit', describeUsageLimitPolicy);

describeFairnessPolicy('program-aware-fairness, turn-priority', () => programAware({ strategy: 'turn-priority' }));
describeSaturationDetector('concurrency-detector, tokens', () =>
  concurrencyDetector({ concurrencyMode: 'tokens', maxTokenConcurrency: 1000, headroom: 0.2 }),
);
describeSaturationDetector('concurrency-detector, hybrid', () => concurrencyDetector({ concurrencyMode: 'hybrid', maxConcurrency: 5 }));
describeSaturationDetector('utilization-detector, without lag compensation', () =>
  utilizationDetector({ lagCompensation: false, headroom: 0.5 }),
);

describe('the registry', () => {
  it('has built-ins of every kind that a contract is written for', () => {
    for (const kind of ['fairness', 'ordering', 'saturationDetector', 'endpointPicker', 'endpointFilter', 'usageLimit'] as const) {
      expect(defaultRegistry().types(kind).length).toBeGreaterThan(0);
    }
  });
});
