/** Measures by name, conditions, paths into scenarios, grids and bisection. */
import { describe, expect, it } from 'vitest';
import {
  combinations,
  findValue,
  htmlReport,
  parseConditions,
  parseMeasure,
  parseSweepAxis,
  resultTable,
  scenarioValue,
  withScenarioValue,
  worstMiss,
} from '../../src/simulator/index.js';
import { queueing, simulate } from './support.js';

const result = simulate(queueing(2, 0.5, 2000));

describe('a measure', () => {
  it('is read by name, of all requests, a class or a tenant', () => {
    expect(parseMeasure('queued.p99').read(result)).toBe(result.all.queued.p99Ms);
    expect(parseMeasure('ttft(a)').read(result)).toBe(result.tenants.a!.ttft.meanMs);
    expect(parseMeasure('completed(priority 0)').read(result)).toBe(result.classes['priority 0']!.completed);
    expect(parseMeasure('completed(nobody)').read(result)).toBeNaN();
  });

  it('that does not exist is an error that lists those that do', () => {
    expect(() => parseMeasure('tfft.p99')).toThrow(/ttft\.p99.*got "tfft\.p99"/);
    expect(() => parseConditions('goodput is high')).toThrow(/ttft\.p99\(premium\) < 1s/);
  });
});

describe('a condition', () => {
  it('understands times, percent and several conditions', () => {
    const conditions = parseConditions('queued.p99 < 1m and goodput >= 50%');
    expect(conditions.map(({ threshold }) => threshold)).toEqual([60_000, 0.5]);
    expect(worstMiss(conditions, [result])).toBeLessThanOrEqual(0);
    expect(worstMiss(parseConditions('completed < 1'), [result])).toBeGreaterThan(0);
    expect(worstMiss(parseConditions('ttft.p99(nobody) < 1s'), [result])).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('a path', () => {
  const source = {
    servers: [{ name: 'gpu', slots: 2 }],
    traffic: [{ tenant: 'chat', arrivals: { rate: 1 } }],
    plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency: 4 } }],
    saturationDetector: { pluginRef: 'concurrency-detector' },
  };

  it('means entries of lists by index or name, and the gate', () => {
    expect(withScenarioValue(source, 'servers[gpu].slots', 5)).toMatchObject({ servers: [{ name: 'gpu', slots: 5 }] });
    expect(withScenarioValue(source, 'traffic[0].arrivals.rate', 9)).toMatchObject({
      traffic: [{ arrivals: { rate: 9 } }],
    });
    expect(scenarioValue(withScenarioValue(source, 'gate.maxConcurrency', 8), 'gate.maxConcurrency')).toBe(8);
    expect(source.servers[0]!.slots).toBe(2);
  });

  it('that leads nowhere is an error', () => {
    expect(() => withScenarioValue(source, 'servers[tpu].slots', 5)).toThrow('leads nowhere');
  });
});

describe('a grid', () => {
  it('is every combination, the last axis first', () => {
    expect(parseSweepAxis('a.b=1..7/3')).toEqual({ path: 'a.b', values: [1, 4, 7] });
    expect(combinations([parseSweepAxis('a=1,x'), parseSweepAxis('b=2,3')])).toEqual([
      [1, 2],
      [1, 3],
      ['x', 2],
      ['x', 3],
    ]);
    expect(() => parseSweepAxis('a')).toThrow('path=value');
  });
});

describe('findValue', () => {
  const among = (least: number, greatest: number) => (value: number) => Math.max(least - value, value - greatest) / 10;

  it('finds both ends of the range that will do', () => {
    const found = findValue({ from: 1, to: 1024, isInteger: true, miss: among(37, 301) });
    expect(found).toMatchObject({ least: 37, greatest: 301 });
    expect(found.curve.length).toBeLessThan(40);
  });

  it('finds a range that no point of the first grid is in', () => {
    expect(findValue({ from: 1, to: 1024, isInteger: true, miss: among(50, 52) })).toMatchObject({
      least: 50,
      greatest: 52,
    });
  });

  it('says what came closest when nothing will do', () => {
    const { least, closest } = findValue({
      from: 1,
      to: 100,
      isInteger: true,
      miss: (value) => 0.5 + Math.abs(value - 20),
    });
    expect(least).toBeUndefined();
    expect(closest).toEqual({ value: 20, miss: 0.5 });
  });
});

describe('a report', () => {
  it('is one page that asks for nothing else, the same for the same result', () => {
    const page = htmlReport([result, { ...result, name: '<script>' }]);
    expect(page).toBe(htmlReport([result, { ...result, name: '<script>' }]));
    expect(page).not.toMatch(/<script|https?:|src=/);
    expect(page.match(/<svg/g)).toHaveLength(12);
  });

  it('has a line for each class in the terminal', () => {
    expect(resultTable(result)).toContain('class priority 0');
  });
});
