import { describe, expect, it } from 'vitest';
import { type Clock, CoarseClock } from '../../src/base/clock.js';
import { ManualClock } from '../../src/testing/index.js';

/** Tells of turns, and counts how often it is read. */
class TurningClock extends ManualClock implements Clock {
  readings = 0;
  private readonly awaited: (() => void)[] = [];

  override now(): number {
    this.readings++;
    return super.now();
  }

  nextTurn(callback: () => void): void {
    this.awaited.push(callback);
  }

  /** How many callbacks it ended the turn with. */
  endTurn(): number {
    const callbacks = this.awaited.splice(0);
    for (const callback of callbacks) callback();
    return callbacks.length;
  }
}

function makeCoarse<C extends Clock>(clock: C): { clock: C; coarse: CoarseClock } {
  return { clock, coarse: new CoarseClock(clock, () => {}) };
}

/** The instants of so many operations, with `gapMs` before each. */
function rush(coarse: CoarseClock, clock: ManualClock, operations: number, gapMs: number): number[] {
  return Array.from({ length: operations }, () => {
    clock.advance(gapMs);
    return coarse.readShared();
  });
}

describe('the instant of an operation', () => {
  it('is read for one in sixteen in a rush, and is never later than the clock nor more than fifteen operations behind it', () => {
    const { clock, coarse } = makeCoarse(new TurningClock());
    rush(coarse, clock, 2, 0.001);
    clock.readings = 0;
    for (let operation = 0; operation < 1600; operation++) {
      clock.advance(0.001);
      const behindMs = clock.now() - coarse.readShared();
      expect(behindMs).toBeGreaterThanOrEqual(0);
      expect(behindMs).toBeLessThan(0.0155);
    }
    expect(clock.readings - 1600).toBeLessThanOrEqual(101);
  });

  it('is read for each when they come one by one', () => {
    const { clock, coarse } = makeCoarse(new TurningClock());
    expect(rush(coarse, clock, 100, 0.1)).toEqual(Array.from({ length: 100 }, (_, i) => expect.closeTo((i + 1) * 0.1, 6)));
    expect(clock.endTurn()).toBe(0);
  });

  it('is read anew in the next turn', () => {
    const { clock, coarse } = makeCoarse(new TurningClock());
    rush(coarse, clock, 5, 0.001);
    clock.advance(500);
    expect(clock.endTurn()).toBe(1);
    expect(coarse.readShared()).toBe(clock.now());
    clock.advance(500);
    expect(coarse.readShared()).toBe(clock.now());
  });

  it('is read for each where the clock does not tell of turns', () => {
    const { clock, coarse } = makeCoarse(new ManualClock());
    expect(new Set(rush(coarse, clock, 100, 0.001)).size).toBe(100);
  });

  it('moves on with what reads the clock in between', () => {
    const { clock, coarse } = makeCoarse(new TurningClock());
    rush(coarse, clock, 5, 0.001);
    clock.advance(40);
    expect(coarse.read()).toBe(clock.now());
    expect(coarse.readShared()).toBe(clock.now());
  });
});
