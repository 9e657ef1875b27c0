import { describe, expect, it } from 'vitest';
import { dynamoEnvironment } from '../../src/config/index.js';
import { busyThresholdDetector, FlowConfigError, workerAdmission } from '../../src/index.js';

const limit = 'DYN_ENGINE_REQUEST_LIMIT';
const queue = 'DYN_DYNAMO_REQUEST_QUEUE_LIMIT';

describe('dynamoEnvironment', () => {
  it('rejects nothing, and has the defaults of workerAdmission, where no variable is set', () => {
    const { thresholds, admissionControl, worker } = dynamoEnvironment({});
    expect({ thresholds, admissionControl }).toEqual({ thresholds: {}, admissionControl: 'none' });
    const { engineRequestLimit, engineWaitLimit, requestQueueLimit } = workerAdmission().stats();
    const limits = { engineRequestLimit, engineWaitLimit, requestQueueLimit };
    expect(worker).toEqual({ ...limits, maxQueueDelay: 5000, adaptiveLifo: true });
  });

  it('gives what busyThresholdDetector and workerAdmission take', () => {
    const { thresholds, worker } = dynamoEnvironment({
      DYN_ACTIVE_DECODE_BLOCKS_THRESHOLD: ' 0.85 ',
      [limit]: '8',
      [queue]: '0',
    });
    expect(busyThresholdDetector(thresholds).thresholds.activeDecodeBlocksThreshold).toBe(0.85);
    expect(workerAdmission(worker).stats()).toMatchObject({ engineRequestLimit: 8, requestQueueLimit: 0 });
  });

  const gate = 'DYN_BACKEND_ADMISSION';
  const newest = { engineRequestLimit: 10_000, engineWaitLimit: 10_000, requestQueueLimit: 40_000 };
  it.each<[what: string, env: Record<string, string>, limits: object]>([
    [
      'the limit of what waits for a first response',
      { [`${gate}_ENGINE_REQUEST_WAITING_LIMIT`]: '4' },
      { engineWaitLimit: 4 },
    ],
    ['its name of before', { [`${gate}_ENGINE_WAIT_LIMIT`]: '4' }, { engineWaitLimit: 4 }],
    [
      'the newer of both names',
      { [`${gate}_ENGINE_WAIT_LIMIT`]: '4', [`${gate}_ENGINE_REQUEST_WAITING_LIMIT`]: '5' },
      { engineWaitLimit: 5 },
    ],
    ['no queue', { [`${gate}_REQUEST_QUEUE_LIMIT`]: '0', [queue]: '7' }, { requestQueueLimit: 0 }],
    [
      'its own names before the older ones',
      { [`${gate}_ENGINE_REQUEST_LIMIT`]: '9', [limit]: '8', [queue]: '7' },
      { engineRequestLimit: 9, requestQueueLimit: 7 },
    ],
    [
      'an older name where its own has no limit',
      { [`${gate}_ENGINE_REQUEST_LIMIT`]: '0', [limit]: '8', [`${gate}_ENGINE_WAIT_LIMIT`]: 'few' },
      { engineRequestLimit: 8 },
    ],
  ])('reads the newest names as the newest release does, where waits have no end: %s', (_, env, limits) => {
    const worker = { ...newest, ...limits, maxQueueDelay: Infinity, adaptiveLifo: false };
    expect(dynamoEnvironment(env, { automaticLimit: 384 }).worker).toEqual(worker);
    expect(workerAdmission(worker).stats()).toMatchObject({ ...newest, ...limits });
  });

  it('reads older names as the named release does, whatever else is set', () => {
    const env = { [`${gate}_ENGINE_REQUEST_LIMIT`]: '9', [limit]: '8' };
    expect(dynamoEnvironment(env, { release: 'backend-gate' }).worker).toMatchObject({
      ...{ engineRequestLimit: 8, engineWaitLimit: Infinity, maxQueueDelay: 5000 },
    });
    expect(dynamoEnvironment({ [limit]: '8' }, { release: 'engine-limits' }).worker).toMatchObject({
      ...{ engineRequestLimit: 8, engineWaitLimit: 10_000, maxQueueDelay: Infinity },
    });
  });

  it('switches one check off for the text None, and the others stay as the mode has them', () => {
    const env = { DYN_ADMISSION_CONTROL: 'token-capacity', DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD_FRAC: 'None' };
    expect(dynamoEnvironment(env).thresholds).toEqual({
      activeDecodeBlocksThreshold: 1,
      activePrefillTokensThreshold: 10_000_000,
    });
  });

  it('does not let None alone switch anything on', () => {
    expect(dynamoEnvironment({ DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD: 'None' }).admissionControl).toBe('none');
  });

  it.each([
    ['an unknown mode', { DYN_ADMISSION_CONTROL: 'both' }, 'DYN_ADMISSION_CONTROL'],
    [
      'a number beside the mode none',
      { DYN_ADMISSION_CONTROL: 'none', DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD: '5' },
      'PREFILL_TOKENS_THRESHOLD',
    ],
    ['a share above 1', { DYN_ACTIVE_DECODE_BLOCKS_THRESHOLD: '1.5' }, 'activeDecodeBlocksThreshold'],
    ['text that is no number', { DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD: 'many' }, 'activePrefillTokensThreshold'],
  ])('refuses %s and names it', (_, env, name) => {
    expect(() => dynamoEnvironment(env)).toThrow(FlowConfigError);
    expect(() => dynamoEnvironment(env)).toThrow(name);
  });

  it('takes the engine’s own limit where none is set, and 10,000 where neither is known', () => {
    expect(dynamoEnvironment({}, { automaticLimit: 384 }).worker.engineRequestLimit).toBe(384);
    expect(dynamoEnvironment({ [limit]: '-3' }, { automaticLimit: 0 }).worker.engineRequestLimit).toBe(10_000);
  });

  it('lets a request wait for as long as it takes where controlled delay is off', () => {
    const env = { DYN_DYNAMO_REQUEST_QUEUE_ENABLE_CONTROLLED_DELAY: 'Off', DYN_DYNAMO_REQUEST_QUEUE_TIMEOUT_MS: '250' };
    expect(dynamoEnvironment(env).worker.maxQueueDelay).toBe(Number.POSITIVE_INFINITY);
    expect(
      dynamoEnvironment({ ...env, DYN_DYNAMO_REQUEST_QUEUE_ENABLE_CONTROLLED_DELAY: 'perhaps' }).worker.maxQueueDelay,
    ).toBe(250);
  });

  it('reads the variables of tcp-channel as those releases do', () => {
    const release = 'tcp-channel';
    expect(dynamoEnvironment({ [limit]: '0' }, { release }).worker).toEqual({
      engineRequestLimit: 1,
      engineWaitLimit: Number.POSITIVE_INFINITY,
      requestQueueLimit: 16,
      maxQueueDelay: Number.POSITIVE_INFINITY,
      adaptiveLifo: false,
    });
    const unlimited = dynamoEnvironment({ [queue]: '3', DYN_TCP_WORKER_POOL_SIZE: '5' }, { release }).worker;
    expect(unlimited).toMatchObject({ engineRequestLimit: 5, requestQueueLimit: 40_000 });
  });
});
