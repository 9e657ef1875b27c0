/** Resolved options in the reference's figures, and errors that are told instead. */
import {
  EndpointPool,
  FlowConfigError,
  type FlowControllerOptions,
  inFlightEviction,
  resolveOptions,
} from '../../../src/index.js';

export type Resolved = ReturnType<typeof resolveOptions>;

export interface LimitFigures {
  readonly maxBytes?: number;
  readonly maxRequests?: number;
}

export interface BandFigures extends LimitFigures {
  readonly ordering?: string;
  readonly fairness?: string;
}

/** No file can hold a pool, and detectors that read one ask for it. */
export function resolveWithPool(options: FlowControllerOptions): Resolved {
  return resolveOptions({ ...options, pool: new EndpointPool() });
}

/** The error that the work throws; undefined when it throws none. */
export function configErrorOf(work: () => unknown): FlowConfigError | undefined {
  try {
    work();
  } catch (error) {
    if (error instanceof FlowConfigError) return error;
    throw error;
  }
  return undefined;
}

/** The reference writes 0 for unlimited, and for no TTL. */
function figure(value: number): number {
  return value === Number.POSITIVE_INFINITY ? 0 : value;
}

export function limitFigures({ maxBytes, maxRequests }: Resolved['limits']): Required<LimitFigures> {
  return { maxBytes: figure(maxBytes), maxRequests: figure(maxRequests) };
}

export function bandFigures({ limits, fairness, ordering }: Resolved['defaultBand']): Required<BandFigures> {
  return { ...limitFigures(limits), fairness: fairness.type, ordering: ordering.type };
}

/** The settings count once eviction is switched on; the reference has them before. */
export function evictionFigures(
  options: FlowControllerOptions,
  isOn: boolean = options.eviction !== undefined,
): object {
  const { maxPerDecision, graceMs, timeoutMs } = {
    ...resolveWithPool({ ...options, eviction: options.eviction ?? inFlightEviction() }).eviction,
  };
  return {
    enableEviction: isOn,
    maxRevocationsPerDecision: maxPerDecision,
    evictionConfirmationGraceMs: graceMs,
    evictionConfirmationTimeoutMs: timeoutMs,
  };
}

export function ttlFigures({ defaultBand, noEndpointRequestTtlMs }: Resolved): object {
  return {
    defaultRequestTTLMs: figure(defaultBand.requestTtlMs),
    noEndpointRequestTTLMs: figure(noEndpointRequestTtlMs),
  };
}
