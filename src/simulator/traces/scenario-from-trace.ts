/** A scenario from recorded traffic alone: servers as calibrated, and a gate at the most that was ever in flight. */
import { FlowConfigError } from '../../index.js';
import { type CalibrateOptions, calibrate } from './calibrate.js';
import type { TraceRow } from './trace-row.js';

export interface ScenarioFromTraceOptions extends CalibrateOptions {
  readonly name?: string | undefined;
  /** Requests in flight at each server that fill it. @default the most that were in flight at once, by the trace */
  readonly maxConcurrency?: number | undefined;
}

/**
 * A source for `loadScenario`. Sections can be replaced: `{ ...scenarioFromTrace(rows), flowControl: { … } }`.
 * @throws FlowConfigError when too few rows have the times that a calibration needs
 */
export function scenarioFromTrace(
  rows: readonly TraceRow[],
  options: ScenarioFromTraceOptions = {},
): Record<string, unknown> {
  const { servers = 1, name = 'trace' } = options;
  const calibration = calibrate(rows, { servers });
  if (calibration === undefined) {
    const got = `${rows.filter(({ ttftMs, totalMs }) => ttftMs !== undefined && totalMs !== undefined).length} requests with both`;
    const expected =
      'times to the first token and to the last (ttftMs, totalMs) of 20 answers or more, or a scenario with servers';
    throw new FlowConfigError('calibration', [{ path: '', expected, got }]);
  }
  const maxConcurrency = options.maxConcurrency ?? Math.max(1, Math.ceil(peakOf(rows) / servers));
  return {
    name,
    duration: (rows.at(-1)?.arrivalMs ?? 0) + 1,
    servers: [
      {
        model: 'continuous-batching',
        count: servers,
        ...calibration.model,
        maxSequences: Math.max(64, maxConcurrency),
      },
    ],
    traffic: [{ arrivals: { type: 'trace', rows } }],
    plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency } }],
    saturationDetector: { pluginRef: 'concurrency-detector' },
  };
}

/** Requests in flight at once, at most. */
function peakOf(rows: readonly TraceRow[]): number {
  const changes = rows
    .flatMap(({ arrivalMs, totalMs = 0 }) => [
      { atMs: arrivalMs, by: 1 },
      { atMs: arrivalMs + totalMs, by: -1 },
    ])
    .sort((a, b) => a.atMs - b.atMs || a.by - b.by);
  let running = 0;
  return changes.reduce((most, { by }) => {
    running += by;
    return Math.max(most, running);
  }, 0);
}
