/** Options in code, and the quantities that they and files are written in. */
import { expect } from 'vitest';
import { parseQuantity } from '../../../src/base/schema/quantity.js';
import type { EvictionOptions } from '../../../src/eviction/eviction-policy.js';
import {
  defaultRegistry,
  type FlowControllerOptions,
  inFlightEviction,
  resolveOptions,
  utilizationDetector,
} from '../../../src/index.js';
import {
  bandFigures,
  configErrorOf,
  evictionFigures,
  type LimitFigures,
  limitFigures,
  type Resolved,
  resolveWithPool,
  ttlFigures,
} from '../support/figures.js';
import { isNotCompared, type Runners, runner } from '../support/runner.js';

interface BandInput extends LimitFigures {
  readonly priority?: number;
  /** Type names; null is no policy. */
  readonly fairness?: string | null;
  readonly ordering?: string | null;
}

interface RegistryInput extends LimitFigures {
  flowGCTimeoutMs?: number;
  priorityBandGCTimeoutMs?: number;
  bands?: readonly (BandInput | null)[];
  /** Null: no default policies. They come with the package here, and cannot be missing. */
  defaults?: null;
  defaultPriorityBand?: BandInput;
  defaultNegativePriorityBand?: BandInput;
}

interface RegistryResult extends LimitFigures {
  errorContains?: string;
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

function policy(type: string | null | undefined): unknown {
  return typeof type === 'string' ? defaultRegistry().create(type) : type;
}

/** A limit of 0 is the default in the reference. */
function bandOptions({ priority, maxBytes, maxRequests, fairness, ordering, ...others }: BandInput): object {
  expect(Object.keys(others), 'keys of a band that the runner does not know').toEqual([]);
  const limits = { maxBytes: maxBytes || undefined, maxRequests: maxRequests || undefined };
  return {
    ...(priority === undefined ? {} : { priority }),
    limits,
    fairness: policy(fairness),
    ordering: policy(ordering),
  };
}

/** A global limit of 0 is unlimited. Vectors may hold bands that are none, hence the cast. */
function constructorOptions(input: RegistryInput): FlowControllerOptions {
  const { maxBytes, maxRequests, bands, defaultPriorityBand, defaultNegativePriorityBand } = input;
  return {
    saturationDetector,
    limits: { maxBytes: maxBytes || Number.POSITIVE_INFINITY, maxRequests: maxRequests || Number.POSITIVE_INFINITY },
    flowIdleTimeout: input.flowGCTimeoutMs,
    bandIdleTimeout: input.priorityBandGCTimeoutMs,
    bands: bands?.map((band) => band && bandOptions(band)),
    defaultBand: defaultPriorityBand && bandOptions(defaultPriorityBand),
    defaultNegativeBand: defaultNegativePriorityBand && bandOptions(defaultNegativePriorityBand),
  } as FlowControllerOptions;
}

/** Without the one thing that files do otherwise: in code a larger global limit widens the defaults of the bands. */
function resolveLikeAFile(options: FlowControllerOptions): Resolved {
  const { limits, ...others } = options;
  return { ...resolveOptions(others), limits: resolveOptions({ saturationDetector, limits }).limits };
}

function registryFigures(resolved: Resolved): object {
  const bandOf = (priority: number): object | undefined => {
    const band = resolved.bands.find((each) => each.priority === priority);
    return band && bandFigures(band);
  };
  return {
    ...limitFigures(resolved.limits),
    flowGCTimeoutMs: resolved.flowIdleTimeoutMs,
    priorityBandGCTimeoutMs: resolved.bandIdleTimeoutMs,
    priorities: resolved.bands.map(({ priority }) => priority),
    band0: bandOf(0),
    band1: bandOf(1),
    defaultPriorityBand: bandFigures(resolved.defaultBand),
    defaultNegativePriorityBand: bandFigures(resolved.defaultNegativeBand),
  };
}

/** The reference's options → ours, which the message must name. */
const ownOptions: Readonly<Record<string, string>> = {
  flowGCTimeout: 'flowIdleTimeout',
  priorityBandGCTimeout: 'bandIdleTimeout',
  'duplicate priority': 'priority',
};

const sharedKeys = ['maxBytes', 'maxRequests', 'flowGCTimeoutMs', 'priorityBandGCTimeoutMs'] as const;
const templateKeys = ['defaultPriorityBand', 'defaultNegativePriorityBand'] as const;

export const optionRunners: Runners = {
  'quantity.parse': runner<{ text: string | number }, { value?: number; error?: unknown; valid?: boolean }>(
    { input: ['text'], expect: ['value', 'error', 'valid'] },
    ({ input, expect: { value, error, valid = !error } }) => {
      const parsed = parseQuantity(input.text);
      expect(!Number.isNaN(parsed)).toBe(valid);
      if (value !== undefined) expect(parsed).toBe(value);
    },
  ),

  'registry.config': runner<RegistryInput, RegistryResult>(
    {
      input: [...sharedKeys, ...templateKeys, 'bands', 'defaults'],
      expect: ['valid', 'errorContains', ...sharedKeys, ...templateKeys, 'priorities', 'band0', 'band1'],
    },
    ({ input, expect: { valid, errorContains, ...expected } }) => {
      const options = constructorOptions(input);
      const error = configErrorOf(() => resolveOptions(options));
      expect(error === undefined, error?.message).toBe(valid);
      const word = Object.keys(ownOptions).find((name) => errorContains?.includes(name));
      if (word !== undefined) expect(error?.message).toContain(ownOptions[word]);
      if (valid) expect(registryFigures(resolveLikeAFile(options))).toMatchObject(expected);
    },
  ),

  'controller.config': runner<{ options: Readonly<Record<string, unknown>> }, { valid: boolean; config?: object }>(
    { input: ['options'], expect: ['valid', 'config'] },
    (vector) => {
      const { defaultRequestTTLMs, noEndpointRequestTTLMs, enableEviction, ...others } = vector.input.options;
      const { maxRevocationsPerDecision, evictionConfirmationGraceMs, evictionConfirmationTimeoutMs, ...rest } = others;
      const left = Object.keys(rest).filter((key) => !isNotCompared(vector, `input.options.${key}`));
      expect(left, 'options that the runner does not know').toEqual([]);
      const ttls = { defaultRequestTtl: defaultRequestTTLMs, noEndpointRequestTtl: noEndpointRequestTTLMs };
      const eviction = {
        maxPerDecision: maxRevocationsPerDecision,
        graceMs: evictionConfirmationGraceMs,
        timeoutMs: evictionConfirmationTimeoutMs,
      };
      const make = (): FlowControllerOptions =>
        ({
          saturationDetector: utilizationDetector(),
          ...ttls,
          eviction: inFlightEviction(eviction as EvictionOptions),
        }) as FlowControllerOptions;
      const { valid, config } = vector.expect;
      expect(configErrorOf(() => resolveWithPool(make())) === undefined).toBe(valid);
      if (config === undefined) return;
      const options = make();
      const compared = Object.entries(config).filter(([key]) => !isNotCompared(vector, `expect.config.${key}`));
      const found = { ...ttlFigures(resolveWithPool(options)), ...evictionFigures(options, enableEviction === true) };
      expect(found).toEqual(Object.fromEntries(compared));
    },
  ),
};
