import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../src/testing/index.js';

describe('ManualClock', () => {
  it('stands still until it is told to move', () => {
    const clock = new ManualClock(500);
    let fired = 0;
    clock.setTimeout(() => fired++, 0);
    expect([clock.now(), fired, clock.pendingTimers]).toEqual([500, 0, 1]);
    clock.advance(0);
    expect([clock.now(), fired, clock.pendingTimers]).toEqual([500, 1, 0]);
  });

  it('runs timers in the order of their instants, then of their making, each at its own instant', () => {
    const clock = new ManualClock();
    const log: string[] = [];
    for (const [name, delay] of [
      ['late', 30],
      ['first', 10],
      ['second', 10],
      ['beyond', 100],
      ['past', -5],
    ] as const) {
      clock.setTimeout(() => log.push(`${name} ${clock.now()}`), delay);
    }
    clock.advance(50);
    expect(log).toEqual(['past 0', 'first 10', 'second 10', 'late 30']);
    expect(clock.now()).toBe(50);
    expect(clock.pendingTimers).toBe(1);
  });

  it('runs timers that timers set, when they fall due on the way', () => {
    const clock = new ManualClock();
    const log: number[] = [];
    const again = (): void => {
      log.push(clock.now());
      clock.setTimeout(again, 10);
    };
    clock.setTimeout(again, 10);
    clock.advance(35);
    expect(log).toEqual([10, 20, 30]);
  });

  it('forgets a timer that was cleared, also by an earlier timer of the same instant', () => {
    const clock = new ManualClock();
    let fired = 0;
    clock.setTimeout(() => clock.clearTimeout(second), 10);
    const second = clock.setTimeout(() => fired++, 10);
    clock.clearTimeout(undefined);
    clock.advance(10);
    expect([fired, clock.pendingTimers]).toEqual([0, 0]);
  });

  it('never runs backwards, when a timer advances it further', () => {
    const clock = new ManualClock();
    clock.setTimeout(() => clock.advance(100), 10);
    clock.advance(20);
    expect(clock.now()).toBe(110);
  });

  it('never reaches a timer of infinite delay', () => {
    const clock = new ManualClock();
    let fired = 0;
    clock.setTimeout(() => fired++, Number.POSITIVE_INFINITY);
    clock.advance(1e12);
    expect([fired, clock.pendingTimers]).toEqual([0, 1]);
  });
});
