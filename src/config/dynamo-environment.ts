/** Dynamo's environment variables for request rejection. What Dynamo ignores is ignored, unless it reports an error. */
import { configError } from '../base/faults/flow-config-error.js';
import * as s from '../base/schema/schema.js';
import { busyThresholdDetector } from '../index.js';
import type { BusyThresholds } from '../types/index.js';

/** The environment, as `process.env` has it. */
export type Environment = Readonly<Record<string, string | undefined>>;

export interface DynamoEnvironmentOptions {
  /**
   * `engine-limits`: the newest, which bound what has no first response too, and no wait. `backend-gate`: those
   * before, which resize the limit to the engine and bound the wait. `tcp-channel`: those around 1.2, which hold 16
   * requests behind a limit unless told otherwise, for as long as it takes.
   * @default 'engine-limits' where one of its variables is set, or else 'backend-gate'
   */
  release?: 'engine-limits' | 'backend-gate' | 'tcp-channel' | undefined;
  /** The answer of `automaticConcurrencyLimit` for the engine; counts where no limit is set. `backend-gate` only. */
  automaticLimit?: number | undefined;
}

export interface DynamoSettings {
  /** For `busyThresholdDetector`. Empty: nothing is rejected. */
  readonly thresholds: Readonly<BusyThresholds>;
  /** `token-capacity` as soon as one threshold is given. */
  readonly admissionControl: 'none' | 'token-capacity';
  /** For `workerAdmission`; `maxQueueDelay` in ms. */
  readonly worker: {
    readonly engineRequestLimit: number;
    readonly engineWaitLimit: number;
    readonly requestQueueLimit: number;
    readonly maxQueueDelay: number;
    readonly adaptiveLifo: boolean;
  };
}

/** The variable of each threshold, and what Dynamo sets where none is given: a limit that is never reached. */
const thresholds: Readonly<Record<keyof BusyThresholds, readonly [variable: string, unreached: number]>> = {
  activeDecodeBlocksThreshold: ['DYN_ACTIVE_DECODE_BLOCKS_THRESHOLD', 1],
  activePrefillTokensThreshold: ['DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD', 10_000_000],
  activePrefillTokensThresholdFrac: ['DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD_FRAC', 64],
};

const engineLimit = {
  requests: 'DYN_BACKEND_ADMISSION_ENGINE_REQUEST_LIMIT',
  waits: 'DYN_BACKEND_ADMISSION_ENGINE_REQUEST_WAITING_LIMIT',
  waitsBefore: 'DYN_BACKEND_ADMISSION_ENGINE_WAIT_LIMIT',
  queue: 'DYN_BACKEND_ADMISSION_REQUEST_QUEUE_LIMIT',
};

const modeVariable = 'DYN_ADMISSION_CONTROL';
const subject = 'dynamoEnvironment';

const optionsSchema = s.object({
  release: s.optional(s.oneOf('engine-limits', 'backend-gate', 'tcp-channel')),
  automaticLimit: s.optional(s.atLeastZero()),
});

/**
 * What these variables stand for: `DYN_ADMISSION_CONTROL` and its three thresholds (`None` switches one off),
 * `DYN_BACKEND_ADMISSION_ENGINE_REQUEST_LIMIT`, `…_ENGINE_REQUEST_WAITING_LIMIT` (before: `…_ENGINE_WAIT_LIMIT`) and
 * `…_REQUEST_QUEUE_LIMIT`, `DYN_ENGINE_REQUEST_LIMIT`, `DYN_DYNAMO_REQUEST_QUEUE_LIMIT`, `DYN_TCP_WORKER_POOL_SIZE`,
 * `DYN_TCP_WORK_QUEUE_SIZE`, `DYN_DYNAMO_REQUEST_QUEUE_TIMEOUT_MS`, `…_ENABLE_CONTROLLED_DELAY` and
 * `…_ENABLE_ADAPTIVE_LIFO`.
 * `dynamoOverloadStatus` of `headgate/http` reads the status for overload.
 * Differs from Dynamo: a queue limit of 0 or 1 is that limit, where `tcp-channel` holds 2.
 * Source: Dynamo, request rejection; lib/runtime, the backend admission gate. @throws FlowConfigError for an unknown
 * mode, a threshold out of range, a threshold beside the mode `none`, and options that are wrong.
 * @example
 * const { thresholds, worker } = dynamoEnvironment(process.env);
 * const saturationDetector = busyThresholdDetector(thresholds);
 */
