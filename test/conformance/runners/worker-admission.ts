/** The cap inside a worker process: who runs, who waits, who is refused. */
import { expect } from 'vitest';
import { type DynamoSettings, dynamoEnvironment } from '../../../src/config/index.js';
import { automaticConcurrencyLimit, FlowConfigError, workerAdmission } from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import type { BusyThresholds, WorkerAdmission, WorkerLease } from '../../../src/types/index.js';
import { turns } from '../../support/flow.js';
import { flatRunner, withKeys } from '../support/flat-vectors.js';
import { type Runners, unknownWord } from '../support/runner.js';

type State = 'granted' | 'queued' | 'queue-full' | 'queue-delay' | 'cancelled';

/** One worker and everybody who came to it. */
class Worker {
  readonly admission: WorkerAdmission;
  private readonly clock = new ManualClock();
  private readonly states = new Map<string, State>();
  private readonly leases = new Map<string, WorkerLease>();
  private readonly aborts = new Map<string, AbortController>();
  /** Since they were last asked for. */
  private granted: string[] = [];
  private expired: string[] = [];

  constructor(options: {
    limit: number;
    queue: number;
    delayMs?: number | null | undefined;
    adaptiveLifo?: boolean | undefined;
  }) {
    const { limit, queue, delayMs, adaptiveLifo } = options;
    const maxQueueDelay = delayMs === null ? Number.POSITIVE_INFINITY : delayMs;
    this.admission = workerAdmission({
      engineRequestLimit: limit,
      requestQueueLimit: queue,
      maxQueueDelay,
      adaptiveLifo,
      clock: this.clock,
    });
  }

  async advanceTo(atMs: number): Promise<void> {
    this.clock.advance(atMs - this.clock.now());
    await turns();
  }

  async acquire(id: string): Promise<State> {
    const abort = new AbortController();
    this.aborts.set(id, abort);
    this.states.set(id, 'queued');
    void this.admission.acquire(abort.signal).then((outcome) => {
      this.states.set(id, outcome.type === 'granted' ? 'granted' : outcome.reason);
      if (outcome.type === 'granted') {
        this.leases.set(id, outcome.lease);
        this.granted.push(id);
      } else if (outcome.reason === 'queue-delay') this.expired.push(id);
    });
    await turns();
    return this.states.get(id) as State;
  }

  async release(id: string): Promise<void> {
    this.leases.get(id)?.release();
    await turns();
  }

  async cancel(id: string): Promise<void> {
    this.aborts.get(id)?.abort();
    await turns();
    expect(this.states.get(id)).toBe('cancelled');
  }

  takeGranted(): string[] {
    return this.granted.splice(0);
  }

  takeExpired(): string[] {
    return this.expired.splice(0);
  }

  count(state: State): number {
    return [...this.states.values()].filter((each) => each === state).length;
  }
}

interface Limit {
  config: { profile?: string; engineRequestLimit: number; requestQueueLimit: number };
  arrivals: number;
  dispatched: number;
  queued: number;
  rejected: number;
}

const limitRunner = flatRunner<Limit>(['config', 'arrivals', 'dispatched', 'queued', 'rejected'], async ({ input }) => {
  const { profile, engineRequestLimit, requestQueueLimit } = withKeys(
    input.config,
    'profile',
    'engineRequestLimit',
    'requestQueueLimit',
  );
  // Limits of the older profile come from the environment. The gate itself is the exact one.
  const env = {
    DYN_ENGINE_REQUEST_LIMIT: String(engineRequestLimit),
    DYN_DYNAMO_REQUEST_QUEUE_LIMIT: String(requestQueueLimit),
  };
  const limits = dynamoEnvironment(env, { release: profile === 'tcp-channel' ? 'tcp-channel' : 'backend-gate' }).worker;
  const worker = new Worker({ limit: limits.engineRequestLimit, queue: limits.requestQueueLimit });
  for (let index = 0; index < input.arrivals; index++) await worker.acquire(String(index));
  const { running, waiting, rejectedQueueFull } = worker.admission.stats();
  const expected = { dispatched: input.dispatched, queued: input.queued, rejected: input.rejected };
  expect({ dispatched: running, queued: waiting, rejected: rejectedQueueFull }).toEqual(expected);
  expect({
    dispatched: worker.count('granted'),
    queued: worker.count('queued'),
    rejected: worker.count('queue-full'),
  }).toEqual(expected);
});

interface GateStep {
  readonly op: string;
  readonly id?: string;
  readonly atMs?: number;
  readonly outcome?: string;
  readonly granted?: readonly string[];
  readonly expired?: readonly string[];
  readonly active?: number;
  readonly queued?: number;
}

interface Gate {
  config: { limit: number; queue: number; delayMs?: number | null; adaptiveLifo?: boolean };
  steps: readonly GateStep[];
}

const gateRunner = flatRunner<Gate>(['config', 'steps'], async (vector) => {
  const worker = new Worker(withKeys(vector.input.config, 'limit', 'queue', 'delayMs', 'adaptiveLifo'));
  for (const step of vector.input.steps) {
    const known = ['op', 'id', 'atMs', 'outcome', 'granted', 'expired', 'active', 'queued'] as const;
    const { op, id = '', atMs, outcome, granted, expired, active, queued } = withKeys(step, ...known);
    if (atMs !== undefined) await worker.advanceTo(atMs);
    if (op === 'acquire') {
      expect(await worker.acquire(id), id).toBe(outcome);
      worker.takeGranted();
    } else if (op === 'release') await worker.release(id);
    else if (op === 'cancel') await worker.cancel(id);
    else if (op !== 'advance' && op !== 'expect') throw unknownWord(vector, op);
    if (granted !== undefined) expect(worker.takeGranted()).toEqual(granted);
    if (expired !== undefined) expect(worker.takeExpired()).toEqual(expired);
    const { running, waiting } = worker.admission.stats();
    expect({ active: running, queued: waiting }).toEqual({ active: active ?? running, queued: queued ?? waiting });
  }
});

