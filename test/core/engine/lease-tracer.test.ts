/** What a lost lease is told with, without waiting for the garbage collector to lose one. */
import { types } from 'node:util';
import { expect, it, vi } from 'vitest';
import { LeaseTracer } from '../../../src/core/engine/lease-tracer.js';
import { QueueItem } from '../../../src/core/engine/queue-item.js';
import type { SeatLease } from '../../../src/core/engine/seats.js';
import { EventHub } from '../../../src/core/event-hub.js';
import {
  FlowConfigError,
  type FlowController,
  type FlowEvents,
  type FlowRequest,
  type Lease,
} from '../../../src/index.js';
import { dial, key, leaseOf, makeFlow, record, request, runNow } from '../../support/flow.js';

function itemAt(enqueuedAtMs: number): QueueItem {
  return new QueueItem(request, undefined, 'tenant', 3, 10, 0, 0, enqueuedAtMs, 1000);
}

function leaseFor(item: QueueItem, dispatchedAtMs: number): SeatLease {
  return { fairnessId: item.fairnessId, priority: item.priority, dispatchedAtMs, item } as SeatLease;
}

function comesIn(tracer: LeaseTracer, item: QueueItem): void {
  tracer.arrived(item);
}

function listening() {
  const events = new EventHub();
  const told: FlowEvents['leaseLost'][] = [];
  events.on('leaseLost', (event) => told.push(event));
  return { events, told };
}

it('a lost lease is told with its request, how long it is held, and the lines of the call that it came from', () => {
  const tracer = new LeaseTracer(() => {});
  const { events, told } = listening();
  const item = itemAt(50);
  comesIn(tracer, item);
  tracer.tell(leaseFor(item, 100), events, 350);
  expect(told).toMatchObject([{ fairnessId: 'tenant', priority: 3, heldMs: 250 }]);
  expect(told[0]?.origin).toMatch(/^\s+at .*arrived.*\n\s+at .*comesIn/);
});

it('a request that was put back came from where its first attempt did', () => {
  const tracer = new LeaseTracer(() => {});
  const { events, told } = listening();
  const before = itemAt(0);
  comesIn(tracer, before);
  const again = before.again(10, request);
  tracer.putBack(again, before);
  tracer.tell(leaseFor(again, 20), events, 30);
  expect(told[0]?.origin).toContain('comesIn');
});

it('a request that came in before leases were traced has no origin', () => {
  const tracer = new LeaseTracer(() => {});
  const { events, told } = listening();
  const before = itemAt(0);
  tracer.tell(leaseFor(before, 20), events, 30);
  tracer.putBack(before.again(10, request), before);
  expect(told[0]?.origin).toBe('');
});

it('without a listener it is written to the console', () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
  const tracer = new LeaseTracer(() => {});
  const item = itemAt(0);
  comesIn(tracer, item);
  tracer.tell(leaseFor(item, 0), new EventHub(), 1);
  expect(warn).toHaveBeenCalledTimes(1);
  expect(String(warn.mock.calls[0]?.[0])).toMatch(/a lease was lost without release\(\)(.|\n)*comesIn/);
});

it('a stack that the platform does not give is no fault', () => {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const tracer = new LeaseTracer(() => {});
    const { events, told } = listening();
    const item = itemAt(0);
    comesIn(tracer, item);
    tracer.tell(leaseFor(item, 0), events, 1);
    expect(told[0]?.origin).not.toContain('comesIn');
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
});

/** Runs `test` where the test says which lease is lost, in place of the garbage collector. */
async function whereLost(test: (lose: (lease: Lease) => void) => Promise<void>): Promise<void> {
  const onLost = new Map<unknown, () => void>();
  class Registry<T> {
    private readonly tell: (held: T) => void;

    constructor(tell: (held: T) => void) {
      this.tell = tell;
    }

    register(handle: object, held: T): void {
      onLost.set(handle, () => this.tell(held));
    }
  }
  const { FinalizationRegistry: before } = globalThis;
  Object.assign(globalThis, { FinalizationRegistry: Registry });
  try {
    await test((lease) => onLost.get(lease)?.());
  } finally {
    Object.assign(globalThis, { FinalizationRegistry: before });
  }
}

