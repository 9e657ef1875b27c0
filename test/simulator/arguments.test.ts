/** Every function of `headgate/simulator`, called with nonsense. */
import { describe, expect, it } from 'vitest';
import { concurrencyDetector, FlowConfigError } from '../../src/index.js';
import * as simulator from '../../src/simulator/index.js';

const options: simulator.SimulationOptions = {
  duration: '1s',
  servers: [{ model: 'slots', slots: 1 }],
  traffic: [{ arrivals: { type: 'poisson', rate: 5 } }],
  flow: () => ({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) }),
};
const result = simulator.simulate(options);
const measure = simulator.parseMeasure('goodput');
const conditions = simulator.parseConditions('goodput > 1');
const held = { name: 'TTFT p50', measuredMs: 2, predictedMs: 1, error: -0.5 };
const rows = [{ arrivalMs: 0 }];
const range = { from: 1, to: 2, isInteger: true, miss: () => 0 };

type Functions = {
  [Name in keyof typeof simulator]: (typeof simulator)[Name] extends (...given: never) => unknown ? Name : never;
};
/** What takes arguments. */
type Called = Exclude<Functions[keyof typeof simulator], 'scenarioFileTable' | 'withTraceFiles'>;

/** Arguments that are right, by function; one at a time is replaced by nonsense. */
const right: Record<Called, readonly unknown[]> = {
  calibrate: [rows, {}],
  combinations: [[{ path: 'a', values: [1] }]],
  comparisonTable: [[{ name: 'a', results: [result] }]],
  distrust: [[held]],
  failuresOf: [conditions, [result]],
  findValue: [range],
  formatFigure: [1, 'ms'],
  heldAgainstLog: [result, rows],
  heldTable: [[held]],
  htmlReport: [[result], 'a title'],
  leftOut: [simulator.readTrace('arrivalMs,serviceMs\n1,5')],
  loadScenario: [
    'duration: 1s\nservers: [{ model: slots, slots: 1 }]\ntraffic: [{ arrivals: { type: poisson, rate: 5 } }]',
    {},
  ],
  maxMinShares: [[1, 2], 2],
  parseConditions: ['goodput > 1'],
  parseMeasure: ['goodput'],
  parseSweepAxis: ['a=1'],
  readTrace: ['arrivalMs,serviceMs\n1,5', {}],
  resultTable: [result],
  scenarioFromTrace: [[...Array(30).keys()].map((index) => ({ arrivalMs: index * 100, ttftMs: 50, totalMs: 250 + (index % 7) * 10, promptTokens: 10 + index, outputTokens: 20 + (index % 5) })), {}], // biome-ignore format: one row
  scenarioValue: [{ a: 1 }, 'a'],
  serverRoomDetector: [],
  serviceDifference: [result.requests ?? [], {}],
  simulate: [options, {}],
  simulateSeeds: [options, 1, {}],
  spreadOf: [measure, [result]],
  withScenarioValue: [{ a: 1 }, 'a', 2],
  withServedDefault: [conditions],
  worstMiss: [conditions, [result]],
};

const nonsense: readonly unknown[] = [
  undefined, null, Number.NaN, 7, -1, Number.POSITIVE_INFINITY, '', 'x', true, {}, [], [null], { unknownKey: 1 }, () => 1,
]; // biome-ignore format: one list

/** What may stand in each place and is right all the same. */
const allowed: Partial<Record<Called, readonly (readonly unknown[])[]>> = {
  formatFigure: [[Number.NaN, 7, -1, Number.POSITIVE_INFINITY], []],
  maxMinShares: [[[]], [7]],
  calibrate: [[[]]],
  combinations: [[[]]],
  comparisonTable: [[[]]],
  distrust: [[[]]],
  failuresOf: [[[]], [[]]],
  heldAgainstLog: [[], [[]]],
  heldTable: [[[]]],
  htmlReport: [[[]], ['', 'x']],
  serviceDifference: [[[]]],
  simulateSeeds: [[], [7]],
  withScenarioValue: [[{}, { unknownKey: 1 }], ['x'], nonsense],
  scenarioValue: [
    [{}, { unknownKey: 1 }],
    ['', 'x'],
  ],
  withServedDefault: [[[]]],
  worstMiss: [[[]]],
};

function call(name: Called, given: readonly unknown[]): unknown {
  const called: unknown = Reflect.get(simulator, name);
  return (called as (...given: unknown[]) => unknown)(...given);
}

function isAllowed(name: Called, place: number, value: unknown): boolean {
  const isOption = place > 0 && typeof right[name][place] === 'object' && !Array.isArray(right[name][place]);
  if (isOption && (value === undefined || JSON.stringify(value) === '{}')) return true;
  if (name === 'htmlReport' && place === 1 && value === undefined) return true;
  return (allowed[name]?.[place] ?? []).some(
    (ok) => Object.is(ok, value) || JSON.stringify(ok) === JSON.stringify(value),
  );
}

describe.each(Object.keys(right) as Called[])('%s', (name) => {
  it('takes what is right', () => {
    expect(() => call(name, right[name])).not.toThrow();
  });

  it('answers nonsense with a FlowConfigError', () => {
    const others: unknown[] = [];
    for (const [place] of right[name].entries()) {
      for (const value of nonsense) {
        if (isAllowed(name, place, value)) continue;
        const given = right[name].map((part, index) => (index === place ? value : part));
        try {
          call(name, given);
          others.push([place, value, 'nothing']);
        } catch (error) {
          if (!(error instanceof FlowConfigError)) others.push([place, value, String(error)]);
        }
      }
    }
    expect(others).toEqual([]);
  });
});

it('a wrong part of what is given is named by its path', () => {
  expect(() => simulator.simulate(options, { onProgress: 7 as never })).toThrow('simulate: onProgress: expected');
  expect(() => simulator.findValue({ ...range, from: Number.NaN })).toThrow('findValue: from: expected');
  expect(() => simulator.maxMinShares([1, Number.NaN], 2)).toThrow('maxMinShares: demands[1]: expected');
  expect(() => simulator.simulateSeeds(options, 1.5)).toThrow('simulateSeeds: seeds: expected');
});
