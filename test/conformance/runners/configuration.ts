/** Options and configuration files: what is refused, where, and what the rest becomes. */
import { expect } from 'vitest';
import { stringify } from 'yaml';
import { type LoadedConfig, loadConfig } from '../../../src/config/index.js';
import { defaultRegistry, EndpointPool, FlowConfigError, type FlowControllerOptions, resolveOptions, schemas } from '../../../src/index.js';
import { pathOfMessage } from '../support/config-messages.js';
import { isNotCompared, type Runners, runner } from '../support/runner.js';

type Resolved = ReturnType<typeof resolveOptions>;
type ResolvedBand = Resolved['defaultBand'];

interface FileInput {
  flowControl?: object | null;
  featureGates?: readonly string[];
  plugins?: readonly object[];
  saturationDetector?: object;
}

interface LimitFigures {
  readonly maxBytes?: number;
  readonly maxRequests?: number;
}

interface BandFigures extends LimitFigures {
  readonly ordering?: string;
  readonly fairness?: string;
}

/** The reference writes 0 for unlimited, and for no TTL. */
function figure(value: number): number {
  return value === Number.POSITIVE_INFINITY ? 0 : value;
}

function limitFigures({ maxBytes, maxRequests }: { maxBytes: number; maxRequests: number }): Required<LimitFigures> {
  return { maxBytes: figure(maxBytes), maxRequests: figure(maxRequests) };
}

function bandFigures({ limits, fairness, ordering }: ResolvedBand): Required<BandFigures> {
  return { ...limitFigures(limits), fairness: fairness.type, ordering: ordering.type };
}

function ttlFigures({ defaultBand, noEndpointRequestTtlMs }: Resolved): object {
  return { defaultRequestTTLMs: figure(defaultBand.requestTtlMs), noEndpointRequestTTLMs: figure(noEndpointRequestTtlMs) };
}

/** As a file, so that the YAML is read as well. */
function load({ flowControl, featureGates = ['flowControl'], plugins, saturationDetector }: FileInput): LoadedConfig {
  const document = {
    apiVersion: 'llm-d.ai/v1alpha1',
    kind: 'EndpointPickerConfig',
    featureGates,
    plugins,
    saturationDetector,
    flowControl,
  };
  return loadConfig(stringify(document));
}

/** No file can hold a pool, and detectors that read one ask for it. */
function resolveWithPool(options: FlowControllerOptions): Resolved {
  return resolveOptions({ ...options, pool: new EndpointPool() });
}

function configErrorOf(work: () => unknown): FlowConfigError | undefined {
  try {
    work();
  } catch (error) {
    if (error instanceof FlowConfigError) return error;
    throw error;
  }
  return undefined;
}

/** An error of the reference is matched by an issue at the same field; text that no table knows must stand in our message as it is. */
function expectProblem(input: FileInput, message: string): void {
  const error = configErrorOf(() => load(input));
  expect(error, message).toBeInstanceOf(FlowConfigError);
  const path = pathOfMessage(message, input.flowControl ?? {});
  if (path === undefined) expect(error?.message).toContain(message);
  else expect(error?.issues.map((issue) => issue.path)).toContainEqual(expect.stringMatching(new RegExp(`${escapeText(path)}$`)));
}

function escapeText(text: string): string {
  return text.replace(/[.[\]]/g, '\\$&');
}

const fileKeys = ['flowControl', 'featureGates', 'plugins', 'saturationDetector'] as const;

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
    defaultNegativePriorityBand: options.defaultNegativeBand === undefined ? null : bandFigures(resolved.defaultNegativeBand),
  };
}

interface ControllerFigures {
  defaultRequestTTLMs?: number;
  noEndpointRequestTTLMs?: number;
  errorContains?: string;
}

interface InternalBand extends LimitFigures {
  readonly priority: number;
  /** Type names; null is no policy. */
  readonly fairness?: string | null;
  readonly ordering?: string | null;
}

