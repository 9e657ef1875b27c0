import { describe, expect, it } from 'vitest';
import { sloClasses } from '../../src/admission/slo-classes.js';

const names = ['critical', 'standard', 'batch', 'sheddable', 'background'];

describe('sloClasses', () => {
  it('has five classes', () => {
    const classes = sloClasses();
    expect(names.map((name) => classes.priorityOf(name))).toEqual([4, 3, -1, -2, -3]);
    expect(names.map((name) => classes.isSheddable(name))).toEqual([false, false, true, true, true]);
    expect(names.map((name) => classes.invertedPriorityOf(name))).toEqual([0, 1, 5, 6, 7]);
  });

  it('reads empty, absent and unknown classes as 3, and names case-sensitively', () => {
    const classes = sloClasses({ overrides: { standard: -5 } });
    expect(
      [undefined, '', 'nope', 'Critical', 'constructor', '__proto__'].map((name) => classes.priorityOf(name)),
    ).toEqual([3, 3, 3, 3, 3, 3]);
    expect(classes.priorityOf('standard')).toBe(-5);
  });

  it('takes more classes, and inverts from the highest', () => {
    const classes = sloClasses({ overrides: { gold: 7, batch: 0 } });
    expect([
      classes.priorityOf('gold'),
      classes.invertedPriorityOf('gold'),
      classes.invertedPriorityOf('critical'),
    ]).toEqual([7, 0, 3]);
    expect(classes.isSheddable('batch')).toBe(false);
  });

  it('rejects priorities beyond 100', () => {
    expect(() => sloClasses({ overrides: { batch: -100, critical: 100 } })).not.toThrow();
    expect(() => sloClasses({ overrides: { batch: 101, gold: 1.5 } })).toThrow(
      'sloClasses: 2 problems\n  overrides.batch: expected an integer from -100 to 100; got 101 (number)\n  overrides.gold: expected an integer from -100 to 100; got 1.5 (number)',
    );
  });
});
