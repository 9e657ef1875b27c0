import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { letProcessEnd } from '../../src/base/clock.js';
import { realClock } from '../../src/index.js';

describe('realClock', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('runs with the platform’s monotonic clock', () => {
    const before = realClock.now();
    vi.advanceTimersByTime(250);
    expect(realClock.now() - before).toBeCloseTo(250, 6);
  });

  it('calls back once, after the delay', () => {
    let called = 0;
    realClock.setTimeout(() => called++, 100);
    vi.advanceTimersByTime(99);
    expect(called).toBe(0);
    vi.advanceTimersByTime(500);
    expect(called).toBe(1);
  });

  it('does not call back what was cleared, and clears nothing without complaint', () => {
    let called = 0;
    const timer = realClock.setTimeout(() => called++, 100);
    realClock.clearTimeout(timer);
    realClock.clearTimeout(undefined);
    vi.advanceTimersByTime(500);
    expect(called).toBe(0);
  });

  it.each([[2 ** 31], [1e15], [Number.POSITIVE_INFINITY]])(
    'takes a delay of %d ms for a long one, not for none',
    (delayMs) => {
      let called = 0;
      realClock.setTimeout(() => called++, delayMs);
      vi.advanceTimersByTime(24 * 3600 * 1000);
      expect(called).toBe(0);
    },
  );
});

describe('letProcessEnd', () => {
  it('unreferences a timer of Node', () => {
    const timer = setTimeout(() => {}, 1000);
    letProcessEnd(timer);
    expect(timer.hasRef()).toBe(false);
    clearTimeout(timer);
  });

  it.each([[undefined], [null], [7], ['timer'], [{}], [{ unref: 1 }]])(
    'leaves the timer %o of another clock as it is',
    (timer) => {
      expect(() => letProcessEnd(timer)).not.toThrow();
    },
  );
});