interface RegistryOptions {
  maxBytes?: number;
  maxRequests?: number;
  flowGCTimeoutMs?: number;
  priorityBandGCTimeoutMs?: number;
  bands?: readonly (InternalBand | null)[];
  defaultPriorityBand?: LimitFigures;
  defaultNegativePriorityBand?: LimitFigures;
}

interface RegistryResult extends LimitFigures {
  valid: boolean;
  flowGCTimeoutMs?: number;
  priorityBandGCTimeoutMs?: number;
  priorities?: readonly number[];
  band0?: LimitFigures;
  band1?: LimitFigures;
  defaultPriorityBand?: LimitFigures;
  defaultNegativePriorityBand?: LimitFigures;
}

const saturationDetector = (): number => 0;

/** 0 is the default of a band in the reference, and unlimited as a global limit. */
function constructorOptions(input: RegistryOptions): FlowControllerOptions {
  const policy = (type: string | null | undefined): unknown => (typeof type === 'string' ? defaultRegistry().create(type) : type);
  const band = ({ maxBytes, maxRequests, fairness, ordering, priority, ...others }: Partial<InternalBand>): object => {
    expect(Object.keys(others), 'keys of a band that the runner does not know').toEqual([]);
    const limits = { maxBytes: maxBytes || undefined, maxRequests: maxRequests || undefined };
    return { limits, fairness: policy(fairness), ordering: policy(ordering), ...(priority === undefined ? {} : { priority }) };
  };
  return {
    saturationDetector,
    limits: { maxBytes: input.maxBytes || Number.POSITIVE_INFINITY, maxRequests: input.maxRequests || Number.POSITIVE_INFINITY },
    flowIdleTimeout: input.flowGCTimeoutMs,
    bandIdleTimeout: input.priorityBandGCTimeoutMs,
    bands: input.bands?.map((each) => each && band(each)) as FlowControllerOptions['bands'],
    defaultBand: input.defaultPriorityBand && band(input.defaultPriorityBand),
    defaultNegativeBand: input.defaultNegativePriorityBand && band(input.defaultNegativePriorityBand),
  };
}

/** Global limits widen the defaults of bands made in code; a file spells them out. */
function resolvedLikeAFile(input: RegistryOptions): Resolved {
  const { limits, ...others } = constructorOptions(input);
  const { limits: resolved } = resolveOptions({ saturationDetector, limits });
  return { ...resolveOptions(others), limits: resolved };
}

interface ControllerOptions {
  options: Readonly<Record<string, number | boolean>>;
}

