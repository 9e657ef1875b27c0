import { describe, expect, it } from 'vitest';
import { type Program, ProgramTable } from '../../../src/tiers/2-fairness/program-table.js';

const [ttlMs, sweepMs] = [1000, 10];

function names(table: ProgramTable): string[] {
  return [...table.values()].map(({ fairnessId }) => fairnessId);
}

describe('a program', () => {
  it('is made when it is first asked for, and is the same from then on', () => {
    const table = new ProgramTable(ttlMs, sweepMs);
    expect(table.find('a')).toBeUndefined();
    const program = table.of('a');
    expect([table.find('a'), table.of('a'), table.size]).toEqual([program, program, 1]);
  });

  it('counts its requests, those that run, and the mean of their waits', () => {
    const table = new ProgramTable(ttlMs, sweepMs);
    const program = table.of('a');
    for (const waitedMs of [10, 20, 60]) table.dispatched(program, waitedMs);
    expect(program).toMatchObject({ dispatched: 3, inFlight: 3, waits: 3 });
    expect(program.meanWaitMs).toBeCloseTo(30, 9);
    table.ended(program, 500);
    expect(program).toMatchObject({ dispatched: 3, inFlight: 2, lastEndedAtMs: 500 });
  });

  it('may be told of ends that it did not see begin', () => {
    const table = new ProgramTable(ttlMs, sweepMs);
    const program = table.of('a');
    table.ended(program, 0);
    table.stoppedWaiting(program);
    table.dispatched(program, 0);
    table.beganWaiting(program);
    expect(program).toMatchObject({ inFlight: 1, waitingFlows: 1 });
  });
});

type Step = (table: ProgramTable, program: Program) => void;

describe('a program is forgotten', () => {
  const keepers: readonly [what: string, begin: Step, end: Step][] = [
    ['waits', (table, program) => table.beganWaiting(program), (table, program) => table.stoppedWaiting(program)],
    ['runs', (table, program) => table.dispatched(program, 0), (table, program) => table.ended(program, 5000)],
    [
      'waits in two bands',
      (table, program) => {
        for (let i = 0; i < 3; i++) table.beganWaiting(program);
        table.stoppedWaiting(program);
      },
      (table, program) => {
        for (let i = 0; i < 2; i++) table.stoppedWaiting(program);
      },
    ],
    [
      'runs, though another request of it ended',
      (table, program) => {
        for (let i = 0; i < 2; i++) table.dispatched(program, 0);
        table.ended(program, 0);
      },
      (table, program) => table.ended(program, 5000),
    ],
  ];

  it.each(keepers)('after its time without anything of it, and never while it %s', (_, begin, end) => {
    const table = new ProgramTable(ttlMs, sweepMs);
    table.sweep(0);
    const program = table.of('a');
    begin(table, program);
    table.sweep(5000);
    expect(table.size).toBe(1);
    end(table, program);
    table.sweep(5000 + ttlMs);
    expect(table.size).toBe(1);
    table.sweep(5000 + ttlMs + sweepMs);
    expect(table.size).toBe(0);
  });

  it('the one that fell idle first before the others', () => {
    const table = new ProgramTable(ttlMs, sweepMs);
    table.sweep(0);
    const first = table.of('first');
    table.sweep(500);
    table.of('second');
    table.sweep(900);
    table.dispatched(first, 0);
    table.ended(first, 900);
    table.sweep(1501);
    expect(names(table)).toEqual(['first']);
    table.sweep(1901);
    expect(names(table)).toEqual([]);
  });

  it('for its age when it is looked for, once in each interval', () => {
    const table = new ProgramTable(ttlMs, 5000);
    table.sweep(0);
    table.of('a');
    table.sweep(4999);
    expect(table.size).toBe(1);
    table.sweep(5000);
    expect(table.size).toBe(0);
  });

  it('never for its age with a time of 0', () => {
    const table = new ProgramTable(0, sweepMs);
    table.sweep(0);
    table.of('a');
    table.sweep(1e12);
    expect(table.size).toBe(1);
  });

  it('when ten thousand others fell idle after it', () => {
    const table = new ProgramTable(0, sweepMs);
    table.of('first');
    table.beganWaiting(table.of('waits'));
    for (let i = 1; i < 10_000; i++) table.of(`${i}`);
    expect([table.size, table.find('first')?.fairnessId]).toEqual([10_001, 'first']);
    table.of('one more');
    expect([table.size, table.find('first'), table.find('waits')?.fairnessId]).toEqual([10_001, undefined, 'waits']);
  });
});
