/** Wrong scenarios and wrong traces: every fault is told, with its place. */
import { describe, expect, it } from 'vitest';
import { concurrencyDetector, FlowConfigError } from '../../src/index.js';
import { loadScenario, readTrace, simulate } from '../../src/simulator/index.js';

function faultsOf(action: () => unknown): string[] {
  try {
    action();
  } catch (error) {
    if (error instanceof FlowConfigError)
      return error.issues.map(({ path, expected, got }) => `${path}: expected ${expected}; got ${got}`);
    throw error;
  }
  return [];
}

describe('a scenario', () => {
  it('with faults lists all of them, with line and column', () => {
    const text = `duration: 0s
servers:
  - model: slot
  - model: slots
    slots: 0
trafic: []
traffic:
  - arrivals: { type: poisson, rate: -1 }
    promptTokens: { type: lognormal, mean: 10 }
plugins:
  - type: concurrency-detector
    parameters: { maxConcurency: 3 }
saturationDetector: { pluginRef: concurrency-detector }
`;
    const faults = faultsOf(() => loadScenario(text));
    expect(faults.map((fault) => fault.split(': expected')[0])).toEqual([
      'line 6, column 1: trafic',
      'line 1, column 11: duration',
      'line 3, column 12: servers[0].model',
      'line 5, column 12: servers[1].slots',
      'line 8, column 38: traffic[0].arrivals.rate',
      'line 9, column 19: traffic[0].promptTokens.sigma',
      'line 4, column 5: servers[1].name',
      'line 12, column 34: plugins[0].parameters.maxConcurency',
    ]);
    expect(faults[0]).toContain('traffic');
    expect(faults[7]).toContain('maxConcurrency');
  });

  it('that is no YAML says where', () => {
    expect(faultsOf(() => loadScenario('duration: [1\nservers: x'))[0]).toMatch(
      /^line \d+, column \d+: expected valid YAML/,
    );
  });

  it('names the lines of a trace that are wrong, and goes on only where told to', () => {
    const scenario = `duration: 10s
servers: [{ model: slots, slots: 1, serviceTime: 10ms }]
traffic: [{ arrivals: { type: trace, file: trace.csv } }]
saturationDetector: { pluginRef: c }
plugins: [{ type: concurrency-detector, name: c }]
`;
    const readFile = (): string => 'arrival,promptTokens,outputTokens\n0,1,1\n-1,1,1\n2,1,1\n';
    expect(faultsOf(() => loadScenario(scenario, { readFile }))).toEqual([
      'trace.csv, line 3: expected a time from 0 to 1e10 ms; got "-1"',
    ]);
    const { options, warnings } = loadScenario(scenario, { readFile, skipBadLines: true });
    expect(warnings).toEqual([
      'trace.csv: 1 line was left out. Its faults: line 3: expected a time from 0 to 1e10 ms; got "-1"',
    ]);
    expect(simulate(options).counts.completed).toBe(2);
  });

  it('whose traffic never ends stops at its horizon', () => {
    const { counts, endedAtMs, isCutShort } = simulate({
      duration: '5s',
      drain: '1s',
      servers: [{ model: 'slots', slots: 1, serviceTime: 100 }],
      traffic: [{ arrivals: { type: 'closed-loop', threads: 50 } }],
      flow: { saturationDetector: () => 2, defaultRequestTtl: 0 },
    });
    expect(counts).toMatchObject({ requests: 50, dispatched: 0, waiting: 50 });
    expect(endedAtMs).toBe(6000);
    expect(isCutShort).toBe(true);
  });
});

it('threads that are rejected at once send again after a millisecond, so that the run ends', () => {
  const { counts, endedAtMs } = simulate({
    duration: '1s',
    servers: [{ model: 'slots', slots: 1, serviceTime: 100 }],
    traffic: [{ arrivals: { type: 'closed-loop', threads: 2 } }],
    flow: { saturationDetector: concurrencyDetector({ maxConcurrency: 1 }), limits: { maxRequests: 0 } },
  });
  expect(counts).toMatchObject({ requests: 2000, completed: 0 });
  expect(endedAtMs).toBe(999);
});

