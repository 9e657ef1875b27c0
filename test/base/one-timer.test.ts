import { describe, expect, it } from 'vitest';
import { OneTimer } from '../../src/base/one-timer.js';
import { CountingClock } from '../support/clocks.js';

function make() {
  const clock = new CountingClock();
  const looks: number[] = [];
  const poller: OneTimer = new OneTimer(clock, () => looks.push(clock.now()));
  return { clock, looks, poller, look: (delayMs: number): void => poller.in(delayMs, clock.now()) };
}

describe('one timer', () => {
  it('is set by the first who asks, goes off once, and can be set anew', () => {
    const { clock, looks, poller, look } = make();
    expect([poller.isSet, clock.timersSet]).toEqual([false, 0]);
    look(10);
    expect(poller.isSet).toBe(true);
    clock.advance(9);
    expect(looks).toEqual([]);
    clock.advance(1);
    expect([looks, poller.isSet]).toEqual([[10], false]);
    clock.advance(100);
    expect(looks).toEqual([10]);
    look(10);
    clock.advance(10);
    expect(looks).toEqual([10, 120]);
  });

  it('stays where it is set to an earlier time, or to the same', () => {
    const { clock, looks, look } = make();
    look(10);
    look(10);
    look(50);
    clock.advance(5);
    look(5);
    look(6);
    expect(clock.timersSet).toBe(1);
    clock.advance(100);
    expect(looks).toEqual([10]);
  });

  it('is drawn forward, so that one timer goes off and not two', () => {
    const { clock, looks, look } = make();
    look(50);
    look(10);
    clock.advance(100);
    expect(looks).toEqual([10]);
  });

  it('goes off at once where the time has come', () => {
    const { clock, looks, look } = make();
    look(-5);
    clock.advance(0);
    expect(looks).toEqual([0]);
  });

  it('is stopped by Infinity, and by a stop, and then set by anybody', () => {
    const { clock, looks, poller, look } = make();
    look(10);
    look(Number.POSITIVE_INFINITY);
    expect(poller.isSet).toBe(false);
    clock.advance(100);
    expect(looks).toEqual([]);
    look(10);
    poller.stop();
    poller.stop();
    expect(poller.isSet).toBe(false);
    look(20);
    clock.advance(100);
    expect(looks).toEqual([120]);
  });

  it('is no timer at all where nobody has to look', () => {
    const { clock, look } = make();
    look(Number.POSITIVE_INFINITY);
    expect(clock.timersSet).toBe(0);
  });

  it('may be set anew by the look itself', () => {
    const clock = new CountingClock();
    const states: boolean[] = [];
    const poller: OneTimer = new OneTimer(clock, () => {
      states.push(poller.isSet);
      if (states.length < 3) poller.in(10, clock.now());
    });
    poller.in(10, clock.now());
    clock.advance(100);
    expect([states, poller.isSet]).toEqual([[false, false, false], false]);
  });
});
