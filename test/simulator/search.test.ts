/** Measures by name, conditions, paths into scenarios, grids and bisection. */
import { describe, expect, it } from 'vitest';
import {
  combinations,
  comparisonTable,
  failuresOf,
  findValue,
  htmlReport,
  parseConditions,
  parseMeasure,
  parseSweepAxis,
  resultTable,
  scenarioValue,
  withScenarioValue,
  withServedDefault,
  worstMiss,
} from '../../src/simulator/index.js';
import { queueing, simulate, starved } from './support.js';

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

describe('a condition on nobody', () => {
  it('fails, and says so, whichever figure it is on', () => {
    for (const measure of ['ttft.p99', 'total', 'queued.max', 'perToken.p50', 'jain', 'serviceDifference.max']) {
      const conditions = parseConditions(`${measure} <= 1000000 and dropped >= 1`);
      expect(worstMiss(conditions, [starved]), measure).toBe(Number.POSITIVE_INFINITY);
      expect(failuresOf(conditions, [starved])).toEqual([`${measure} of nobody`]);
    }
    const withoutTraffic = simulate({ ...queueing(1, 0.001, 1), duration: 10 });
    expect(parseMeasure('arrived').read(withoutTraffic)).toBe(0);
    for (const ratio of ['goodput', 'served']) expect(parseMeasure(ratio).read(withoutTraffic), ratio).toBeNaN();
  });

  it('comes with the condition that 95 % are served, of all and of each that is named', () => {
    const texts = (text: string): string[] => withServedDefault(parseConditions(text)).map((each) => each.text);
    expect(texts('ttft.p99(chat) < 1s and total.p99(chat) < 9s')).toEqual([
      'ttft.p99(chat) < 1s',
      'total.p99(chat) < 9s',
      'served(chat) >= 95%',
      'served >= 95%',
    ]);
    expect(texts('ttft.p99 < 1s and served > 0.5')).toEqual(['ttft.p99 < 1s', 'served > 0.5']);
    expect(worstMiss(parseConditions('served >= 95%'), [starved])).toBe(1);
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

  it('tells the longest range without a hole, and the others apart from it', () => {
    const holds = (value: number): boolean => value <= 2 || (value >= 5 && value <= 70);
    const found = findValue({ from: 1, to: 100, isInteger: true, miss: (value) => (holds(value) ? -1 : 1) });
    expect(found).toMatchObject({ least: 5, greatest: 70, others: [{ least: 1, greatest: 2 }] });
    const between = found.curve.filter(({ value }) => value >= 5 && value <= 70);
    expect(between.every(({ miss }) => miss <= 0)).toBe(true);
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

  it('has a dash in place of each figure of nobody, and null in JSON', () => {
    expect(resultTable(starved)).toMatch(/^all +\d+ +0 .* 0\.0 % +– +– +– +– +0$/m);
    expect(resultTable(starved)).toContain('Jain index of service: –.');
    expect(resultTable(starved)).toContain('Service difference: – at most, – on average.');
    expect(resultTable(starved)).not.toContain('NaN');
    expect(comparisonTable([{ name: 'a', results: [starved] }])).toMatch(/^ttft\.p99\(priority 0\) +–$/m);
    const page = htmlReport([starved]);
    expect(page).toContain('<td>–</td>');
    expect(page).not.toContain('NaN');
    expect(JSON.parse(JSON.stringify(starved))).toMatchObject({
      all: { ttft: { count: 0, p99Ms: null, meanMs: null, maxMs: null }, served: 0, goodput: 0 },
      jainIndex: null,
    });
  });

  it('draws no first token where none came', () => {
    const { ttftP50ByClass } = simulate({ ...queueing(2, 0.001, 20), bucket: '5s' }).series;
    const course = Object.values(ttftP50ByClass)[0]!;
    expect(course.some(Number.isNaN)).toBe(true);
    expect(course).not.toContain(0);
  });

  it('has a line for each class in the terminal', () => {
    expect(resultTable(result)).toContain('class priority 0');
  });
});
