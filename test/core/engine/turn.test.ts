import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/base/clock.js';
import { Turn } from '../../../src/core/engine/turn.js';
import { ManualClock } from '../../../src/testing/index.js';

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

function makeTurn<C extends Clock>(clock: C): { clock: C; turn: Turn } {
  return { clock, turn: new Turn(clock, () => {}) };
}

/** The instants of so many operations, with `gapMs` before each. */
function rush(turn: Turn, clock: ManualClock, operations: number, gapMs: number): number[] {
  return Array.from({ length: operations }, () => {
    clock.advance(gapMs);
    return turn.readShared();
  });
}

describe('the instant of an operation', () => {
  it('is read for one in sixteen in a rush, and is never later than the clock nor more than fifteen operations behind it', () => {
    const { clock, turn } = makeTurn(new TurningClock());
    rush(turn, clock, 2, 0.001);
    clock.readings = 0;
    for (let operation = 0; operation < 1600; operation++) {
      clock.advance(0.001);
      const behindMs = clock.now() - turn.readShared();
      expect(behindMs).toBeGreaterThanOrEqual(0);
      expect(behindMs).toBeLessThan(0.0155);
    }
    expect(clock.readings - 1600).toBeLessThanOrEqual(101);
  });

  it('is read for each when they come one by one', () => {
    const { clock, turn } = makeTurn(new TurningClock());
    expect(rush(turn, clock, 100, 0.1)).toEqual(Array.from({ length: 100 }, (_, i) => expect.closeTo((i + 1) * 0.1, 6)));
    expect(clock.endTurn()).toBe(0);
  });

  it('is read anew in the next turn', () => {
    const { clock, turn } = makeTurn(new TurningClock());
    rush(turn, clock, 5, 0.001);
    clock.advance(500);
    expect(clock.endTurn()).toBe(1);
    expect(turn.readShared()).toBe(clock.now());
    clock.advance(500);
    expect(turn.readShared()).toBe(clock.now());
  });

  it('is read for each where the clock does not tell of turns', () => {
    const { clock, turn } = makeTurn(new ManualClock());
    expect(new Set(rush(turn, clock, 100, 0.001)).size).toBe(100);
  });

  it('moves on with what reads the clock in between', () => {
    const { clock, turn } = makeTurn(new TurningClock());
    rush(turn, clock, 5, 0.001);
    clock.advance(40);
    expect(turn.read()).toBe(clock.now());
    expect(turn.readShared()).toBe(clock.now());
  });
});
