/** What a lost lease is told with, without waiting for the garbage collector to lose one. */
import { expect, it, vi } from 'vitest';
import { LeaseTracer } from '../../../src/core/engine/lease-tracer.js';
import { QueueItem } from '../../../src/core/engine/queue-item.js';
import type { SeatLease } from '../../../src/core/engine/seats.js';
import { EventHub } from '../../../src/core/event-hub.js';
import type { FlowEvents } from '../../../src/index.js';
import { request } from '../../support/flow.js';

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
  tracer.inherit(again, before);
  tracer.tell(leaseFor(again, 20), events, 30);
  expect(told[0]?.origin).toContain('comesIn');
});

it('a request that came in before leases were traced has no origin', () => {
  const tracer = new LeaseTracer(() => {});
  const { events, told } = listening();
  const before = itemAt(0);
  tracer.tell(leaseFor(before, 20), events, 30);
  tracer.inherit(before.again(10, request), before);
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