export const configurationRunners: Runners = {
  'quantity.parse': runner<{ text: string | number }, { value: number }>(
    { input: ['text'], expect: ['value'] },
    ({ input, expect: expected }) => {
      expect(schemas.parseQuantity(input.text)).toBe(expected.value);
    },
  ),

  'registry.configFromYaml': runner<FileInput, RegistryFigures>(
    {
      input: fileKeys,
      expect: [
        'maxBytes',
        'maxRequests',
        'bands',
        'ordering',
        'fairness',
        'defaultPriorityBand',
        'defaultNegativePriorityBand',
        'errorContains',
      ],
    },
    ({ input, expect: expected }) => {
      if (expected.errorContains !== undefined) expectProblem(input, expected.errorContains);
      else expect(registryFigures(load(input))).toMatchObject(expected);
    },
  ),

  'controller.configFromYaml': runner<FileInput, ControllerFigures>(
    { input: fileKeys, expect: ['defaultRequestTTLMs', 'noEndpointRequestTTLMs', 'errorContains'] },
    ({ input, expect: expected }) => {
      if (expected.errorContains !== undefined) expectProblem(input, expected.errorContains);
      else expect(ttlFigures(resolveWithPool(load(input).options))).toMatchObject(expected);
    },
  ),

  'controller.config': runner<ControllerOptions, { valid: boolean; config?: object }>(
    { input: ['options'], expect: ['valid', 'config'] },
    (vector) => {
      const { expect: expected } = vector;
      const { defaultRequestTTLMs, noEndpointRequestTTLMs, ...others } = vector.input.options;
      const left = Object.keys(others).filter((key) => !isNotCompared(vector, `input.options.${key}`));
      expect(left, 'options that the runner does not know').toEqual([]);
      const ours = {
        saturationDetector,
        defaultRequestTtl: defaultRequestTTLMs as number,
        noEndpointRequestTtl: noEndpointRequestTTLMs as number,
      };
      const error = configErrorOf(() => resolveOptions(ours));
      expect(error === undefined).toBe(expected.valid);
      if (expected.config === undefined) return;
      const compared = Object.entries(expected.config).filter(([key]) => !isNotCompared(vector, `expect.config.${key}`));
      expect(ttlFigures(resolveOptions(ours))).toEqual(Object.fromEntries(compared));
    },
  ),

  'registry.config': runner<RegistryOptions, RegistryResult>(
    {
      input: [
        'maxBytes',
        'maxRequests',
        'flowGCTimeoutMs',
        'priorityBandGCTimeoutMs',
        'bands',
        'defaultPriorityBand',
        'defaultNegativePriorityBand',
      ],
      expect: [
        'valid',
        'maxBytes',
        'maxRequests',
        'flowGCTimeoutMs',
        'priorityBandGCTimeoutMs',
        'priorities',
        'band0',
        'band1',
        'defaultPriorityBand',
        'defaultNegativePriorityBand',
      ],
    },
    ({ input, expect: expected }) => {
      const error = configErrorOf(() => resolveOptions(constructorOptions(input)));
      expect(error === undefined, error?.message).toBe(expected.valid);
      if (!expected.valid) return;
      const resolved = resolvedLikeAFile(input);
      const bandOf = (priority: number): object | undefined => {
        const band = resolved.bands.find((each) => each.priority === priority);
        return band && bandFigures(band);
      };
      const found = {
        valid: true,
        ...limitFigures(resolved.limits),
        flowGCTimeoutMs: resolved.flowIdleTimeoutMs,
        priorityBandGCTimeoutMs: resolved.bandIdleTimeoutMs,
        priorities: resolved.bands.map(({ priority }) => priority),
        band0: bandOf(0),
        band1: bandOf(1),
        defaultPriorityBand: bandFigures(resolved.defaultBand),
        defaultNegativePriorityBand: bandFigures(resolved.defaultNegativeBand),
      };
      expect(found).toMatchObject(expected);
    },
  ),

  'loader.featureGate': runner<
    FileInput,
    {
      enabled?: boolean;
      maxBytes?: number;
      maxRequests?: number;
      defaultRequestTTLMs?: number;
      noEndpointRequestTTLMs?: number;
      injectedPlugins?: readonly string[];
      error?: unknown;
      errorContains?: string;
    }
  >(
    {
      input: fileKeys,
      expect: [
        'enabled',
        'maxBytes',
        'maxRequests',
        'defaultRequestTTLMs',
        'noEndpointRequestTTLMs',
        'injectedPlugins',
        'error',
        'errorContains',
      ],
    },
    ({ input, expect: { injectedPlugins = [], error, errorContains, ...expected } }) => {
      if (errorContains !== undefined || error) {
        expectProblem(input, errorContains ?? '');
        return;
      }
      const { enabled, options } = load(input);
      const resolved = resolveWithPool(options);
      expect({ enabled, ...limitFigures(resolved.limits), ...ttlFigures(resolved) }).toMatchObject(expected);
      const { fairness, ordering } = resolved.defaultBand;
      const plugins = [fairness, ordering, resolved.usageLimitPolicy, resolved.saturationDetector].map(({ type }) => type);
      expect(plugins).toEqual(expect.arrayContaining([...injectedPlugins]));
    },
  ),

  'loader.ignoredWarning': runner<FileInput, { warns: boolean }>({ input: fileKeys, expect: ['warns'] }, ({ input, expect: expected }) => {
    const { warnings } = load(input);
    expect(warnings.some((warning) => warning.includes('feature gate "flowControl" is off'))).toBe(expected.warns);
  }),
};
