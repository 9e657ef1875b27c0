/** Logs whose columns have other names, in any order, with lines of requests that got no answer. */
import { describe, expect, it } from 'vitest';
import { loadScenario, readTrace, scenarioFromTrace, simulate } from '../../../src/simulator/index.js';

const jsonl = (...lines: object[]): string => lines.map((line) => JSON.stringify(line)).join('\n');

describe('a log of others', () => {
  it('of nginx, written at the end of each request, is read by the names that its columns are given', () => {
    const log = jsonl(
      { time: '2026-03-01T10:00:02+01:00', request_time: '1.500', user: 'b', status: '200' },
      { time: '2026-03-01T10:00:02,250+0100', request_time: '2.000', user: '-', status: '200' },
      { time: '2026-03-01T09:00:03Z', request_time: '0.010', user: 'b', status: '429' },
    );
    const columns = { time: 'endedAt', request_time: 'totalSeconds', user: 'tenant', status: 'status' };
    const { rows, unanswered, format } = readTrace(log, { columns });
    expect(format).toBe('mapped columns');
    expect(unanswered).toBe(1);
    expect(rows).toEqual([
      { arrivalMs: 0, tenant: undefined, totalMs: 2000 },
      { arrivalMs: 250, tenant: 'b', totalMs: 1500 },
    ]);
    // Without first tokens each request takes as long as it took, on as many slots as were taken at once.
    expect(scenarioFromTrace(rows)).toMatchObject({ servers: [{ model: 'slots', slots: 2 }] });
    const { all } = simulate(loadScenario(scenarioFromTrace(rows)).options);
    expect([all.completed, all.total.maxMs]).toEqual([2, 2000]);
  });

  it('of LiteLLM has its instants and the tokens of an object', () => {
    const log = jsonl(
      {
        startTime: 1767225600.5,
        completionStartTime: 1767225600.75,
        endTime: 1767225602.5,
        usage: { prompt_tokens: 12, completion_tokens: 30 },
      },
      {
        startTime: 1767225600,
        completionStartTime: 1767225600.25,
        endTime: 1767225601,
        usage: { prompt_tokens: 5, completion_tokens: 0 },
      },
    );
    const columns = {
      startTime: 'arrivedAt',
      completionStartTime: 'firstTokenAt',
      endTime: 'endedAt',
      'usage.prompt_tokens': 'promptTokens',
      'usage.completion_tokens': 'outputTokens',
    };
    expect(readTrace(log, { columns })).toMatchObject({
      unanswered: 1,
      rows: [{ arrivalMs: 0, ttftMs: 250, totalMs: 2000, promptTokens: 12, outputTokens: 30 }],
    });
  });

  it('in CSV is in order of arrivals, and columns of our names need no mapping', () => {
    const log = 'start,promptTokens,output_tokens,other\n2026-01-01 00:00:01Z,5,6,x\n2026-01-01 00:00:00Z,7,8,x\n';
    expect(readTrace(log, { columns: { start: 'arrivedAt' } }).rows).toMatchObject([
      { arrivalMs: 0, promptTokens: 7, outputTokens: 8 },
      { arrivalMs: 1000, promptTokens: 5, outputTokens: 6 },
    ]);
  });

  it.each([
    [
      'a name that we do not have',
      { t: 'arivedAt' },
      /columns: t: expected one of arrivalMs, .*did you mean "arrivedAt".*got "arivedAt"/s,
    ],
    [
      'a name that every object has',
      { t: 'constructor' },
      /columns: t: expected one of arrivalMs, .*got "constructor"/s,
    ],
    [
      'a column that never comes',
      { t: 'arrivedAt', tt: 'totalMs' },
      /expected one of the columns of the log, t, x.*got "tt"/s,
    ],
    [
      'an end before the arrival',
      { t: 'arrivedAt', x: 'endedAt' },
      /line 1: expected an end after the arrival; got "-1000 ms"/,
    ],
    [
      'an end and no time',
      { t: 'endedAt' },
      /line 1: expected an arrival time, or a total time beside the end; got a hole/,
    ],
  ])('with %s is an error', (_, columns, message) => {
    expect(() => readTrace(jsonl({ t: 2e9, x: 2e9 - 1 }), { columns: columns as Record<string, string> })).toThrow(
      message,
    );
  });

  it('may be the file of a scenario’s traffic', () => {
    const scenario = `duration: 10s
servers: [{ model: slots, slots: 1, serviceTime: 10ms }]
traffic: [{ arrivals: { type: trace, file: log.csv, columns: { at: arrivedAt } } }]
saturationDetector: { pluginRef: c }
plugins: [{ type: concurrency-detector, name: c }]
`;
    const readFile = (): string => 'at,outputTokens\n2026-01-01T00:00:00Z,1\n';
    expect(simulate(loadScenario(scenario, { readFile }).options).counts.completed).toBe(1);
  });
});

