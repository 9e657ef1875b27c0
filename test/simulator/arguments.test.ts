/** Every function of `headgate/simulator` that programs may call, called with nonsense. */
import { describe, expect, it } from 'vitest';
import { concurrencyDetector, FlowConfigError } from '../../src/index.js';
import type * as parts from '../../src/simulator/command-parts.js';
import * as simulator from '../../src/simulator/index.js';

const options: simulator.SimulationOptions = {
  duration: '1s',
  servers: [{ model: 'slots', slots: 1 }],
  traffic: [{ arrivals: { type: 'poisson', rate: 5 } }],
  flow: () => ({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) }),
};
const result = simulator.simulate(options);
const rows = [{ arrivalMs: 0 }];

type Functions = {
  [Name in keyof typeof simulator]: (typeof simulator)[Name] extends (...given: never) => unknown ? Name : never;
};
/** What takes arguments. */
type Called = Exclude<Functions[keyof typeof simulator], keyof typeof parts>;

/** Arguments that are right, by function; one at a time is replaced by nonsense. */
const right: Record<Called, readonly unknown[]> = {
  calibrate: [rows, {}],
  heldAgainstLog: [result, rows],
  loadScenario: [
    'duration: 1s\nservers: [{ model: slots, slots: 1 }]\ntraffic: [{ arrivals: { type: poisson, rate: 5 } }]',
    {},
  ],
  readTrace: ['arrivalMs,serviceMs\n1,5', {}],
  scenarioFromTrace: [[...Array(30).keys()].map((index) => ({ arrivalMs: index * 100, ttftMs: 50, totalMs: 250 + (index % 7) * 10, promptTokens: 10 + index, outputTokens: 20 + (index % 5) })), {}], // biome-ignore format: one row
  serverRoomDetector: [],
  serviceDifference: [result.requests ?? [], {}],
  simulate: [options, {}],
  simulateSeeds: [options, 1, {}],
};

const nonsense: readonly unknown[] = [
  undefined, null, Number.NaN, 7, -1, Number.POSITIVE_INFINITY, '', 'x', true, {}, [], [null], { unknownKey: 1 }, () => 1,
]; // biome-ignore format: one list

/** What may stand in each place and is right all the same. */
const allowed: Partial<Record<Called, readonly (readonly unknown[])[]>> = {
  calibrate: [[[]]],
  heldAgainstLog: [[], [[]]],
  serviceDifference: [[[]]],
  simulateSeeds: [[], [7]],
};

function call(name: Called, given: readonly unknown[]): unknown {
  const called: unknown = Reflect.get(simulator, name);
  return (called as (...given: unknown[]) => unknown)(...given);
}

function isAllowed(name: Called, place: number, value: unknown): boolean {
  const isOption = place > 0 && typeof right[name][place] === 'object' && !Array.isArray(right[name][place]);
  if (isOption && (value === undefined || JSON.stringify(value) === '{}')) return true;
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
  expect(() => simulator.simulateSeeds(options, 1.5)).toThrow('simulateSeeds: seeds: expected');
});