/** What callers get of a request, and the lease behind it, which events tell. */
async function granted(flow: FlowController): Promise<{ handle: Lease; lease: Lease | undefined }> {
  const told = record(flow, 'dispatched');
  const handle = leaseOf(await flow.enqueue(request, key('careless')));
  return { handle, lease: told[0]?.lease };
}

it('a controller tells of a lease that was lost, and leaves it its seat', () =>
  whereLost(async (lose) => {
    const { flow, clock } = makeFlow({ traceLeases: true });
    const told = record(flow, 'leaseLost');
    const { handle, lease } = await granted(flow);
    clock.advance(40);
    lose(handle);
    expect(told).toMatchObject([{ fairnessId: 'careless', heldMs: 40 }]);
    expect([lease?.isReleased, flow.stats().inFlight]).toEqual([false, 1]);
  }));

it('a controller takes the seat of a lost lease back where that is asked for', () =>
  whereLost(async (lose) => {
    const { flow } = makeFlow({ traceLeases: true, overdueLeases: 'release' });
    const told = record(flow, 'leaseLost');
    const { handle, lease } = await granted(flow);
    lose(handle);
    expect([told.length, lease?.isReleased, flow.stats().inFlight]).toEqual([1, true, 0]);
  }));

it('a lease that was released is no loss', () =>
  whereLost(async (lose) => {
    const { flow } = makeFlow({ traceLeases: true, overdueLeases: 'release' });
    const told = record(flow, 'leaseLost');
    const { handle } = await granted(flow);
    handle.release();
    lose(handle);
    expect(told).toEqual([]);
    expect(flow.stats()).toMatchObject({ inFlight: 0, released: 1 });
  }));

it('tracing begins with the leases after it was asked for, and ends with those before it was taken away', () =>
  whereLost(async (lose) => {
    const { flow } = makeFlow({ traceLeases: false, saturationDetector: dial(0) });
    const told = record(flow, 'leaseLost');
    const untraced = await granted(flow);
    expect([types.isProxy(untraced.handle), untraced.handle]).toEqual([false, untraced.lease]);
    flow.reconfigure({ traceLeases: true });
    const traced = await granted(flow);
    expect([types.isProxy(traced.handle), traced.handle === traced.lease]).toEqual([true, true]);
    flow.reconfigure({ traceLeases: false });
    expect(runNow(flow)).not.toBe(traced.handle);
    lose(untraced.handle);
    lose(traced.handle);
    expect(told).toHaveLength(1);
  }));

it('where a lease came from is known through a change of other options', () =>
  whereLost(async (lose) => {
    const detector = dial(1, true);
    const { flow } = makeFlow({ traceLeases: true, saturationDetector: detector });
    const told = record(flow, 'leaseLost');
    const waitsForLong = async (): Promise<Lease> => leaseOf(await flow.enqueue(request, key()));
    const waiting = waitsForLong();
    flow.reconfigure({ limits: { maxRequests: 5 } });
    detector.turnTo(0);
    lose(await waiting);
    expect(told[0]?.origin).toContain('waitsForLong');
  }));

it('where the platform does not tell what is lost, leases are not traced', async () => {
  const { FinalizationRegistry: before } = globalThis;
  Object.assign(globalThis, { FinalizationRegistry: undefined });
  try {
    const { handle, lease } = await granted(makeFlow({ traceLeases: true }).flow);
    expect([types.isProxy(handle), handle === lease]).toEqual([false, true]);
  } finally {
    Object.assign(globalThis, { FinalizationRegistry: before });
  }
});

it('a call that cannot be right is told as ever where leases are traced', async () => {
  const { flow } = makeFlow({ traceLeases: true });
  await expect(flow.enqueue({} as FlowRequest, key())).rejects.toThrow(FlowConfigError);
});

it('events tell of the very lease that the host has, so that it can be looked up by it', async () => {
  const { flow, clock } = makeFlow({ traceLeases: true, maxLeaseMs: 5 });
  const told: unknown[] = [];
  for (const event of ['dispatched', 'leaseOverdue', 'released'] as const)
    flow.on(event, ({ lease }) => void told.push(lease));
  const lease = leaseOf(await flow.enqueue(request, key()));
  clock.advance(5);
  lease.release();
  expect(told).toHaveLength(3);
  for (const each of told) expect(each === lease).toBe(true);
});
