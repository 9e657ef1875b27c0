/** The one timer of all deadlines, without a controller around it. */
import { describe, expect, it, vi } from 'vitest';
import { Expiry } from '../../../src/core/engine/expiry.js';
import { QueueItem } from '../../../src/core/engine/queue-item.js';
import { CountingClock } from '../../support/clocks.js';
import { request } from '../../support/flow.js';

const never = Number.POSITIVE_INFINITY;

function makeExpiry(clock: CountingClock = new CountingClock()) {
  const regime = { budgetMs: undefined as number | undefined, mostMs: never };
  let calls = 0;
  const budgets = { budgetOf: (item: QueueItem) => regime.budgetMs ?? item.ttlMs, mostOf: () => regime.mostMs };
  const expiry = new Expiry(clock, budgets, () => calls++);
  let sequence = 0;
  const wait = (ttlMs: number): QueueItem => {
    const item = new QueueItem(request, undefined, 'a', 0, 10, 0, sequence++, clock.now(), ttlMs);
    item.settle = () => {};
    expiry.add(item);
    return item;
  };
  const leave = (item: QueueItem): void => {
    item.settle = undefined;
    expiry.remove(item);
  };
  return { expiry, clock, regime, wait, leave, calls: () => calls };
}

describe('a deadline', () => {
  it('is due from its very instant on', () => {
    const { expiry, wait } = makeExpiry();
    const item = wait(100);
    expect([expiry.mayBeDue(99), expiry.isDue(item, 99), expiry.due(99)]).toEqual([false, false, undefined]);
    expect([expiry.mayBeDue(100), expiry.isDue(item, 100), expiry.due(100)]).toEqual([true, true, item]);
  });

  it('is that of the request that is asked about', () => {
    const { expiry, wait } = makeExpiry();
    const [early, late] = [wait(100), wait(200)];
    expect([expiry.isDue(early, 150), expiry.isDue(late, 150)]).toEqual([true, false]);
  });

  it('of a request that left is neither found nor remembered', () => {
    const { expiry, wait, leave } = makeExpiry();
    const [first, second] = [wait(100), wait(200)];
    leave(first);
    expect(first.deadlines).toBeUndefined();
    expect(expiry.due(150)).toBeUndefined();
    expect(expiry.mayBeDue(150)).toBe(false);
    expect(expiry.due(200)).toBe(second);
    leave(second);
    expect(expiry.due(200)).toBeUndefined();
    expect(expiry.mayBeDue(1e12)).toBe(false);
  });

  it('is none for a request that may wait for ever', () => {
    const { expiry, wait } = makeExpiry();
    const item = wait(never);
    expect(item.deadlines).toBeUndefined();
    expect([expiry.deadlineOf(item), expiry.mayBeDue(1e12), expiry.isUsed]).toEqual([never, false, false]);
  });
});

describe('a regime', () => {
  it('gives what waited before its budget from its beginning, and at most so much in all', () => {
    const { expiry, clock, regime, wait } = makeExpiry();
    const before = wait(100);
    clock.advance(60);
    regime.budgetMs = 500;
    expiry.restart(60, [before]);
    expect(expiry.deadlineOf(before)).toBe(560);
    regime.mostMs = 300;
    expect(expiry.deadlineOf(before)).toBe(300);
  });

  it('counts from the wait for what came with its beginning or later', () => {
    const { expiry, clock, regime, wait } = makeExpiry();
    clock.advance(60);
    regime.budgetMs = 500;
    regime.mostMs = 300;
    expiry.restart(60, []);
    const atOnce = wait(100);
    clock.advance(5);
    const later = wait(100);
    expect([expiry.deadlineOf(atOnce), expiry.deadlineOf(later)]).toEqual([560, 565]);
  });

  it('forgets the deadlines of the one before, with their timer', () => {
    const { expiry, clock, regime, wait } = makeExpiry();
    const item = wait(100);
    expiry.arm(0);
    regime.budgetMs = never;
    expiry.restart(0, [item]);
    expect([clock.pendingTimers, expiry.isUsed]).toEqual([0, false]);
    expect(item.deadlines).toBeUndefined();
  });
});

describe('the timer', () => {
  it('is set anew only while there is none, or while an earlier deadline than its own is there', () => {
    const { expiry, clock, wait } = makeExpiry();
    const set = vi.spyOn(clock, 'setTimeout');
    wait(100);
    expiry.arm(0);
    expect(set).toHaveBeenCalledTimes(1);
    wait(200);
    wait(100);
    expiry.arm(0);
    expect(set).toHaveBeenCalledTimes(1);
    wait(99);
    expiry.arm(0);
    expect(set).toHaveBeenCalledTimes(2);
    expect(clock.pendingTimers).toBe(1);
  });

  it('is the only one, and calls once, no earlier than the earliest deadline', () => {
    const { expiry, clock, wait, calls } = makeExpiry();
    wait(100.5);
    expiry.arm(0);
    wait(50.5);
    expiry.arm(0);
    expect(clock.pendingTimers).toBe(1);
    clock.advance(50);
    expect(calls()).toBe(0);
    clock.advance(1);
    expect([calls(), clock.pendingTimers]).toEqual([1, 0]);
    expiry.arm(51);
    expect(clock.pendingTimers).toBe(1);
  });

  it('is set for at once when the deadline has passed', () => {
    const { expiry, clock, wait, calls } = makeExpiry();
    wait(10);
    clock.advance(30);
    expiry.arm(30);
    clock.advance(0);
    expect(calls()).toBe(1);
  });

  it('is gone when nothing waits any more, and with it every deadline', () => {
    const { expiry, clock, wait, leave } = makeExpiry();
    expect(expiry.isUsed).toBe(false);
    const item = wait(100);
    expect(expiry.isUsed).toBe(true);
    expiry.arm(0);
    leave(item);
    expiry.disarm();
    expect([clock.pendingTimers, expiry.isUsed, expiry.mayBeDue(1e12)]).toEqual([0, false, false]);
    wait(300);
    expiry.arm(0);
    expect(clock.pendingTimers).toBe(1);
  });

  it('alone is in use when its deadlines are gone', () => {
    const { expiry, clock, wait, leave } = makeExpiry();
    const item = wait(100);
    expiry.arm(0);
    leave(item);
    clock.advance(99);
    expect(expiry.due(100)).toBeUndefined();
    expect([expiry.mayBeDue(1e12), expiry.isUsed]).toEqual([false, true]);
  });
});
