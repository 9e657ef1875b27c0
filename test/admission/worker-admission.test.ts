import { describe, expect, it } from 'vitest';
import {
  automaticConcurrencyLimit,
  type WorkerAdmission,
  type WorkerAdmissionOptions,
  type WorkerLease,
  type WorkerOutcome,
  workerAdmission,
} from '../../src/admission/worker-admission.js';
import { ManualClock } from '../../src/testing/index.js';
import { turns } from '../support/flow.js';

interface Caller {
  readonly abort: AbortController;
  outcome: WorkerOutcome | undefined;
}

function makeWorker(options: WorkerAdmissionOptions = {}) {
  const clock = new ManualClock();
  const admission = workerAdmission({ engineRequestLimit: 1, requestQueueLimit: 8, clock, ...options });
  return { clock, admission };
}

async function come(admission: WorkerAdmission, abort = new AbortController()): Promise<Caller> {
  const caller: Caller = { abort, outcome: undefined };
  void admission.acquire(abort.signal).then((outcome) => {
    caller.outcome = outcome;
  });
  await turns();
  return caller;
}

function stateOf({ outcome }: Caller): string {
  if (outcome === undefined) return 'waiting';
  return outcome.type === 'granted' ? 'granted' : outcome.reason;
}

function leaseOf({ outcome }: Caller): WorkerLease {
  if (outcome?.type !== 'granted') throw new Error(`expected a lease, got ${outcome?.reason ?? 'nothing yet'}`);
  return outcome.lease;
}