describe('a trace', () => {
  it('may have the columns of Azure, BurstGPT, Mooncake and of the gateway’s log', () => {
    const azure =
      'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,374,44\n2023-11-16 18:17:04.0319600,396,109\n';
    expect(readTrace(azure).rows).toMatchObject([
      { arrivalMs: 0, promptTokens: 374, outputTokens: 44 },
      { promptTokens: 396, outputTokens: 109 },
    ]);
    expect(readTrace(azure).rows[1]!.arrivalMs).toBeCloseTo(52, 3);
    const burst =
      'Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n';
    expect(readTrace(burst).rows).toEqual([{ arrivalMs: 5000, promptTokens: 472, outputTokens: 18 }]);
    const mooncake = '{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}\n';
    expect(readTrace(mooncake)).toMatchObject({
      format: 'Mooncake',
      rows: [{ arrivalMs: 27482, promptTokens: 6955, outputTokens: 52 }],
    });
    const log = [
      '{"time":"2026-01-01T00:00:00.000Z","level":"info","event":"listening","url":"http://127.0.0.1:1"}',
      '{"time":"2026-01-01T00:00:03.000Z","level":"info","event":"request","tenant":"b","priority":0,"promptTokens":9,"completionTokens":4,"ttftMs":100,"durationMs":1000}',
      '{"time":"2026-01-01T00:00:04.000Z","level":"info","event":"request","tenant":"a","priority":5,"promptTokens":7,"completionTokens":3,"ttftMs":50,"durationMs":3000}',
    ].join('\n');
    expect(readTrace(log).rows).toEqual([
      { arrivalMs: 0, tenant: 'a', priority: 5, promptTokens: 7, outputTokens: 3, ttftMs: 50, totalMs: 3000 },
      { arrivalMs: 1000, tenant: 'b', priority: 0, promptTokens: 9, outputTokens: 4, ttftMs: 100, totalMs: 1000 },
    ]);
  });

  it.each([
    ['a hole', 'arrival,promptTokens,outputTokens\n,1,1\n', 'line 2: expected an arrival time; got a hole'],
    [
      'a hole among its tokens',
      'arrival,promptTokens,outputTokens\n0,5,\n',
      'line 2: expected a number from 0 to 1e10 of output tokens; got a hole',
    ],
    [
      'a key that one line lacks',
      '{"arrival":0,"promptTokens":1}\n{"arrival":1,"promptTokens":1,"outputTokens":2}\n',
      'line 1: expected a number from 0 to 1e10 of output tokens; got a hole',
    ],
    [
      'no integer as priority',
      'arrival,serviceMs,priority\n0,5,high\n',
      'line 2: expected an integer as priority; got "high"',
    ],
    [
      'a negative time',
      'arrival,promptTokens,outputTokens\n-3,1,1\n',
      'line 2: expected a time from 0 to 1e10 ms; got "-3"',
    ],
    [
      'a time that goes back',
      'arrival,promptTokens,outputTokens\n2,1,1\n1,1,1\n',
      'line 3: expected a time that is not before that of the line before; got "1"',
    ],
    [
      'no number',
      'arrival,promptTokens,outputTokens\n1,x,1\n',
      'line 2: expected a number from 0 to 1e10 of prompt tokens; got "x"',
    ],
    [
      'a short line',
      'arrival,promptTokens,outputTokens\n1,2\n',
      'line 2: expected an object of JSON, or as many columns as the head has; got something else',
    ],
    [
      'no JSON',
      '{"arrival":1,"promptTokens":1}\n{nonsense\n',
      'line 2: expected an object of JSON, or as many columns as the head has; got something else',
    ],
  ])('with %s says which line', (_, text, fault) => {
    expect(faultsOf(() => readTrace(text))).toEqual([fault]);
  });

  it('with an unknown column says which', () => {
    expect(faultsOf(() => readTrace('arrival,promptTokens,colour\n1,2,red\n'))[0]).toMatch(
      /^line 1: expected one of the columns arrivalMs, arrival, .*; got "colour"$/,
    );
    const json = '{"arrival":0,"outputTokens":1}\n{"arrival":0,"outputTokens":1,"colour":"red"}\n';
    expect(faultsOf(() => readTrace(json))[0]).toMatch(/^line 2: expected one of the columns .*; got "colour"$/);
  });

  it('may leave tenant and priority empty: they are the default then', () => {
    expect(readTrace('arrival,outputTokens,tenant,priority\n0,1,,\n').rows).toEqual([
      { arrivalMs: 0, outputTokens: 1 },
    ]);
  });

  it('leaves wrong lines out where told to, and counts them', () => {
    const { rows, skippedLines, warnings } = readTrace('arrival,outputTokens\n0,1\nx,1\n1,1\n', { skipBadLines: true });
    expect(rows.map(({ arrivalMs }) => arrivalMs)).toEqual([0, 1000]);
    expect(skippedLines).toBe(1);
    expect(warnings).toEqual(['line 3: expected a time from 0 to 1e10 ms; got "x"']);
  });
});
