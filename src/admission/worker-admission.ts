/**
 * A cap inside a model server, without controller or pool: N requests run, W of them before their first response, Q
 * wait, and the rest is rejected at once.
 *
 *     acquire ──► running (N) ──release──►          first ⇄ waiting (Q) ⇄ last
 *         └────► waiting ──► granted from the front, once from the back after an expiry; expired; cancelled
 *
 * Invariant: no request waits while a seat is free; each `acquire` settles once; each lease frees its seat once.
 */
import { type Clock, realClock } from '../base/clock.js';
import { OneTimer } from '../base/one-timer.js';
import { type Linked, LinkedList } from '../base/queues/linked-list.js';
import * as s from '../base/schema/schema.js';
import { whenAborted } from '../base/when-aborted.js';

export interface WorkerAdmissionOptions {
  /** N: requests that may run, an integer from 1 up. @default 10,000 */
  engineRequestLimit?: number | undefined;
  /** W: running requests that may be without a first response, an integer from 1 up. @default Infinity */
  engineWaitLimit?: number | undefined;
  /** Q: requests that may wait, an integer from 0 up; 0: no request waits. @default 40,000 */
  requestQueueLimit?: number | undefined;
  /** How long a request may wait, ms or text such as '5s', above 0; Infinity: for ever. @default '5s' */
  maxQueueDelay?: number | string | undefined;
  /** Whether an expiry gives the next seat to the newest request, which can still be answered in time. @default true */
  adaptiveLifo?: boolean | undefined;
  /** @default the platform's monotonic clock */
  clock?: Clock | undefined;
}

/** The right to run. It must be released when the response has ended, however it ended. */
export interface WorkerLease {
  /** The engine's first response is there: another request may be without one. Repeating it does nothing. */
  answered(): void;
  /** Gives the seat to the next request. Repeating it does nothing. */
  release(): void;
  [Symbol.dispose](): void;
}

/** `queue-full`: N run and Q wait; `queue-delay`: it waited `maxQueueDelay`; `cancelled`: its signal aborted. */
export type WorkerRejectionReason = 'queue-full' | 'queue-delay' | 'cancelled';

export type WorkerOutcome =
  | { readonly type: 'granted'; readonly lease: WorkerLease; readonly queuedMs: number }
  | { readonly type: 'rejected'; readonly reason: WorkerRejectionReason; readonly queuedMs: number };

/** Figures of one moment, and counts since the start. Each request is counted once under `received…`. */
export interface WorkerAdmissionStats {
  readonly running: number;
  /** Those of them without a first response. */
  readonly unanswered: number;
  readonly waiting: number;
  readonly engineRequestLimit: number;
  readonly engineWaitLimit: number;
  readonly requestQueueLimit: number;
  /** Ran at once. */
  readonly receivedDirect: number;
  /** Found no free seat: waited, or was rejected with `queue-full`. */
  readonly receivedQueue: number;
  /** Cancelled when they came. */
  readonly receivedCancelled: number;
  readonly rejectedQueueFull: number;
  readonly rejectedQueueDelay: number;
  readonly grantedFifo: number;
  readonly grantedLifo: number;
  /** Cancelled while waiting, or between the grant and its delivery. */
  readonly cancelled: number;
}

/** The limits that may change while requests run and wait. */
export type WorkerLimits = Pick<WorkerAdmissionOptions, 'engineRequestLimit' | 'engineWaitLimit' | 'requestQueueLimit'>;

const workerLimits = s.object({
  engineRequestLimit: s.optional(s.positiveInteger()),
  engineWaitLimit: s.optional(s.fromOne('an integer from 1 up, or Infinity')),
  requestQueueLimit: s.optional(s.integer({ from: 0 })),
});

