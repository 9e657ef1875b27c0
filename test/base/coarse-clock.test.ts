import { describe, expect, it } from 'vitest';
import { type Clock, CoarseClock } from '../../src/base/clock.js';
import { ManualClock } from '../../src/testing/index.js';
import { TurnClock } from '../support/clocks.js';

/** Counts how often it is read. */
class TurningClock extends TurnClock {
  readings = 0;

  override now(): number {
    this.readings++;
    return super.now();
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
    expect(rush(coarse, clock, 100, 0.1)).toEqual(
      Array.from({ length: 100 }, (_, i) => expect.closeTo((i + 1) * 0.1, 6)),
    );
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

describe('the latest instant of the operations of a reading', () => {
  it('is the reading itself where none is shared', () => {
    const { coarse } = makeCoarse(new ManualClock());
    expect(coarse.latestOf(coarse.readShared())).toBe(coarse.read());
  });

  it('is a timer’s tolerance after the reading in a plain rush', () => {
    const { clock, coarse } = makeCoarse(new TurningClock());
    const [first = 0] = rush(coarse, clock, 5, 0.001);
    expect(coarse.latestOf(first)).toBe(first + 1);
  });

  it.each(['a reading for the next operation', 'a reading in between', 'the end of the turn'])(
    'is told by %s, when the host did something else meanwhile',
    (kind) => {
      const { clock, coarse } = makeCoarse(new TurningClock());
      const shared = rush(coarse, clock, 3, 0.001).at(-1) ?? Number.NaN;
      clock.advance(26);
      const calledAtMs = clock.now();
      expect(coarse.readShared()).toBe(shared);
      if (kind === 'a reading in between') coarse.read();
      else if (kind === 'the end of the turn') clock.endTurn();
      else rush(coarse, clock, 16, 0.001);
      expect(coarse.latestOf(shared)).toBeGreaterThanOrEqual(calledAtMs);
    },
  );

  it('is never early, however many turns were held up', () => {
    const { clock, coarse } = makeCoarse(new TurningClock());
    const calls: [number, number][] = [];
    for (let turn = 0; turn < 1000; turn++) {
      rush(coarse, clock, 3, 0.001);
      clock.advance(1 + (turn % 7));
      calls.push([coarse.readShared(), clock.now()]);
      clock.endTurn();
    }
    for (const [reading, calledAtMs] of calls) expect(coarse.latestOf(reading)).toBeGreaterThanOrEqual(calledAtMs);
    coarse.forgetReadings();
    expect(coarse.latestOf(5)).toBe(6);
  });
});
