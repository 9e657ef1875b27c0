/** Plugins by type name: what parameters they take, and what ceilings they compute. */
import { expect } from 'vitest';
import { checkAdapter } from '../../../src/adapters/http/adapter-options.js';
import { object, optional, parse } from '../../../src/base/schema/element.js';
import { flag, text } from '../../../src/base/schema/types.js';
import { tokenEstimatorOptions } from '../../../src/endpoints/token-estimator.js';
import {
  type ConfigIssue,
  defaultRegistry,
  definePlugin,
  FlowConfigError,
  type PluginRegistry,
  type UsageLimitPolicy,
} from '../../../src/index.js';
import { accepted, expectNumbers, type Runners, runner } from '../support/runner.js';

interface Ceilings {
  type: string;
  params?: unknown;
  saturation: number;
  priorities: readonly number[];
}

function policyOf(type: string, params: unknown): UsageLimitPolicy {
  return accepted(() => defaultRegistry().create(type, params ?? {}) as UsageLimitPolicy);
}

function ceilingsOf(policy: UsageLimitPolicy, saturation: number, priorities: readonly number[]): number[] {
  const ceilings = priorities.map(() => 1);
  policy.computeLimits(saturation, priorities, ceilings);
  return ceilings;
}

/**
 * The load producer is no plugin here: an estimator counts tokens, and the controller requests. Its other parameters
 * name parts of the router.
 */
const loadProducer = {
  prefixMatchInfoProducerName: optional(text()),
  syncCrossReplicaState: optional(flag()),
  crossReplicaSyncInterval: optional(text()),
};

/**
 * The built-in plugins, and for each known name, some with a remark on what it is, a plugin of that name as its type.
 */
function registryWith(names: readonly string[]): PluginRegistry {
  return names.reduce((registry, name) => {
    const parameters = object({});
    const type = name.replace(' (not a detector)', '');
    if (type === name) {
      return registry.add(
        definePlugin({ kind: 'saturationDetector', type, parameters, create: () => ({ type, saturation: () => 0 }) }),
      );
    }
    return registry.add(
      definePlugin({ kind: 'usageLimit', type, parameters, create: () => ({ type, computeLimits: () => {} }) }),
    );
  }, defaultRegistry());
}

/** The reference's words about names → ours, where they are not the same. */
const ownWords: Readonly<Record<string, string>> = {
  'plugin not found: absent': 'detectors[0]: expected the name of a saturation detector',
  'does not implement': 'detectors[0]: expected the name of a saturation detector',
  'duplicate entry': 'detectors[1]: expected a name that is not in the list yet',
  'unsupported stage': 'stages.a[0]: expected one of "prefill", "decode"',
};

/** What the reference calls its plugins and their parameters → what they are called here. */
const ownNames: Readonly<
  Record<string, { readonly type: string; readonly parameters: Readonly<Record<string, string>> }>
> = {
  'vtc-fairness-policy': {
    type: 'virtual-token-counter-fairness-policy',
    parameters: { inputTokenWeight: 'promptTokenPrice', outputTokenWeight: 'completionTokenPrice' },
  },
  'agent-identity': { type: 'an option of the adapters', parameters: { additionalSessionHeaders: 'sessionHeaders' } },
};

function ownNameOf(type: string, parameter: string): string {
  return ownNames[type]?.parameters[parameter] ?? parameter;
}

function checkParameters(type: string, given: object, knownPlugins: readonly string[]): void {
  const parameters = Object.fromEntries(Object.entries(given).map(([name, value]) => [ownNameOf(type, name), value]));
  if (type === 'agent-identity') {
    checkAdapter({ enqueue: () => {}, stats: () => {} } as never, parameters);
    return;
  }
  if (type !== 'inflight-load-producer') {
    registryWith(knownPlugins).create(ownNames[type]?.type ?? type, parameters);
    return;
  }
  const ofRouter = Object.entries(parameters).filter(([key]) => key in loadProducer);
  const ofEstimator = Object.entries(parameters).filter(([key]) => !(key in loadProducer));
  const both = object({ parameters: tokenEstimatorOptions, router: object(loadProducer) });
  parse(both, { parameters: Object.fromEntries(ofEstimator), router: Object.fromEntries(ofRouter) }, type);
}