const optionsSchema = s.object({
  engineRequestLimit: s.optional(s.positiveInteger(), 10_000),
  engineWaitLimit: s.optional(s.fromOne('an integer from 1 up, or Infinity'), Infinity),
  requestQueueLimit: s.optional(s.integer({ from: 0 }), 40_000),
  maxQueueDelay: s.optional(s.durationAboveZero('5s'), 5000),
  adaptiveLifo: s.optional(s.flag(), true),
  clock: s.optional(s.clock(), realClock),
});

type Settings = s.Filled<WorkerAdmissionOptions> & { readonly maxQueueDelay: number };

/**
 * A cap for one worker process. O(1) for each request. Source: Dynamo, the backend admission gate.
 * @throws FlowConfigError
 * @example
 * const admission = workerAdmission({ engineRequestLimit: 256, requestQueueLimit: 16 });
 * const outcome = await admission.acquire(request.signal);
 * if (outcome.type === 'rejected') return overloaded(outcome.reason);
 * using lease = outcome.lease;
 */
export function workerAdmission(options: WorkerAdmissionOptions = {}): WorkerAdmission {
  return new WorkerAdmission(s.parse(optionsSchema, options, 'workerAdmission'));
}

/** ⌈1.5 · maxNumSeqs · dataParallelSize⌉: an engine finds work when a place gets free. Undefined before it says so. */
export function automaticConcurrencyLimit(engine: {
  readonly maxNumSeqs?: number | null | undefined;
  readonly dataParallelSize?: number | null | undefined;
}): number | undefined {
  const { maxNumSeqs, dataParallelSize } = engine;
  if (!isPositive(maxNumSeqs) || !isPositive(dataParallelSize)) return undefined;
  return Math.ceil((3 * maxNumSeqs * dataParallelSize) / 2);
}

function isPositive(count: number | null | undefined): count is number {
  return Number.isSafeInteger(count) && (count as number) > 0;
}

export class WorkerAdmission {
  private readonly waiting = new LinkedList<Waiter>();
  private settings: Settings;
  /** Set by an expiry, spent by the next grant. */
  private newestGoesNext = false;
  /** For the deadline of the request that has waited longest; not set while none waits. */
  private readonly timer: OneTimer;
  private readonly counts = {
    running: 0,
    unanswered: 0,
    receivedDirect: 0,
    receivedQueue: 0,
    receivedCancelled: 0,
    rejectedQueueFull: 0,
    rejectedQueueDelay: 0,
    grantedFifo: 0,
    grantedLifo: 0,
    cancelled: 0,
  };

  /** `workerAdmission` makes it. */
  constructor(settings: Settings) {
    this.settings = settings;
    this.timer = new OneTimer(settings.clock, () => {
      const nowMs = this.settings.clock.now();
      this.expire(nowMs);
      this.arm(nowMs);
    });
  }

  /** Resolves when the request may run or not; never rejects. A cancelled one gets no lease, not even a free one. */
  async acquire(signal?: AbortSignal): Promise<WorkerOutcome> {
    if (signal?.aborted) {
      this.counts.receivedCancelled++;
      return { type: 'rejected', reason: 'cancelled', queuedMs: 0 };
    }
    const nowMs = this.settings.clock.now();
    if (this.hasSeat) {
      this.counts.receivedDirect++;
      this.newestGoesNext = false;
      return { type: 'granted', lease: this.seat(), queuedMs: 0 };
    }
    this.counts.receivedQueue++;
    this.expire(nowMs);
    if (this.waiting.size >= this.settings.requestQueueLimit) {
      this.counts.rejectedQueueFull++;
      return { type: 'rejected', reason: 'queue-full', queuedMs: 0 };
    }
    const outcome = await this.wait(nowMs, signal);
    if (outcome.type === 'granted' && signal?.aborted) {
      this.counts.cancelled++;
      outcome.lease.release();
      return { type: 'rejected', reason: 'cancelled', queuedMs: outcome.queuedMs };
    }
    return outcome;
  }

