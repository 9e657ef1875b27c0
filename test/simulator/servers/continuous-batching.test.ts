import { describe, expect, it } from 'vitest';
import { concurrencyDetector } from '../../../src/index.js';
import {
  calibrate,
  distrust,
  heldAgainstLog,
  heldTable,
  loadScenario,
  type ServerSpec,
  scenarioFromTrace,
  simulate,
  type TraceRow,
} from '../../../src/simulator/index.js';

const server = { model: 'continuous-batching', stepMs: 10, decodeMs: 1, kvTokenMs: 0, prefillTokenMs: 0.1 } as const;
const run = (spec: ServerSpec, threads: number, promptTokens: number, outputTokens: number) =>
  simulate({
    duration: '60s',
    servers: [spec],
    traffic: [{ arrivals: { type: 'closed-loop', threads, requestsPerThread: 1 }, promptTokens, outputTokens }],
    keepRequests: true,
    flow: { saturationDetector: concurrencyDetector({ maxConcurrency: 1000 }) },
  });

describe('continuous batching', () => {
  it('takes a prefill step and one step for each further token', () => {
    const { requests } = run(server, 1, 100, 5);
    expect(requests![0]).toMatchObject({ firstTokenAtMs: 20, endedAtMs: 20 + 4 * 11 });
  });

  it('answers a prompt of no tokens as one of a single token', () => {
    const { requests, counts } = run(server, 1, 0, 3);
    expect(counts.completed).toBe(1);
    expect(requests![0]).toMatchObject({ firstTokenAtMs: 11, endedAtMs: 33 });
  });

  it('cuts a prompt into pieces of the budget of a step', () => {
    const { requests } = run({ ...server, maxBatchedTokens: 64 }, 1, 100, 1);
    expect(requests![0]!.firstTokenAtMs).toBeCloseTo(10 + 6.4 + 10 + 3.6, 6);
  });

  it('lets sequences of one instant share each step', () => {
    const { requests } = run(server, 3, 100, 2);
    expect(requests!.map(({ firstTokenAtMs }) => firstTokenAtMs)).toEqual([40, 40, 40]);
    expect(requests!.map(({ endedAtMs }) => endedAtMs)).toEqual([53, 53, 53]);
  });

  it('preempts the youngest when the cache is full, and serves all in the end', () => {
    const { servers, counts } = run({ ...server, kvTokens: 320 }, 4, 64, 100);
    expect(servers[0]!.preemptions).toBeGreaterThan(0);
    expect(servers[0]!.peakKvUsage).toBeLessThanOrEqual(1);
    expect(counts.completed).toBe(4);
  });

  it('tells how much of the cache was in use on average', () => {
    // One page of twenty while the prompt is computed, 11.6 ms, and two for the second token, 11 ms.
    const { meanKvUsage, peakKvUsage } = run({ ...server, kvTokens: 320 }, 1, 16, 2).servers[0]!;
    expect(meanKvUsage).toBeCloseTo((11.6 / 20 + (2 * 11) / 20) / 22.6, 9);
    expect(peakKvUsage).toBe(2 / 20);
  });

  it('takes no more sequences than it may', () => {
    expect(run({ ...server, maxSequences: 2 }, 6, 10, 50).servers[0]!.meanRunning).toBeLessThanOrEqual(2);
  });
});

/** A log, with times in whole ms as logs have them. */
function record(model: object, rate: number, maxConcurrency = 64) {
  return simulate({
    duration: '5m',
    servers: [{ model: 'continuous-batching', ...model }],
    traffic: [
      {
        tenant: 'a',
        arrivals: { type: 'gamma', rate, cv: 2 },
        promptTokens: { type: 'lognormal', mean: 400, sigma: 0.8 },
        outputTokens: { type: 'exponential', mean: 120 },
      },
    ],
    keepRequests: true,
    flow: { saturationDetector: concurrencyDetector({ maxConcurrency }) },
  });
}