interface Validation {
  type: string;
  params: unknown;
  /** What a file declares beside it. */
  knownPlugins?: readonly string[];
}

/** Where an error about these parameters may point: at one of them, or at the whole when it is no object. */
function parameterPaths(type: string, params: unknown): string[] {
  if (typeof params !== 'object' || params === null || Array.isArray(params)) return ['parameters'];
  return Object.keys(params).map((key) =>
    type === 'agent-identity' ? ownNameOf(type, key) : `parameters.${ownNameOf(type, key)}`,
  );
}

export const pluginRunners: Runners = {
  /** A wrong parameter must be named by the error, not only be refused. */
  'plugin.validate': runner<Validation, { valid: boolean; errorContains?: string }>(
    { input: ['type', 'params', 'knownPlugins'], expect: ['valid', 'errorContains'] },
    ({ input, expect: expected }) => {
      let error: unknown;
      try {
        checkParameters(input.type, input.params ?? {}, input.knownPlugins ?? []);
      } catch (thrown) {
        error = thrown;
      }
      if (expected.valid) {
        expect(error).toBeUndefined();
        return;
      }
      expect(error).toBeInstanceOf(FlowConfigError);
      const { issues, message } = error as FlowConfigError;
      const paths = parameterPaths(input.type, input.params);
      // A required parameter that is missing is named, too.
      const isUnknown = paths.length === 0;
      const isNamed = ({ path, got }: ConfigIssue): boolean =>
        (isUnknown && path === 'type') || got === 'nothing' || paths.some((given) => path.startsWith(given));
      expect(issues.some(isNamed), `${message} names one of ${paths.join(', ')}`).toBe(true);
      const { errorContains = '' } = expected;
      expect(message).toContain(ownWords[errorContains] ?? errorContains);
    },
  ),

  'usageLimit.ceilings': runner<Ceilings, { ceilings: readonly number[] }>(
    { input: ['type', 'params', 'saturation', 'priorities'], expect: ['ceilings'] },
    ({ input: { type, params, saturation, priorities }, expect: expected, tolerance }) => {
      expectNumbers(ceilingsOf(policyOf(type, params), saturation, priorities), expected.ceilings, tolerance);
    },
  ),

  'usageLimit.ceilingSequence': runner<
    { type: string; params?: unknown; calls: readonly Pick<Ceilings, 'saturation' | 'priorities'>[] },
    { ceilings: readonly (readonly number[])[] }
  >({ input: ['type', 'params', 'calls'], expect: ['ceilings'] }, ({ input, expect: expected, tolerance }) => {
    const policy = policyOf(input.type, input.params);
    // Each call of the reference is a turn of its loop that releases one request.
    const found = input.calls.map(({ saturation, priorities }) => {
      const ceilings = ceilingsOf(policy, saturation, priorities);
      policy.dispatched?.(priorities[0] ?? 0);
      return ceilings;
    });
    expect(found).toHaveLength(expected.ceilings.length);
    for (const [index, ceilings] of expected.ceilings.entries()) expectNumbers(found[index] ?? [], ceilings, tolerance);
  }),

  'usageLimit.property': runner<
    { type: string; params?: unknown; saturations: readonly number[]; priorities: readonly number[] },
    { ceiling0: number }
  >({ input: ['type', 'params', 'saturations', 'priorities'], expect: ['ceiling0'] }, ({ input, expect: expected }) => {
    const policy = policyOf(input.type, input.params);
    for (const saturation of input.saturations)
      expect(ceilingsOf(policy, saturation, input.priorities)[0]).toBe(expected.ceiling0);
  }),
};