  /** Changes N, W or Q. Larger limits take in what waits; smaller ones hold from now on. @throws FlowConfigError */
  resize(limits: WorkerLimits): void {
    const given = Object.entries(s.parse(workerLimits, limits, 'WorkerAdmission.resize'));
    this.settings = { ...this.settings, ...Object.fromEntries(given.filter(([, limit]) => limit !== undefined)) };
    this.grant();
  }

  stats(): WorkerAdmissionStats {
    const { engineRequestLimit, engineWaitLimit, requestQueueLimit } = this.settings;
    return { waiting: this.waiting.size, engineRequestLimit, engineWaitLimit, requestQueueLimit, ...this.counts };
  }

  private wait(nowMs: number, signal: AbortSignal | undefined): Promise<WorkerOutcome> {
    return new Promise((resolve) => {
      const waiter: Waiter = { previous: undefined, next: undefined, enqueuedAtMs: nowMs, resolve, unwatch: undefined };
      this.waiting.push(waiter);
      waiter.unwatch = signal && whenAborted(signal, () => this.cancel(waiter));
      this.arm(nowMs);
    });
  }

  private get hasSeat(): boolean {
    const { engineRequestLimit, engineWaitLimit } = this.settings;
    return this.counts.running < engineRequestLimit && this.counts.unanswered < engineWaitLimit;
  }

  private seat(): WorkerLease {
    this.counts.running++;
    this.counts.unanswered++;
    let isHeld = true;
    let isUnanswered = true;
    const settle = (isOver: boolean): void => {
      if (!isHeld || !(isOver || isUnanswered)) return;
      if (isUnanswered) this.counts.unanswered--;
      isUnanswered = false;
      if (isOver) this.counts.running--;
      isHeld = !isOver;
      this.grant();
    };
    const release = (): void => settle(true);
    return { answered: () => settle(false), release, [Symbol.dispose]: release };
  }

  private grant(): void {
    const nowMs = this.settings.clock.now();
    this.expire(nowMs);
    while (this.hasSeat) {
      const isLifo = this.newestGoesNext;
      const waiter = isLifo ? this.waiting.last : this.waiting.first;
      if (waiter === undefined) break;
      if (isLifo) this.counts.grantedLifo++;
      else this.counts.grantedFifo++;
      this.newestGoesNext = false;
      this.leave(waiter, { type: 'granted', lease: this.seat(), queuedMs: nowMs - waiter.enqueuedAtMs });
    }
  }

  /** All have the same longest wait, so expired requests are at the front. */
  private expire(nowMs: number): void {
    for (let waiter = this.waiting.first; waiter !== undefined; waiter = this.waiting.first) {
      if (nowMs - waiter.enqueuedAtMs < this.settings.maxQueueDelay) return;
      this.counts.rejectedQueueDelay++;
      this.newestGoesNext = this.settings.adaptiveLifo;
      this.leave(waiter, { type: 'rejected', reason: 'queue-delay', queuedMs: nowMs - waiter.enqueuedAtMs });
    }
  }

  private cancel(waiter: Waiter): void {
    this.counts.cancelled++;
    const queuedMs = this.settings.clock.now() - waiter.enqueuedAtMs;
    this.leave(waiter, { type: 'rejected', reason: 'cancelled', queuedMs });
  }

  private leave(waiter: Waiter, outcome: WorkerOutcome): void {
    this.waiting.remove(waiter);
    if (this.waiting.size === 0) this.timer.stop();
    waiter.unwatch?.();
    waiter.resolve(outcome);
  }

  /** One timer, for the front; it looks again when it comes too early, because the front has left meanwhile. */
  private arm(nowMs: number): void {
    const { first } = this.waiting;
    if (first !== undefined) this.timer.in(first.enqueuedAtMs + this.settings.maxQueueDelay - nowMs, nowMs);
  }
}

interface Waiter extends Linked<Waiter> {
  readonly enqueuedAtMs: number;
  readonly resolve: (outcome: WorkerOutcome) => void;
  /** Stops watching the request's signal. */
  unwatch: (() => void) | undefined;
}
