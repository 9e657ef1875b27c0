import { describe, expect, it } from 'vitest';
import { FlowConfigError } from '../../src/index.js';
import { backlogDriftStability, compositeStability, thresholdStability } from '../../src/testing/index.js';

function repeat(count: number, value: (index: number) => number): number[] {
  return Array.from({ length: count }, (_, index) => value(index));
}

describe('compositeStability', () => {
  it('says nothing of no arrivals', () => {
    expect(compositeStability({ arrivals: 0, completionLatenciesMs: [] })).toEqual({ level: 'STABLE', score: 0, confidence: 0 });
  });

  it('reads a part of the work that was left undone as a backlog', () => {
    const run = (completed: number) => compositeStability({ arrivals: 100, completionLatenciesMs: repeat(completed, () => 10) });
    expect([91, 89, 0].map((completed) => run(completed).level)).toEqual(['STABLE', 'BACKLOGGED', 'BACKLOGGED']);
    expect(run(0)).toEqual({ level: 'BACKLOGGED', score: 1, confidence: 1 });
  });

  it('reads latencies that rise from quarter to quarter as overload', () => {
    const run = compositeStability({ arrivals: 100, completionLatenciesMs: repeat(100, (index) => 100 + index) });
    expect(run.level).toBe('OVERLOADED');
    expect(run.score).toBeCloseTo((174.5 - 124.5) / 124.5, 12);
  });

  it('takes a wave for no trend, whatever its halves say', () => {
    const latencies = [10, 20, 15, 40].flatMap((latencyMs) => repeat(25, () => latencyMs));
    expect(compositeStability({ arrivals: 100, completionLatenciesMs: latencies })).toMatchObject({ level: 'STABLE', score: 0 });
  });

  it('sees no trend in fewer than 20 completions', () => {
    const run = (count: number) =>
      compositeStability({ arrivals: count, completionLatenciesMs: repeat(count, (index) => 1 + index) }).level;
    expect([run(19), run(20)]).toEqual(['STABLE', 'OVERLOADED']);
  });

  it('gives the last quarter what does not divide by four', () => {
    // Without the last two, the last quarter would be below the third. Halves: 108 and 150 in sum, 11 each.
    const tail = [8, 8, 8, 8, 8, 30, 30];
    const completionLatenciesMs = [...repeat(5, () => 9), ...repeat(5, () => 10), 13, ...repeat(4, () => 12.5), ...tail];
    const { score, level } = compositeStability({ arrivals: 22, completionLatenciesMs });
    expect(score).toBeCloseTo((150 - 108) / 108, 12);
    expect(level).toBe('OVERLOADED');
  });
});

describe('thresholdStability', () => {
  it('says nothing of no latencies', () => {
    expect(thresholdStability([])).toEqual({ level: 'STABLE', score: 0, confidence: 0 });
  });

  it('is overloaded from the threshold on', () => {
    expect(thresholdStability([99, 100], { thresholdMs: 100 }).level).toBe('STABLE');
    expect(thresholdStability([100, 100], { thresholdMs: 100 })).toMatchObject({ level: 'OVERLOADED', score: 0.75 });
    expect(thresholdStability([1e6], { thresholdMs: 100 }).score).toBe(1);
  });

  it('grows more confident with every latency', () => {
    expect(thresholdStability([1, 1, 1]).confidence).toBe(0.5);
    expect(thresholdStability(repeat(99, () => 1)).confidence).toBeCloseTo(0.9, 12);
  });

  it.each([0, -1, Number.NaN])('has no threshold of %d', (thresholdMs) => {
    expect(() => thresholdStability([1], { thresholdMs })).toThrow(FlowConfigError);
  });
});

describe('backlogDriftStability', () => {
  /** Every second `arrive` requests come and `leave` leave. */
  function run(seconds: number, arrive: number, leave: number) {
    const each = (count: number, offsetMs: number) => repeat(seconds * count, (index) => Math.floor(index / count) * 1000 + offsetMs);
    return backlogDriftStability({ arrivalsAtMs: each(arrive, 100), completionsAtMs: each(leave, 900), bucketMs: 1000 });
  }

  it('says nothing of no arrivals', () => {
    expect(backlogDriftStability({ arrivalsAtMs: [], completionsAtMs: [5] })).toEqual({ level: 'STABLE', score: 0, confidence: 0 });
  });

  it('is stable while as many leave as come', () => {
    expect(run(10, 5, 5)).toEqual({ level: 'STABLE', score: 0, confidence: 1 });
  });

  it('is overloaded when every second leaves requests behind', () => {
    expect(run(25, 4, 2)).toEqual({ level: 'OVERLOADED', score: 1, confidence: 1 });
  });

  it('is stable while a backlog drains', () => {
    const arrivalsAtMs = repeat(100, () => 0);
    const completionsAtMs = repeat(100, (index) => index * 100);
    expect(backlogDriftStability({ arrivalsAtMs, completionsAtMs, bucketMs: 1000 })).toMatchObject({ level: 'STABLE', score: 0 });
  });

  it('is backlogged between once and three times the noise floor', () => {
    // In flight at the ends of five buckets: 0 0 0 0 1. Slope 2/10; 144 arrivals make a noise floor of 1/12.
    const arrivalsAtMs = [...repeat(143, () => 0), 4000];
    const last = backlogDriftStability({ arrivalsAtMs, completionsAtMs: repeat(143, () => 500), bucketMs: 1000 });
    expect(last.score).toBeCloseTo(0.8, 12);
    expect(last.level).toBe('BACKLOGGED');
  });

  it('repeats what is in flight over buckets in which nothing happens', () => {
    // In flight at the ends: 1 1 1 1 2. Slope (−2·1 −1·1 +0 +1·1 +2·2) / 10 = 0.2; floor 1/√2.
    const { score, level, confidence } = backlogDriftStability({ arrivalsAtMs: [0, 4000], completionsAtMs: [], bucketMs: 1000 });
    expect(score).toBeCloseTo(0.2 / (3 / Math.SQRT2), 12);
    expect([level, confidence]).toEqual(['STABLE', 0.1]);
  });

  it('takes events in any order, and a run that begins at any instant', () => {
    const arrivalsAtMs = [70_100, 73_000, 71_000, 72_000];
    const early = arrivalsAtMs.map((atMs) => atMs - 70_000).sort((a, b) => a - b);
    expect(backlogDriftStability({ arrivalsAtMs, completionsAtMs: [], bucketMs: 1000 })).toEqual(
      backlogDriftStability({ arrivalsAtMs: early, completionsAtMs: [], bucketMs: 1000 }),
    );
  });

  it('has buckets of a minute unless told otherwise', () => {
    expect(backlogDriftStability({ arrivalsAtMs: repeat(100, (i) => i * 500), completionsAtMs: [] }).score).toBe(0);
    expect(backlogDriftStability({ arrivalsAtMs: repeat(100, (i) => i * 5000), completionsAtMs: [] }).score).toBe(1);
  });

  it('has no buckets without width', () => {
    expect(() => backlogDriftStability({ arrivalsAtMs: [1], completionsAtMs: [], bucketMs: 0 })).toThrow(FlowConfigError);
  });
});