interface Sizing {
  cases: readonly { maxNumSeqs: number | null; dataParallelSize: number | null; limit: number | null }[];
}

type Env = Readonly<Record<string, string>>;

/** One variable with the text that the vector has for it; absent for null. */
function workerFrom(name: string, text: string | number | null, automaticLimit?: number): DynamoSettings['worker'] {
  return dynamoEnvironment(text === null ? {} : { [name]: String(text) }, { automaticLimit }).worker;
}

/** Flag → variable, as Dynamo's front end names both. */
function variableOf(flag: string): string {
  return `DYN_${flag.toUpperCase().replaceAll('-', '_')}`;
}

interface FlagCase {
  readonly flags: Readonly<Record<string, string | number>>;
  readonly mode?: string;
  readonly thresholds?: { readonly [K in keyof BusyThresholds]?: number | null };
  readonly error?: boolean;
}

export const workerAdmissionRunners: Runners = {
  'engine-request-limit': limitRunner,
  'backend-gate': gateRunner,
  'automatic-concurrency-limit': flatRunner<Sizing>(['cases'], ({ input }) => {
    for (const entry of input.cases) {
      const { limit, ...engine } = withKeys(entry, 'maxNumSeqs', 'dataParallelSize', 'limit');
      expect(automaticConcurrencyLimit(engine) ?? null).toBe(limit);
    }
  }),
  /**
   * The channel of the reference leaves out the request that its dispatcher has in hand: behind a limit, our queue
   * holds one more.
   */
  'engine-request-limit-sizing': flatRunner<{ cases: readonly { env: Env; pool: number; channel: number }[] }>(
    ['cases'],
    ({ input }) => {
      for (const entry of input.cases) {
        const { env, pool, channel } = withKeys(entry, 'env', 'pool', 'channel');
        const { engineRequestLimit, requestQueueLimit } = dynamoEnvironment(env, { release: 'tcp-channel' }).worker;
        const isLimited = /^\d+$/.test(env.DYN_ENGINE_REQUEST_LIMIT ?? '');
        const found = {
          pool: engineRequestLimit,
          channel: isLimited ? Math.max(1, requestQueueLimit - 1) : requestQueueLimit,
        };
        expect(found, JSON.stringify(env)).toEqual({ pool, channel });
      }
    },
  ),

  'concurrency-limit-resolution': flatRunner<{
    cases: readonly { env: string | number | null; hint: number | null; limit: number }[];
  }>(['cases'], ({ input }) => {
    for (const entry of input.cases) {
      const { env, hint, limit } = withKeys(entry, 'env', 'hint', 'limit');
      expect(
        workerFrom('DYN_ENGINE_REQUEST_LIMIT', env, hint ?? undefined).engineRequestLimit,
        JSON.stringify(entry),
      ).toBe(limit);
    }
  }),

  'queue-delay-resolution': flatRunner<{ cases: readonly { env: string | number | null; delayMs: number }[] }>(
    ['cases'],
    ({ input }) => {
      for (const entry of input.cases) {
        const { env, delayMs } = withKeys(entry, 'env', 'delayMs');
        expect(workerFrom('DYN_DYNAMO_REQUEST_QUEUE_TIMEOUT_MS', env).maxQueueDelay, JSON.stringify(entry)).toBe(
          delayMs,
        );
      }
    },
  ),

  /** Both switches read alike. */
  'queue-policy-switch': flatRunner<{ cases: readonly { raw: string | null; enabled: boolean }[] }>(
    ['cases'],
    ({ input }) => {
      for (const entry of input.cases) {
        const { raw, enabled } = withKeys(entry, 'raw', 'enabled');
        const { adaptiveLifo } = workerFrom('DYN_DYNAMO_REQUEST_QUEUE_ENABLE_ADAPTIVE_LIFO', raw);
        const { maxQueueDelay } = workerFrom('DYN_DYNAMO_REQUEST_QUEUE_ENABLE_CONTROLLED_DELAY', raw);
        const isBounded = maxQueueDelay < Number.POSITIVE_INFINITY;
        expect([adaptiveLifo, isBounded], JSON.stringify(raw)).toEqual([enabled, enabled]);
      }
    },
  ),

  'admission-config': flatRunner<{ cases: readonly FlagCase[] }>(['cases'], ({ input }) => {
    for (const entry of input.cases) {
      const { flags, mode, thresholds = {}, error } = withKeys(entry, 'flags', 'mode', 'thresholds', 'error');
      const env = Object.fromEntries(Object.entries(flags).map(([flag, text]) => [variableOf(flag), String(text)]));
      if (error === true) {
        expect(() => dynamoEnvironment(env), JSON.stringify(flags)).toThrow(FlowConfigError);
        continue;
      }
      const found = dynamoEnvironment(env);
      const set = Object.fromEntries(Object.entries(thresholds).filter(([, threshold]) => threshold !== null));
      expect({ mode: found.admissionControl, thresholds: found.thresholds }, JSON.stringify(flags)).toEqual({
        mode,
        thresholds: set,
      });
    }
  }),
};
