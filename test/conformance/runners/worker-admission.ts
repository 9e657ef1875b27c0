/** The cap inside a worker process: who runs, who waits, who is refused. */
import { expect } from 'vitest';
import { automaticConcurrencyLimit, type WorkerAdmission, type WorkerLease, workerAdmission } from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';
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

  constructor(options: { limit: number; queue: number; delayMs?: number | null | undefined; adaptiveLifo?: boolean | undefined }) {
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
  // There is one profile here, the exact one.
  const { engineRequestLimit, requestQueueLimit } = withKeys(input.config, 'profile', 'engineRequestLimit', 'requestQueueLimit');
  const worker = new Worker({ limit: engineRequestLimit, queue: requestQueueLimit });
  for (let index = 0; index < input.arrivals; index++) await worker.acquire(String(index));
  const { running, waiting, refusedQueueFull } = worker.admission.stats();
  const expected = { dispatched: input.dispatched, queued: input.queued, rejected: input.rejected };
  expect({ dispatched: running, queued: waiting, rejected: refusedQueueFull }).toEqual(expected);
  expect({ dispatched: worker.count('granted'), queued: worker.count('queued'), rejected: worker.count('queue-full') }).toEqual(expected);
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

export const workerAdmissionRunners: Runners = {
  'engine-request-limit': limitRunner,
  'backend-gate': gateRunner,
  'automatic-concurrency-limit': flatRunner<Sizing>(['cases'], ({ input }) => {
    for (const entry of input.cases) {
      const { limit, ...engine } = withKeys(entry, 'maxNumSeqs', 'dataParallelSize', 'limit');
      expect(automaticConcurrencyLimit(engine) ?? null).toBe(limit);
    }
  }),
};