export function dynamoEnvironment(env: Environment, options: DynamoEnvironmentOptions = {}): DynamoSettings {
  const isNewest = Object.values(engineLimit).some((name) => given(env, name) !== undefined);
  const asked = s.parse(optionsSchema, options, subject);
  const { release = isNewest ? 'engine-limits' : 'backend-gate', automaticLimit } = asked;
  const limits = { 'engine-limits': engineLimits, 'backend-gate': backendGate, 'tcp-channel': tcpChannel }[release];
  return { ...admissionControl(env), worker: limits(env, automaticLimit) };
}

function admissionControl(env: Environment): Pick<DynamoSettings, 'thresholds' | 'admissionControl'> {
  const mode = given(env, modeVariable);
  if (mode !== undefined && mode !== 'none' && mode !== 'token-capacity')
    throw configError(subject, modeVariable, '"none" or "token-capacity"', `"${mode}"`);
  const all = Object.entries(thresholds).map(([name, [variable, unreached]]) => {
    return { name, variable, unreached, text: given(env, variable) };
  });
  const numbers = all.filter(({ text = 'None' }) => text !== 'None');
  const [first] = numbers;
  if (mode === 'none' && first !== undefined)
    throw configError(subject, first.variable, `no number, as ${modeVariable} is none`, `"${first.text}"`);
  if (mode === 'none' || (mode === undefined && first === undefined))
    return { thresholds: {}, admissionControl: 'none' };
  // The detector's own check of its options.
  const detector = busyThresholdDetector(Object.fromEntries(numbers.map(({ name, text }) => [name, Number(text)])));
  const others = all.flatMap(({ name, unreached, text }) => (text === undefined ? [[name, unreached]] : []));
  return { thresholds: { ...Object.fromEntries(others), ...detector.thresholds }, admissionControl: 'token-capacity' };
}

/** Nothing resizes these limits. A value that is none is passed over for the older name. */
function engineLimits(env: Environment): DynamoSettings['worker'] {
  const queue = count(env, engineLimit.queue) ?? count(env, 'DYN_DYNAMO_REQUEST_QUEUE_LIMIT');
  return {
    engineRequestLimit: positive(env, engineLimit.requests) ?? positive(env, 'DYN_ENGINE_REQUEST_LIMIT') ?? 10_000,
    engineWaitLimit: positive(env, engineLimit.waits) ?? positive(env, engineLimit.waitsBefore) ?? 10_000,
    requestQueueLimit: queue ?? 40_000,
    maxQueueDelay: Infinity,
    adaptiveLifo: false,
  };
}

function backendGate(env: Environment, automaticLimit: number | undefined): DynamoSettings['worker'] {
  const delay = positive(env, 'DYN_DYNAMO_REQUEST_QUEUE_TIMEOUT_MS') ?? 5000;
  return {
    engineRequestLimit: positive(env, 'DYN_ENGINE_REQUEST_LIMIT') ?? (automaticLimit || 10_000),
    engineWaitLimit: Infinity,
    requestQueueLimit: count(env, 'DYN_DYNAMO_REQUEST_QUEUE_LIMIT') ?? 40_000,
    maxQueueDelay: isOn(env, 'DYN_DYNAMO_REQUEST_QUEUE_ENABLE_CONTROLLED_DELAY') ? delay : Infinity,
    adaptiveLifo: isOn(env, 'DYN_DYNAMO_REQUEST_QUEUE_ENABLE_ADAPTIVE_LIFO'),
  };
}

/** The queue limit counts beside an engine limit only, and 0 as an engine limit is one request. */
function tcpChannel(env: Environment): DynamoSettings['worker'] {
  const limit = count(env, 'DYN_ENGINE_REQUEST_LIMIT');
  return {
    engineRequestLimit:
      limit === undefined ? (positive(env, 'DYN_TCP_WORKER_POOL_SIZE') ?? 10_000) : Math.max(1, limit),
    requestQueueLimit:
      limit === undefined
        ? (count(env, 'DYN_TCP_WORK_QUEUE_SIZE') ?? 40_000)
        : (count(env, 'DYN_DYNAMO_REQUEST_QUEUE_LIMIT') ?? 16),
    engineWaitLimit: Infinity,
    maxQueueDelay: Infinity,
    adaptiveLifo: false,
  };
}

/** The text without blanks around it; undefined for nothing. */
const given = (env: Environment, name: string): string | undefined => env[name]?.trim() || undefined;

/** An integer from 0 up; undefined for anything else. */
function count(env: Environment, name: string): number | undefined {
  const text = given(env, name) ?? '';
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

const positive = (env: Environment, name: string): number | undefined => count(env, name) || undefined;

/** On unless the text says off. */
function isOn(env: Environment, name: string): boolean {
  return !['0', 'false', 'off', 'no'].includes((given(env, name) ?? '').toLowerCase());
}
