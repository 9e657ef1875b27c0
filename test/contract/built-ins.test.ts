import { describe, expect, it } from 'vitest';
import {
  type Constraint,
  concurrencyDetector,
  defaultRegistry,
  programAware,
  quotaDetector,
  utilizationDetector,
} from '../../src/index.js';
import {
  admissionPolicyContract,
  bandOrderPolicyContract,
  type ContractCase,
  constraintContract,
  endpointFilterContract,
  endpointPickerContract,
  evictionFilterContract,
  evictionOrderingContract,
  fairnessPolicyContract,
  orderingPolicyContract,
  saturationDetectorContract,
  seatListenerContract,
  usageLimitPolicyContract,
} from '../../src/testing/index.js';
import type { ConfigurableKind, Plugins } from '../../src/types/index.js';

/** For types that cannot be made without. */
const parameters: Readonly<Record<string, unknown>> = {
  'affinity-picker': { by: 'fairnessId' },
  'capacity-ledger': { slots: 3, prefillTokens: 4000, kvTokens: 9000, unstarted: 2, patience: 5 },
  'aimd-latency-detector': { targetMs: 1000 },
  'gradient2-detector': { maxLimit: 200 },
  'hysteresis-saturation-detector': { detector: 'concurrency-detector', minDwellMs: 50 },
  'label-filter': { label: 'model' },
  'priority-holdback-policy': { minCeiling: 0.3 },
  'max-saturation-detector': { detectors: ['concurrency-detector', 'utilization-detector'] },
  'mean-saturation-detector': { detectors: ['concurrency-detector', 'utilization-detector'] },
  'session-limit-detector': { maxSessions: 5, footprint: 1000, by: 'fairnessId', inactivity: '10ms' },
  'stage-aware-saturation-detector': { detector: 'concurrency-detector' },
  'tenant-budgets': { budgets: { a: 0.5, 'tenant-1': 0.1 }, capacity: 20 },
  'vegas-detector': { maxLimit: 200 },
};

/** A suite of each kind: a kind without one does not compile. */
const contracts: { readonly [K in ConfigurableKind]: (make: () => Plugins[K]) => ContractCase[] } = {
  fairness: fairnessPolicyContract,
  ordering: orderingPolicyContract,
  saturationDetector: saturationDetectorContract,
  constraint: constraintContract,
  usageLimit: usageLimitPolicyContract,
  bandOrder: bandOrderPolicyContract,
  endpointPicker: endpointPickerContract,
  endpointFilter: endpointFilterContract,
  admission: admissionPolicyContract,
  evictionFilter: evictionFilterContract,
  evictionOrdering: evictionOrderingContract,
};

function keeps(name: string, cases: readonly ContractCase[]): void {
  describe(name, () => {
    for (const { name: promise, run } of cases) it(promise, run);
  });
}

/** All of one kind that a configuration file can name: a new one is covered from its first day. */
function builtIns<K extends ConfigurableKind>(kind: K): void {
  const types = defaultRegistry().types(kind);
  for (const type of types)
    keeps(
      `${kind} ${type}`,
      contracts[kind](() => defaultRegistry().create(type, parameters[type]) as Plugins[K]),
    );
  it(`the registry has built-ins of the kind ${kind}`, () => expect(types.length).toBeGreaterThan(0));
}

for (const kind of Object.keys(contracts) as ConfigurableKind[]) builtIns(kind);

keeps(
  'program-aware-fairness, turn-priority',
  fairnessPolicyContract(() => programAware({ strategy: 'turn-priority' })),
);
keeps(
  'quota-detector, three units at each endpoint',
  constraintContract(() =>
    quotaDetector({
      random: () => 0,
      travel: 0,
      defaultOutputTokens: 10,
      groups: [
        {
          by: 'endpoint',
          quotas: [
            { unit: 'requests', limit: 20, per: 200, window: 'sliding' },
            { unit: 'inputTokens', limit: 4000, per: 200, window: 'fixed' },
            { unit: 'outputTokens', limit: 3000, per: 200 },
          ],
        },
      ],
    }),
  ),
);
keeps(
  'concurrency-detector, tokens',
  saturationDetectorContract(() =>
    concurrencyDetector({ concurrencyMode: 'tokens', maxTokenConcurrency: 1000, headroom: 0.2 }),
  ),
);
keeps(
  'concurrency-detector, with the request to come',
  saturationDetectorContract(() =>
    concurrencyDetector({ concurrencyMode: 'tokens', maxTokenConcurrency: 1000, countIncoming: true }),
  ),
);
keeps(
  'concurrency-detector, with the request to come, as a constraint',
  constraintContract(
    () =>
      concurrencyDetector({
        concurrencyMode: 'tokens',
        maxTokenConcurrency: 1000,
        countIncoming: true,
      }) as Partial<Constraint> as Constraint,
  ),
);
keeps(
  'a listener of seats',
  seatListenerContract(() => ({ dispatched() {}, released() {} })),
);
keeps(
  'concurrency-detector, hybrid',
  saturationDetectorContract(() => concurrencyDetector({ concurrencyMode: 'hybrid', maxConcurrency: 5 })),
);
keeps(
  'utilization-detector, without lag compensation',
  saturationDetectorContract(() => utilizationDetector({ lagCompensation: false, headroom: 0.5 })),
);