function rowsOf({ requests }: ReturnType<typeof record>): TraceRow[] {
  return requests!
    .map(({ arrivedAtMs, dispatchedAtMs, firstTokenAtMs, endedAtMs, promptTokens, outputTokens }) => ({
      arrivalMs: arrivedAtMs,
      queuedMs: Math.round(dispatchedAtMs! - arrivedAtMs),
      ttftMs: Math.round(firstTokenAtMs! - arrivedAtMs),
      totalMs: Math.round(endedAtMs! - arrivedAtMs),
      promptTokens,
      outputTokens,
    }))
    .sort((a, b) => a.arrivalMs - b.arrivalMs);
}

describe('calibrate', () => {
  const model = { stepMs: 9, decodeMs: 0.5, kvTokenMs: 0.0005, prefillTokenMs: 0.08 };
  const recorded = record(model, 4);
  const rows = rowsOf(recorded);

  it('finds the times of a server from its answers', () => {
    const found = calibrate(rows)!;
    expect(found.model.stepMs).toBeCloseTo(model.stepMs, 0);
    expect(Math.abs(found.model.prefillTokenMs! / model.prefillTokenMs - 1)).toBeLessThan(0.2);
    expect(found.medianError).toBeLessThan(0.05);
  });

  it('makes a scenario whose simulation is within 5 % of what was recorded', () => {
    const again = simulate(loadScenario(scenarioFromTrace(rows)).options);
    for (const percentile of ['p50Ms', 'p95Ms'] as const) {
      expect(Math.abs(again.all.total[percentile] / recorded.all.total[percentile] - 1)).toBeLessThan(0.05);
    }
  });

  it.each([
    ['a network before the engine', { ...model, overheadMs: 120 }, 1, 64],
    ['answers that hardly meet', { ...model, prefillTokenMs: 0.4 }, 0.2, 64],
    ['requests that wait at the gateway', { ...model, overheadMs: 40 }, 4, 6],
  ])('foretells first tokens behind %s', (_, servers, rate, maxConcurrency) => {
    const log = record(servers, rate, maxConcurrency);
    const again = simulate(loadScenario(scenarioFromTrace(rowsOf(log))).options);
    const held = heldAgainstLog(again, rowsOf(log));
    expect(held.map(({ name }) => name)).toEqual([
      'TTFT p50',
      'TTFT p95',
      'time per token p50',
      'time per token p95',
      'total p50',
      'total p95',
    ]);
    for (const { name, error } of held) expect(Math.abs(error), name).toBeLessThan(0.1);
    expect(distrust(held)).toBeUndefined();
  });

  it('takes each server of the log for itself', () => {
    // Two servers that never share their load: together they look like one of other times.
    const busy = rowsOf(record(model, 6)).map((row) => ({ ...row, server: 'busy' }));
    const idle = rowsOf(record(model, 0.5)).map((row) => ({ ...row, server: 'idle' }));
    const log = [...busy, ...idle].sort((one, other) => one.arrivalMs - other.arrivalMs);
    expect(scenarioFromTrace(log)).toMatchObject({ servers: [{ count: 2 }] });
    const found = calibrate(log)!.model;
    for (const time of ['stepMs', 'decodeMs', 'prefillTokenMs'] as const)
      expect(Math.abs(found[time] / model[time]! - 1), time).toBeLessThan(0.1);
  });

  it('is held against the log, and not trusted where it is a quarter off', () => {
    const slow = rows.map((row) => ({ ...row, ttftMs: row.ttftMs! * 3 }));
    const held = heldAgainstLog(recorded, slow);
    expect(held[0]).toMatchObject({ name: 'TTFT p50', measuredMs: expect.closeTo(recorded.all.ttft.p50Ms * 3, -1) });
    expect(distrust(held)).toMatch(
      /^the simulation is off by 25\.0 % or more from the log \(TTFT p50 −66\.\d %, TTFT p95 −66/,
    );
    expect(heldTable(held)).toMatch(/^\n +log +simulated +off by\nTTFT p50 .* −66\.\d %\n/);
    expect(heldAgainstLog(recorded, [{ arrivalMs: 0, promptTokens: 1 }])).toEqual([]);
  });

  it('is undefined where too few answers have times', () => {
    expect(calibrate(rows.slice(0, 5))).toBeUndefined();
    expect(() => scenarioFromTrace(rows.slice(0, 5))).toThrow('5 requests with both');
  });
});
