import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/base/clock.js';
import { Operation } from '../../../src/core/engine/operation.js';
import { ManualClock } from '../../../src/testing/index.js';
import { CountingClock, TurnClock } from '../../support/clocks.js';

/** A walk that is wanted so many times more, and writes down what is called. */
function makeOperation(clock: Clock = new CountingClock()) {
  const calls: string[] = [];
  const operation = new Operation(clock);
  let left = 0;
  const worker = {
    work: () => {
      calls.push('work');
      if (--left > 0) operation.want();
    },
  };
  const keeper = { isOn: true, end: () => void calls.push('end'), turnBegins: () => void calls.push('turn') };
  const want = (count: number): void => {
    left = count;
    operation.want();
  };
  return { operation, calls, keeper, want, start: () => operation.start(worker, keeper) };
}

/** One that has started, with a clock that counts timers. */
function started() {
  const clock = new CountingClock();
  const made = makeOperation(clock);
  made.start();
  made.calls.length = 0;
  const note = (name: string) => () => void made.calls.push(name);
  return { ...made, clock, note };
}

describe('operations', () => {
  it('that come during construction wait until its end', () => {
    const { operation, calls, start } = makeOperation();
    operation.perform(() => void calls.push('early'));
    expect([calls, operation.isBusy]).toEqual([[], true]);
    start();
    expect([calls, operation.isBusy]).toEqual([['early', 'end'], false]);
  });

  it('from inside another wait for its end, and have an instant of their own', () => {
    const { operation, calls, clock } = started();
    operation.perform(() => {
      operation.perform(() => void calls.push(`inner at ${operation.nowMs}`));
      clock.advance(5);
      calls.push(`outer at ${operation.nowMs}`);
    });
    expect(calls).toEqual(['outer at 0', 'inner at 5', 'end']);
  });

  it('do work while it is wanted, before what was put off, at the same instant', () => {
    const { operation, calls, want, note } = started();
    operation.perform(() => {
      want(2);
      operation.perform(note('later'));
    });
    expect(calls).toEqual(['work', 'later', 'work', 'end']);
  });

  it('that throw leave nothing busy, and the work is done', () => {
    const { operation, calls, want, note } = started();
    const fails = (): void => {
      want(1);
      throw new Error('broken');
    };
    expect(() => operation.perform(fails)).toThrow('broken');
    expect(calls).toEqual(['work', 'end']);
    operation.perform(note('next'));
    expect(calls.at(-2)).toBe('next');
  });

  it('are not followed by an end that has nothing to do', () => {
    const { operation, calls, keeper, note } = started();
    keeper.isOn = false;
    operation.perform(note('one'));
    expect(calls).toEqual(['one']);
  });

  it('go on after an end that wants work again', () => {
    const { operation, calls, keeper, want } = started();
    keeper.end = () => {
      if (calls.push('end') === 1) want(1);
    };
    operation.perform(() => {});
    expect([calls, operation.isBusy]).toEqual([['end', 'work', 'end'], false]);
  });

  it('are woken at once, and in the middle of one by its end', () => {
    const { operation, calls, note } = started();
    operation.wake();
    operation.perform(() => {
      operation.wake();
      calls.push('one');
    });
    operation.perform(note('two'));
    expect(calls).toEqual(['work', 'end', 'one', 'work', 'end', 'two', 'end']);
  });

  it('without end go on in a later turn, a thousand times in each', () => {
    const { operation, calls, clock, want } = started();
    const worked = () => calls.filter((call) => call === 'work').length;
    operation.perform(() => want(2500));
    expect([worked(), clock.pendingTimers]).toEqual([1000, 1]);
    operation.perform(() => {});
    expect([worked(), clock.pendingTimers, clock.timersSet]).toEqual([2000, 1, 1]);
    operation.perform(() => {});
    expect([worked(), clock.pendingTimers]).toEqual([2500, 0]);
  });

  it('without end go on by their own timer where nobody calls', () => {
    const { operation, calls, clock, want } = started();
    operation.perform(() => want(1500));
    clock.advance(0);
    expect(calls.filter((call) => call === 'work')).toHaveLength(1500);
    expect([clock.pendingTimers, clock.timersSet]).toEqual([0, 1]);
  });
});

/** Counts how often it is read. */
class TurningClock extends TurnClock {
  readings = 0;

  override now(): number {
    this.readings++;
    return super.now();
  }
}

function timed<C extends Clock>(clock: C) {
  const { operation, start, calls } = makeOperation(clock);
  start();
  const instant = (): number => {
    operation.begin();
    operation.leave();
    return operation.nowMs;
  };
  return { clock, operation, instant, calls };
}

/** The instants of so many operations, with `gapMs` before each. */
function rush(instant: () => number, clock: ManualClock, operations: number, gapMs: number): number[] {
  return Array.from({ length: operations }, () => {
    clock.advance(gapMs);
    return instant();
  });
}

