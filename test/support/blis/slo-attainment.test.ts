import { describe, expect, it } from 'vitest';
import { FlowConfigError } from '../../../src/index.js';
import { sloAttainment } from './slo-attainment.js';

describe('sloAttainment', () => {
  it('counts a latency at its target as met, and one above it as missed', () => {
    const completed = [
      { class: 'critical', ttftMs: 100 },
      { class: 'critical', ttftMs: 100.001 },
    ];
    expect(
      sloAttainment({ targets: { critical: { ttftMs: 100 } }, arrivals: { critical: 2 }, completed }).overall,
    ).toBe(0.5);
  });

  it('counts what was refused or never ended as missed', () => {
    const { perClass } = sloAttainment({
      targets: { a: { e2eMs: 10 } },
      arrivals: { a: 4 },
      completed: [{ class: 'a', e2eMs: 1 }],
    });
    expect(perClass).toEqual({ a: { good: 1, arrivals: 4, attainment: 0.25, byDimension: { e2e: 1 } } });
  });

  it('wants every target met, and tells each apart', () => {
    const completed = [
      { class: 'a', ttftMs: 1, itlMs: 9, e2eMs: 1 },
      { class: 'a', ttftMs: 9, itlMs: 9, e2eMs: 1 },
      { class: 'a', ttftMs: 1, itlMs: 1, e2eMs: 1 },
      { class: 'a', ttftMs: 1, itlMs: 9, e2eMs: 1 },
    ];
    const report = sloAttainment({ targets: { a: { ttftMs: 5, itlMs: 5, e2eMs: 5 } }, arrivals: { a: 4 }, completed });
    expect(report.perClass.a).toEqual({
      good: 1,
      arrivals: 4,
      attainment: 0.25,
      byDimension: { ttft: 0.75, itl: 0.25, e2e: 1 },
    });
  });

  it('leaves classes without targets out of both sides', () => {
    const completed = [
      { class: 'a', ttftMs: 1 },
      { class: 'b', ttftMs: 1 },
      { class: 'c', ttftMs: 1 },
    ];
    const report = sloAttainment({
      targets: { a: { ttftMs: 5 }, c: {} },
      arrivals: { a: 1, b: 100, c: 100 },
      completed,
    });
    expect([report.overall, Object.keys(report.perClass)]).toEqual([1, ['a']]);
  });

  it('calls requests without a class default', () => {
    const completed = [{ ttftMs: 1 }, { class: '', ttftMs: 1 }, { class: 'default', ttftMs: 1 }];
    const report = sloAttainment({ targets: { default: { ttftMs: 5 } }, arrivals: { '': 3, default: 1 }, completed });
    expect(report.perClass.default).toMatchObject({ good: 3, arrivals: 4 });
  });

  it('misses a target whose latency was not measured', () => {
    const completed = [
      { class: 'a', ttftMs: 1 },
      { class: 'a', ttftMs: 1, itlMs: 0 },
    ];
    expect(sloAttainment({ targets: { a: { itlMs: 5 } }, arrivals: { a: 2 }, completed }).overall).toBe(0.5);
  });

  it('is 0 where nothing came, without dimensions where nothing completed', () => {
    const none = { good: 0, arrivals: 0, attainment: 0, byDimension: {} };
    expect(sloAttainment({ targets: { a: { ttftMs: 5 } }, arrivals: {}, completed: [] })).toEqual({
      overall: 0,
      perClass: { a: none },
    });
    expect(sloAttainment({ targets: {}, arrivals: { a: 1 }, completed: [] })).toEqual({ overall: 0, perClass: {} });
  });

  it('takes no class for one that objects have by birth', () => {
    const report = sloAttainment({ targets: { constructor: { ttftMs: 5 } }, arrivals: {}, completed: [] });
    expect(report.perClass.constructor).toMatchObject({ arrivals: 0 });
  });

  it('refuses a count of arrivals that cannot be', () => {
    const report = () =>
      sloAttainment({ targets: { a: { ttftMs: 5 } }, arrivals: {}, completed: [{ class: 'a', ttftMs: 1 }] });
    expect(report).toThrow(FlowConfigError);
    expect(report).toThrow('arrivals.a: expected at least 1, the completed requests of the class; got 0 (number)');
  });
});
