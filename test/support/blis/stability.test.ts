import { describe, expect, it } from 'vitest';
import { FlowConfigError } from '../../../src/index.js';
import { compositeStability } from './composite-stability.js';
import { thresholdStability } from './threshold-stability.js';

function repeat(count: number, value: (index: number) => number): number[] {
  return Array.from({ length: count }, (_, index) => value(index));
}

describe('compositeStability', () => {
  it('says nothing of no arrivals', () => {
    expect(compositeStability({ arrivals: 0, completionLatenciesMs: [] })).toEqual({
      level: 'STABLE',
      score: 0,
      confidence: 0,
    });
  });

  it('reads a part of the work that was left undone as a backlog', () => {
    const run = (completed: number) =>
      compositeStability({ arrivals: 100, completionLatenciesMs: repeat(completed, () => 10) });
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
    expect(compositeStability({ arrivals: 100, completionLatenciesMs: latencies })).toMatchObject({
      level: 'STABLE',
      score: 0,
    });
  });

  it('sees no trend in fewer than 20 completions', () => {
    const run = (count: number) =>
      compositeStability({ arrivals: count, completionLatenciesMs: repeat(count, (index) => 1 + index) }).level;
    expect([run(19), run(20)]).toEqual(['STABLE', 'OVERLOADED']);
  });

  it('gives the last quarter what does not divide by four', () => {
    // Without the last two, the last quarter would be below the third. Halves: 108 and 150 in sum, 11 each.
    const tail = [8, 8, 8, 8, 8, 30, 30];
    const completionLatenciesMs = [
      ...repeat(5, () => 9),
      ...repeat(5, () => 10),
      13,
      ...repeat(4, () => 12.5),
      ...tail,
    ];
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
