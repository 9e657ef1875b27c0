/** Configuration files: what is refused, where, and what the rest becomes. Every document goes through YAML text. */
import { expect } from 'vitest';
import { stringify } from 'yaml';
import { type LoadedConfig, loadConfig } from '../../../src/config/index.js';
import { FlowConfigError } from '../../../src/index.js';
import { pathOfMessage } from '../support/config-messages.js';
import {
  type BandFigures,
  bandFigures,
  configErrorOf,
  evictionFigures,
  limitFigures,
  resolveWithPool,
  ttlFigures,
} from '../support/figures.js';
import { type Runners, runner } from '../support/runner.js';

interface FileInput {
  flowControl?: object | null;
  featureGates?: readonly string[];
  plugins?: readonly object[];
  saturationDetector?: object;
}

const inputKeys = ['flowControl', 'featureGates', 'plugins', 'saturationDetector'] as const;

function load({ flowControl, featureGates = ['flowControl'], plugins, saturationDetector }: FileInput): LoadedConfig {
  const identity = { apiVersion: 'llm-d.ai/v1alpha1', kind: 'EndpointPickerConfig' };
  return loadConfig(stringify({ ...identity, featureGates, plugins, saturationDetector, flowControl }));
}

/**
 * An error of the reference is matched by an issue at the same field; text that no table knows must stand in our
 * message as it is.
 */
function expectProblem(input: FileInput, message: string): void {
  const error = configErrorOf(() => load(input));
  expect(error, message).toBeInstanceOf(FlowConfigError);
  const path = pathOfMessage(message, input.flowControl ?? {});
  if (path === undefined) expect(error?.message).toContain(message);
  else
    expect(error?.issues.map((issue) => issue.path)).toContainEqual(
      expect.stringMatching(new RegExp(`${escapeText(path)}$`)),
    );
}

function escapeText(text: string): string {
  return text.replace(/[.[\]]/g, '\\$&');
}

interface RegistryFigures extends BandFigures {
  bands?: Readonly<Record<string, BandFigures>>;
  defaultPriorityBand?: BandFigures | null;
  defaultNegativePriorityBand?: BandFigures | null;
  errorContains?: string;
}

function registryFigures({ options }: LoadedConfig): object {
  const resolved = resolveWithPool(options);
  const { fairness, ordering } = bandFigures(resolved.defaultBand);
  return {
    ...limitFigures(resolved.limits),
    fairness,
    ordering,
    bands: Object.fromEntries(resolved.bands.map((band) => [String(band.priority), bandFigures(band)])),
    defaultPriorityBand: bandFigures(resolved.defaultBand),
    defaultNegativePriorityBand:
      options.defaultNegativeBand === undefined ? null : bandFigures(resolved.defaultNegativeBand),
  };
}

interface TtlFigures {
  defaultRequestTTLMs?: number;
  noEndpointRequestTTLMs?: number;
}

interface EvictionFigures {
  enableEviction?: boolean;
  maxRevocationsPerDecision?: number;
  evictionConfirmationGraceMs?: number;
  evictionConfirmationTimeoutMs?: number;
}

interface LoaderResult extends TtlFigures {
  enabled?: boolean;
  maxBytes?: number;
  maxRequests?: number;
  injectedPlugins?: readonly string[];
  error?: unknown;
  errorContains?: string;
}

const limitKeys = ['maxBytes', 'maxRequests'] as const;
const ttlKeys = ['defaultRequestTTLMs', 'noEndpointRequestTTLMs'] as const;
const evictionKeys = [
  'enableEviction',
  'maxRevocationsPerDecision',
  'evictionConfirmationGraceMs',
  'evictionConfirmationTimeoutMs',
] as const;
const bandKeys = ['bands', 'ordering', 'fairness', 'defaultPriorityBand', 'defaultNegativePriorityBand'] as const;

export const configFileRunners: Runners = {
  'registry.configFromYaml': runner<FileInput, RegistryFigures>(
    { input: inputKeys, expect: [...limitKeys, ...bandKeys, 'errorContains'] },
    ({ input, expect: expected }) => {
      if (expected.errorContains !== undefined) expectProblem(input, expected.errorContains);
      else expect(registryFigures(load(input))).toMatchObject(expected);
    },
  ),

  'controller.configFromYaml': runner<FileInput, TtlFigures & EvictionFigures & { errorContains?: string }>(
    { input: inputKeys, expect: [...ttlKeys, ...evictionKeys, 'errorContains'] },
    ({ input, expect: expected }) => {
      if (expected.errorContains !== undefined) expectProblem(input, expected.errorContains);
      else {
        const { options } = load(input);
        expect({ ...ttlFigures(resolveWithPool(options)), ...evictionFigures(options) }).toMatchObject(expected);
      }
    },
  ),

  'loader.featureGate': runner<FileInput, LoaderResult>(
    { input: inputKeys, expect: ['enabled', ...limitKeys, ...ttlKeys, 'injectedPlugins', 'error', 'errorContains'] },
    ({ input, expect: { injectedPlugins = [], error, errorContains, ...expected } }) => {
      if (errorContains !== undefined || error) {
        expectProblem(input, errorContains ?? '');
        return;
      }
      const { enabled, options } = load(input);
      const resolved = resolveWithPool(options);
      expect({ enabled, ...limitFigures(resolved.limits), ...ttlFigures(resolved) }).toMatchObject(expected);
      const { fairness, ordering } = resolved.defaultBand;
      const plugins = [fairness, ordering, resolved.usageLimitPolicy, resolved.saturationDetector].map(
        ({ type }) => type,
      );
      expect(plugins).toEqual(expect.arrayContaining([...injectedPlugins]));
    },
  ),

  'loader.ignoredWarning': runner<FileInput, { warns: boolean }>(
    { input: inputKeys, expect: ['warns'] },
    ({ input, expect: expected }) => {
      const { warnings } = load(input);
      expect(warnings.some((warning) => warning.includes('feature gate "flowControl" is off'))).toBe(expected.warns);
    },
  ),
};