describe('a hostile log', () => {
  const native = (line: string): string => `arrivalMs,promptTokens,outputTokens\n${line}\n`;

  it.each([
    ['an empty file', '', 'line 1: expected a request for each line; got none'],
    ['blank lines', '\n\n\n', 'line 1: expected a request for each line; got none'],
    ['a head alone', 'arrivalMs,promptTokens\n', 'line 1: expected a request for each line; got none'],
    ['a time beyond all traces', native('1e300,1,1'), 'line 2: expected a time from 0 to 1e10 ms; got "1e300"'],
    [
      'an instant as a time',
      native('1767225600000,1,1'),
      'line 2: expected a time from 0 to 1e10 ms; got "1767225600000"',
    ],
    [
      'tokens without end',
      native('0,1,1e308'),
      'line 2: expected a number from 0 to 1e10 of output tokens; got "1e308"',
    ],
    [
      'a negative duration',
      'arrivalMs,serviceMs\n0,-5\n',
      'line 2: expected a number from 0 to 1e10 of service time; got "-5"',
    ],
    ['infinity', native('Infinity,1,1'), 'line 2: expected a time from 0 to 1e10 ms; got "Infinity"'],
    ['a list as a number', '{"arrivalMs":[0],"outputTokens":1}', 'line 1: expected a time from 0 to 1e10 ms; got [0]'],
    [
      'one instant of another century',
      'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 00:00:00,1,1\n2999-01-01 00:00:00,1,1\n',
      'line 3: expected an instant within 115 days of that of the first line; got "2999-01-01 00:00:00"',
    ],
    [
      'drops alone',
      jsonl({ time: '2026-01-01T00:00:00Z', event: 'request', status: 429, durationMs: 3, queuedMs: 3 }),
      'line 1: expected a request for each line; got 1 requests without an answer',
    ],
  ])('with %s says what is wrong', (_, text, fault) => {
    expect(() => readTrace(text)).toThrow(fault);
  });

  it('of one line is simulated where it has what servers need', () => {
    const { rows } = readTrace('arrivalMs,totalMs\n0,100\n');
    expect(simulate(loadScenario(scenarioFromTrace(rows)).options).all.total.maxMs).toBe(100);
    expect(() => scenarioFromTrace(readTrace(native('0,1,1')).rows)).toThrow('0 requests with both');
  });

  it('with one answer of days is simulated to its end', () => {
    const { rows } = readTrace('arrivalMs,totalMs\n0,1e9\n5,3\n');
    expect(simulate(loadScenario(scenarioFromTrace(rows)).options).all.completed).toBe(2);
  });

  it('of many lines is calibrated by without comparing each with each', () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => ({
      time: new Date(Date.UTC(2026, 0, 1) + index * 20).toISOString(),
      event: 'request',
      ttftMs: 40 + (index % 7),
      durationMs: 400 + (index % 90),
      promptTokens: 100 + (index % 50),
      completionTokens: 20 + (index % 5),
    }));
    const { rows } = readTrace(jsonl(...lines));
    expect(scenarioFromTrace(rows)).toMatchObject({ servers: [{ model: 'continuous-batching' }] });
  });
});