describe('WorkerAdmission', () => {
  it('runs N, holds Q, and rejects the rest at once', async () => {
    const { admission } = makeWorker({ engineRequestLimit: 2, requestQueueLimit: 3 });
    const callers = [];
    for (let i = 0; i < 6; i++) callers.push(await come(admission));
    expect(callers.map(stateOf)).toEqual(['granted', 'granted', 'waiting', 'waiting', 'waiting', 'queue-full']);
    expect(admission.stats()).toMatchObject({
      running: 2,
      waiting: 3,
      receivedDirect: 2,
      receivedQueue: 4,
      rejectedQueueFull: 1,
    });
  });

  it('runs as many without a first response as W says, and takes the next when one has it', async () => {
    const { admission } = makeWorker({ engineRequestLimit: 3, engineWaitLimit: 1 });
    const callers = [];
    for (let i = 0; i < 3; i++) callers.push(await come(admission));
    expect(callers.map(stateOf)).toEqual(['granted', 'waiting', 'waiting']);
    leaseOf(callers[0]!).answered();
    leaseOf(callers[0]!).answered();
    await turns();
    expect(callers.map(stateOf)).toEqual(['granted', 'granted', 'waiting']);
    expect(admission.stats()).toMatchObject({ running: 2, unanswered: 1, waiting: 1, engineWaitLimit: 1 });
    leaseOf(callers[1]!).release();
    leaseOf(callers[1]!).answered();
    await turns();
    expect(callers.map(stateOf)).toEqual(['granted', 'granted', 'granted']);
    expect(admission.stats()).toMatchObject({ running: 2, unanswered: 1, waiting: 0 });
    admission.resize({ engineWaitLimit: 2 });
    await come(admission);
    leaseOf(callers[2]!).answered();
    expect(stateOf(await come(admission))).toBe('waiting');
    expect(admission.stats()).toMatchObject({ running: 3, unanswered: 1, waiting: 1 });
  });

  it('lets nobody wait when Q is 0', async () => {
    const { admission } = makeWorker({ requestQueueLimit: 0 });
    const first = await come(admission);
    expect(stateOf(await come(admission))).toBe('queue-full');
    leaseOf(first).release();
    expect(stateOf(await come(admission))).toBe('granted');
  });

  it('gives a free seat to whoever has waited longest, and says how long that was', async () => {
    const { admission, clock } = makeWorker();
    const first = await come(admission);
    const second = await come(admission);
    const third = await come(admission);
    clock.advance(40);
    leaseOf(first).release();
    await turns();
    expect([second, third].map(stateOf)).toEqual(['granted', 'waiting']);
    expect(second.outcome?.queuedMs).toBe(40);
  });

  it('frees a seat once, however often its lease is released', async () => {
    const { admission } = makeWorker();
    const first = await come(admission);
    const others = [await come(admission), await come(admission)];
    leaseOf(first).release();
    leaseOf(first)[Symbol.dispose]();
    await turns();
    expect(others.map(stateOf)).toEqual(['granted', 'waiting']);
    expect(admission.stats().running).toBe(1);
  });

  it('expires at the delay exactly, with one timer, and has none while nobody waits', async () => {
    const { admission, clock } = makeWorker({ maxQueueDelay: '200ms' });
    const first = await come(admission);
    expect(clock.pendingTimers).toBe(0);
    const second = await come(admission);
    clock.advance(50);
    const third = await come(admission);
    expect(clock.pendingTimers).toBe(1);
    clock.advance(149);
    await turns();
    expect([second, third].map(stateOf)).toEqual(['waiting', 'waiting']);
    clock.advance(1);
    await turns();
    expect([second, third].map(stateOf)).toEqual(['queue-delay', 'waiting']);
    expect(second.outcome?.queuedMs).toBe(200);
    clock.advance(50);
    await turns();
    expect(stateOf(third)).toBe('queue-delay');
    expect(clock.pendingTimers).toBe(0);
    leaseOf(first).release();
    expect(admission.stats()).toMatchObject({ running: 0, waiting: 0, rejectedQueueDelay: 2 });
  });

  it('arms its timer anew for whoever is in front when the old front left', async () => {
    const { admission, clock } = makeWorker({ maxQueueDelay: 100 });
    const first = await come(admission);
    const second = await come(admission);
    clock.advance(60);
    const third = await come(admission);
    leaseOf(first).release();
    clock.advance(99);
    await turns();
    expect([second, third].map(stateOf)).toEqual(['granted', 'waiting']);
    clock.advance(1);
    await turns();
    expect(stateOf(third)).toBe('queue-delay');
  });

  it('waits for ever when told to', async () => {
    const { admission, clock } = makeWorker({ maxQueueDelay: Number.POSITIVE_INFINITY });
    await come(admission);
    const second = await come(admission);
    clock.advance(1e9);
    await turns();
    expect(stateOf(second)).toBe('waiting');
    expect(clock.pendingTimers).toBe(0);
  });

  it('takes the newest once after an expiry, then the oldest again', async () => {
    const { admission, clock } = makeWorker({ maxQueueDelay: 400 });
    const first = await come(admission);
    await come(admission);
    clock.advance(300);
    const oldest = await come(admission);
    const newest = await come(admission);
    clock.advance(100);
    leaseOf(first).release();
    await turns();
    expect([oldest, newest].map(stateOf)).toEqual(['waiting', 'granted']);
    leaseOf(newest).release();
    await turns();
    expect(stateOf(oldest)).toBe('granted');
    expect(admission.stats()).toMatchObject({ grantedLifo: 1, grantedFifo: 1 });
  });

  it('keeps arrival order when adaptive LIFO is off', async () => {
    const { admission, clock } = makeWorker({ maxQueueDelay: 400, adaptiveLifo: false });
    const first = await come(admission);
    await come(admission);
    clock.advance(300);
    const oldest = await come(admission);
    const newest = await come(admission);
    clock.advance(100);
    leaseOf(first).release();
    await turns();
    expect([oldest, newest].map(stateOf)).toEqual(['granted', 'waiting']);
  });

  it('forgets the turn of the newest when a request finds a free seat', async () => {
    const { admission, clock } = makeWorker({ maxQueueDelay: 100 });
    const first = await come(admission);
    await come(admission);
    clock.advance(100);
    leaseOf(first).release();
    const direct = await come(admission);
    const oldest = await come(admission);
    const newest = await come(admission);
    leaseOf(direct).release();
    await turns();
    expect([oldest, newest].map(stateOf)).toEqual(['granted', 'waiting']);
  });

  it('rejects a cancelled request even when it is idle', async () => {
    const { admission } = makeWorker();
    const abort = new AbortController();
    abort.abort();
    expect(stateOf(await come(admission, abort))).toBe('cancelled');
    expect(admission.stats()).toMatchObject({ running: 0, receivedCancelled: 1, receivedDirect: 0, cancelled: 0 });
  });

  it('frees the place of a cancelled request at once, and its timer with the last one', async () => {
    const { admission, clock } = makeWorker({ requestQueueLimit: 1 });
    await come(admission);
    const second = await come(admission);
    second.abort.abort();
    expect(admission.stats().waiting).toBe(0);
    expect(clock.pendingTimers).toBe(0);
    const third = await come(admission);
    expect([second, third].map(stateOf)).toEqual(['cancelled', 'waiting']);
  });

  it('passes the seat on when the request is cancelled before it hears of it', async () => {
    const { admission } = makeWorker();
    const first = await come(admission);
    const second = await come(admission);
    const third = await come(admission);
    leaseOf(first).release();
    second.abort.abort();
    await turns();
    expect([second, third].map(stateOf)).toEqual(['cancelled', 'granted']);
    expect(admission.stats()).toMatchObject({ running: 1, waiting: 0, cancelled: 1 });
  });

  it('lets an expiry stand when the cancellation comes later', async () => {
    const { admission, clock } = makeWorker({ maxQueueDelay: 100 });
    await come(admission);
    const second = await come(admission);
    clock.advance(100);
    second.abort.abort();
    await turns();
    expect(stateOf(second)).toBe('queue-delay');
  });

  it('leaves no listener on a signal that it is done with', async () => {
    const { admission } = makeWorker();
    const first = await come(admission);
    const second = await come(admission);
    leaseOf(first).release();
    await turns();
    leaseOf(second).release();
    second.abort.abort();
    expect(admission.stats().cancelled).toBe(0);
  });

  it('takes waiting requests in when N grows, and waits for N to be undercut when it shrinks', async () => {
    const { admission } = makeWorker({ engineRequestLimit: 1 });
    const callers = [];
    for (let i = 0; i < 4; i++) callers.push(await come(admission));
    admission.resize({ engineRequestLimit: 3 });
    await turns();
    expect(callers.map(stateOf)).toEqual(['granted', 'granted', 'granted', 'waiting']);
    admission.resize({ engineRequestLimit: 1, requestQueueLimit: 0 });
    expect(admission.stats()).toMatchObject({ running: 3, waiting: 1, engineRequestLimit: 1, requestQueueLimit: 0 });
    for (const caller of callers.slice(0, 2)) leaseOf(caller).release();
    await turns();
    expect(callers.map(stateOf)).toEqual(['granted', 'granted', 'granted', 'waiting']);
    leaseOf(callers[2] as Caller).release();
    await turns();
    expect(callers.map(stateOf)).toEqual(['granted', 'granted', 'granted', 'granted']);
  });

  it('tells how each request ended, and after how long', async () => {
    const { admission, clock } = makeWorker({ requestQueueLimit: 2, maxQueueDelay: 100 });
    clock.advance(1000);
    const first = await come(admission);
    expect(first.outcome).toEqual({ type: 'granted', lease: expect.anything(), queuedMs: 0 });
    clock.advance(10);
    const second = await come(admission);
    clock.advance(20);
    const third = await come(admission);
    expect((await come(admission)).outcome).toEqual({ type: 'rejected', reason: 'queue-full', queuedMs: 0 });
    clock.advance(30);
    third.abort.abort();
    await turns();
    expect([third.outcome, admission.stats().cancelled]).toEqual([
      { type: 'rejected', reason: 'cancelled', queuedMs: 30 },
      1,
    ]);
    const fourth = await come(admission);
    clock.advance(50);
    await turns();
    expect(second.outcome).toEqual({ type: 'rejected', reason: 'queue-delay', queuedMs: 100 });
    leaseOf(first).release();
    await turns();
    expect(fourth.outcome).toEqual({ type: 'granted', lease: expect.anything(), queuedMs: 50 });
    const gone = new AbortController();
    gone.abort();
    expect((await come(admission, gone)).outcome).toEqual({ type: 'rejected', reason: 'cancelled', queuedMs: 0 });
  });

  it('tells of a request that was cancelled between its grant and the news of it how long that waited', async () => {
    const { admission, clock } = makeWorker();
    const first = await come(admission);
    clock.advance(5);
    const second = await come(admission);
    clock.advance(7);
    leaseOf(first).release();
    second.abort.abort();
    await turns();
    expect(second.outcome).toEqual({ type: 'rejected', reason: 'cancelled', queuedMs: 7 });
  });

  it('lets a request without a signal in after a wait', async () => {
    const { admission } = makeWorker();
    const first = await come(admission);
    const second = admission.acquire();
    leaseOf(first).release();
    expect((await second).type).toBe('granted');
  });

  it('keeps the limit that a resize does not name', () => {
    const { admission } = makeWorker({ engineRequestLimit: 2, requestQueueLimit: 8 });
    admission.resize({ requestQueueLimit: 5 });
    expect(admission.stats()).toMatchObject({ engineRequestLimit: 2, requestQueueLimit: 5 });
    admission.resize({ engineRequestLimit: 3 });
    expect(admission.stats()).toMatchObject({ engineRequestLimit: 3, requestQueueLimit: 5 });
  });

  it('works on the real clock, without a signal', async () => {
    const admission = workerAdmission({ engineRequestLimit: 1, requestQueueLimit: 1, maxQueueDelay: 5 });
    const first = await admission.acquire();
    const second = await admission.acquire();
    expect([first.type, second.type === 'rejected' ? second.reason : second.type]).toEqual(['granted', 'queue-delay']);
  });

  it('rejects wrong options and limits', () => {
    const wrong = { engineRequestLimit: 0, requestQueueLimit: -1, maxQueueDelay: 0, adaptiveLifo: 1, clock: {} };
    expect(() => workerAdmission(wrong as unknown as WorkerAdmissionOptions)).toThrow('workerAdmission: 5 problems');
    expect(() => makeWorker().admission.resize({ engineRequestLimit: 0.5 })).toThrow(
      'WorkerAdmission.resize: engineRequestLimit',
    );
  });

  it('keeps its counts in balance, whatever happens', async () => {
    let state = 12345;
    const random = (below: number): number => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return state % below;
    };
    const { admission, clock } = makeWorker({ engineRequestLimit: 3, requestQueueLimit: 4, maxQueueDelay: 20 });
    const callers: Caller[] = [];
    for (let i = 0; i < 2000; i++) {
      const pick = callers[random(Math.max(callers.length, 1))];
      const action = random(5);
      if (action < 2) callers.push(await come(admission));
      else if (action === 2 && pick?.outcome?.type === 'granted') pick.outcome.lease.release();
      else if (action === 3) pick?.abort.abort();
      else clock.advance(random(8));
      await turns();
      const {
        running,
        waiting,
        receivedDirect,
        receivedQueue,
        rejectedQueueFull,
        rejectedQueueDelay,
        grantedFifo,
        grantedLifo,
      } = admission.stats();
      const states = callers.map(stateOf);
      const count = (wanted: string): number => states.filter((each) => each === wanted).length;
      expect(waiting).toBe(count('waiting'));
      expect(receivedDirect + grantedFifo + grantedLifo).toBe(count('granted'));
      expect(receivedDirect + receivedQueue).toBe(callers.length);
      expect([rejectedQueueFull, rejectedQueueDelay]).toEqual([count('queue-full'), count('queue-delay')]);
      expect(running).toBeLessThanOrEqual(3);
      if (waiting > 0) expect(running).toBe(3);
      expect(clock.pendingTimers).toBe(waiting > 0 ? 1 : 0);
    }
  });
});

describe('automaticConcurrencyLimit', () => {
  it('is the batch and half as much again, rounded up', () => {
    expect(automaticConcurrencyLimit({ maxNumSeqs: 256, dataParallelSize: 1 })).toBe(384);
    expect(automaticConcurrencyLimit({ maxNumSeqs: 5, dataParallelSize: 3 })).toBe(23);
  });

  it('is unknown as long as the engine has not said both', () => {
    for (const engine of [
      {},
      { maxNumSeqs: 4 },
      { maxNumSeqs: 0, dataParallelSize: 1 },
      { maxNumSeqs: null, dataParallelSize: 1 },
    ]) {
      expect(automaticConcurrencyLimit(engine)).toBeUndefined();
    }
  });
});
