import { expect, it } from 'vitest';
import { SingleWriter } from '../../../src/core/engine/single-writer.js';
import { CountingClock } from '../../support/clocks.js';

/** A host that wants work so many times, and writes down what it is called for. */
function makeWriter(jobs = 0) {
  const clock = new CountingClock();
  const calls: string[] = [];
  let left = jobs;
  const host = {
    isBusy: true,
    begin: () => {
      host.isBusy = true;
      calls.push('begin');
    },
    rest: () => {
      host.isBusy = false;
    },
    get isWorkWanted() {
      return left > 0;
    },
    work: () => {
      left--;
      calls.push('work');
    },
    end: () => void calls.push('end'),
    want: (count: number) => {
      left = count;
    },
  };
  const writer = new SingleWriter(clock, host);
  return { writer, host, clock, calls, note: (name: string) => () => void calls.push(name) };
}

it('what is called during construction waits until its end', () => {
  const { writer, calls, note } = makeWriter();
  writer.perform(note('early'));
  expect(calls).toEqual([]);
  writer.leave();
  expect(calls).toEqual(['begin', 'early', 'end']);
});

it('an operation that leaves nothing to do only begins and ends', () => {
  const { writer, calls, note } = makeWriter();
  writer.leave();
  expect(calls).toEqual(['end']);
  writer.perform(note('one'));
  expect(calls).toEqual(['end', 'begin', 'one', 'end']);
});

it('an operation from inside another waits for its end, and begins at an instant of its own', () => {
  const { writer, calls, note } = makeWriter();
  writer.leave();
  calls.length = 0;
  writer.perform(() => {
    writer.perform(note('inner'));
    calls.push('outer');
  });
  expect(calls).toEqual(['begin', 'outer', 'begin', 'inner', 'end']);
});

it('work is done while it is wanted, before what was put off, at the same instant', () => {
  const { writer, host, calls, note } = makeWriter();
  writer.leave();
  calls.length = 0;
  writer.perform(() => {
    host.want(2);
    writer.perform(note('later'));
  });
  expect(calls).toEqual(['begin', 'work', 'begin', 'later', 'work', 'end']);
});

it('an operation that throws leaves the writer free, and the work is done', () => {
  const { writer, host, calls, note } = makeWriter();
  writer.leave();
  calls.length = 0;
  const fails = (): void => {
    host.want(1);
    throw new Error('broken');
  };
  expect(() => writer.perform(fails)).toThrow('broken');
  expect(calls).toEqual(['begin', 'work', 'end']);
  writer.perform(note('next'));
  expect(calls.at(-2)).toBe('next');
});

it('work without end goes on in a later turn, a thousand times in each', () => {
  const { writer, host, clock, calls } = makeWriter();
  writer.leave();
  calls.length = 0;
  host.want(2500);
  const worked = () => calls.filter((call) => call === 'work').length;
  writer.perform(() => {});
  expect([worked(), clock.pendingTimers]).toEqual([1000, 1]);
  writer.perform(() => {});
  expect([worked(), clock.pendingTimers, clock.timersSet]).toEqual([2000, 1, 1]);
  writer.perform(() => {});
  expect([worked(), clock.pendingTimers]).toEqual([2500, 0]);
});

it('goes on by its own timer where nobody calls', () => {
  const { writer, host, clock, calls } = makeWriter();
  writer.leave();
  calls.length = 0;
  host.want(1500);
  writer.perform(() => {});
  clock.advance(0);
  expect(calls.filter((call) => call === 'work')).toHaveLength(1500);
  expect([clock.pendingTimers, clock.timersSet]).toEqual([0, 1]);
});