describe('the instant of an operation', () => {
  it('is read for one in sixteen in a rush, and is never later than the clock nor more than fifteen operations behind it', () => {
    const { clock, instant } = timed(new TurningClock());
    rush(instant, clock, 2, 0.001);
    clock.readings = 0;
    for (let operation = 0; operation < 1600; operation++) {
      clock.advance(0.001);
      const behindMs = clock.now() - instant();
      expect(behindMs).toBeGreaterThanOrEqual(0);
      expect(behindMs).toBeLessThan(0.0155);
    }
    expect(clock.readings - 1600).toBeLessThanOrEqual(101);
  });

  it('is read for each when they come one by one', () => {
    const { clock, instant } = timed(new TurningClock());
    expect(rush(instant, clock, 100, 0.1)).toEqual(
      Array.from({ length: 100 }, (_, i) => expect.closeTo((i + 1) * 0.1, 6)),
    );
    expect(clock.endTurn()).toBe(0);
  });

  it('is read anew in the next turn, which is told', () => {
    const { clock, instant, calls } = timed(new TurningClock());
    rush(instant, clock, 5, 0.001);
    clock.advance(500);
    expect([clock.endTurn(), calls.at(-1)]).toEqual([1, 'turn']);
    expect(instant()).toBe(clock.now());
    clock.advance(500);
    expect(instant()).toBe(clock.now());
  });

  it('is read for each where the clock does not tell of turns', () => {
    const { clock, instant } = timed(new ManualClock());
    expect(new Set(rush(instant, clock, 100, 0.001)).size).toBe(100);
  });

  it('moves on with what reads the clock in between', () => {
    const { clock, operation, instant } = timed(new TurningClock());
    rush(instant, clock, 5, 0.001);
    clock.advance(40);
    let atMs = 0;
    operation.perform(() => {
      atMs = operation.nowMs;
    });
    expect([atMs, instant()]).toEqual([clock.now(), clock.now()]);
  });

  it('is known to be an earlier reading, until the clock is read', () => {
    const { clock, operation, instant } = timed(new TurningClock());
    rush(instant, clock, 3, 0.001);
    expect(operation.isBehind).toBe(true);
    operation.read();
    expect([operation.isBehind, operation.nowMs]).toEqual([false, clock.now()]);
    operation.begin(false);
    operation.leave();
    expect(operation.isBehind).toBe(true);
  });
});

describe('what waits from a shared instant', () => {
  /** Begins to wait now; says how much later than its instant it may have come. */
  function waits({ operation, instant }: { operation: Operation; instant: () => number }) {
    const item = {
      fromMs: instant(),
      heldUpMs: 0,
      noteHeldUp: (forMs: number) => {
        item.heldUpMs = forMs;
      },
    };
    if (operation.isTurnAwaited) operation.waitsFromNow(item);
    return item;
  }

  it('came at its instant, to a timer’s tolerance, in a plain rush', () => {
    const made = timed(new TurningClock());
    rush(made.instant, made.clock, 5, 0.001);
    const item = waits(made);
    made.clock.advance(0.9);
    made.clock.endTurn();
    made.clock.advance(100);
    made.operation.read();
    expect(item.heldUpMs).toBe(0);
  });

  it('came at its instant where none is shared', () => {
    const made = timed(new ManualClock());
    const item = waits(made);
    made.clock.advance(100);
    made.operation.read();
    expect(item.heldUpMs).toBe(0);
  });

  it.each(['a reading for the next operation', 'a reading in between', 'the end of the turn'])(
    'is put right by %s, when the host did something else meanwhile, and nothing that came before or after',
    (kind) => {
      const made = timed(new TurningClock());
      const { clock, operation, instant } = made;
      rush(instant, clock, 3, 0.001);
      const before = waits(made);
      operation.read();
      clock.advance(26);
      const calledAtMs = clock.now();
      const item = waits(made);
      expect(item.fromMs).toBeLessThan(calledAtMs);
      if (kind === 'a reading in between') operation.perform(() => {});
      else if (kind === 'the end of the turn') clock.endTurn();
      else rush(instant, clock, 16, 0.001);
      expect(item.fromMs + item.heldUpMs).toBeGreaterThanOrEqual(calledAtMs);
      const after = waits(made);
      operation.read();
      expect([before.heldUpMs, after.heldUpMs]).toEqual([0, 0]);
    },
  );

  it('is never early, however many turns were held up', () => {
    const made = timed(new TurningClock());
    const items = Array.from({ length: 1000 }, (_, turn) => {
      rush(made.instant, made.clock, 3, 0.001);
      made.clock.advance(1 + (turn % 7));
      const item = waits(made);
      const calledAtMs = made.clock.now();
      made.clock.endTurn();
      return { item, calledAtMs };
    });
    for (const { item, calledAtMs } of items)
      expect(item.fromMs + Math.max(item.heldUpMs, 1)).toBeGreaterThanOrEqual(calledAtMs);
  });
});
