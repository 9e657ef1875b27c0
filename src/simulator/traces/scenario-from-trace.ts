/** A scenario from recorded traffic alone: servers as measured, and a gate at the most that was ever in flight. */
import * as s from '../../base/schema/schema.js';
import { FlowConfigError } from '../../index.js';
import { checkArguments } from '../schemas.js';
import { type CalibrateOptions, calibrate, serversOf } from './calibrate.js';
import { courseOf } from './load-course.js';
import { someRows, type TraceRow } from './trace-row.js';

export interface ScenarioFromTraceOptions extends CalibrateOptions {
  readonly name?: string | undefined;
  /** Requests in flight at each server that fill it. @default the most that were in flight at once, by the trace */
  readonly maxConcurrency?: number | undefined;
}

const ofOptions = s.object({
  servers: s.optional(s.positiveInteger()),
  name: s.optional(s.text()),
  maxConcurrency: s.optional(s.positiveInteger()),
} satisfies Record<keyof ScenarioFromTraceOptions, unknown>);

/**
 * For `loadScenario`; replace sections: `{ ...scenarioFromTrace(rows), flowControl: { … } }`. Without times to a first
 * token: `slots`, as long as requests took. @throws FlowConfigError when too few rows have times to calibrate by
 */
export function scenarioFromTrace(
  rows: readonly TraceRow[],
  options: ScenarioFromTraceOptions = {},
): Record<string, unknown> {
  checkArguments('scenarioFromTrace', { rows, options }, { rows: someRows, options: ofOptions });
  const { servers = serversOf(rows), name = 'trace' } = options;
  const measured = rows.some(({ ttftMs }) => ttftMs !== undefined) ? rows : rows.map(withServiceTime);
  const maxConcurrency = options.maxConcurrency ?? Math.max(1, Math.ceil(peakOf(measured) / servers));
  const duration = (rows.at(-1)?.arrivalMs ?? 0) + 1;
  const longestMs = rows.reduce((longest, { totalMs = 0 }) => Math.max(longest, totalMs), 0);
  return {
    name,
    duration,
    drain: 10 * (duration + longestMs),
    servers: [{ count: servers, ...serverOf(measured, servers, maxConcurrency) }],
    traffic: [{ arrivals: { type: 'trace', rows: measured } }],
    plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency } }],
    saturationDetector: { pluginRef: 'concurrency-detector' },
  };
}

function serverOf(rows: readonly TraceRow[], servers: number, maxConcurrency: number): Record<string, unknown> {
  const calibration = calibrate(rows, { servers });
  if (calibration !== undefined)
    return { model: 'continuous-batching', ...calibration.model, maxSequences: Math.max(64, maxConcurrency) };
  if (rows.length > 0 && rows.every(({ serviceMs }) => serviceMs !== undefined))
    return { model: 'slots', slots: maxConcurrency };
  const got = `${rows.filter(({ ttftMs, totalMs }) => ttftMs !== undefined && totalMs !== undefined).length} requests with both`;
  const expected =
    'times to the first token and to the last (ttftMs, totalMs) of 20 answers or more, total times alone of all, or a scenario with servers';
  throw new FlowConfigError('calibration', [{ path: '', expected, got }]);
}

/** The time that it was served. */
function withServiceTime(row: TraceRow): TraceRow {
  const { totalMs, queuedMs = 0, heldMs, serviceMs = heldMs } = row;
  return totalMs === undefined ? row : { ...row, serviceMs: serviceMs ?? Math.max(0, totalMs - queuedMs) };
}

/** Logs round each time to 1 ms: of two requests, one after the other, the later one seems to begin before. */
const roundingMs = 2;

/** Requests in flight at once, at most; those that waited at the gateway, or were still to come, were not. */
function peakOf(rows: readonly TraceRow[]): number {
  const spans = rows.map(({ arrivalMs, queuedMs = 0, serviceMs = 0, totalMs = queuedMs + serviceMs, heldMs }) => {
    const toMs = arrivalMs + totalMs;
    const fromMs = toMs - (heldMs ?? Math.max(0, totalMs - queuedMs));
    return { fromMs, toMs: Math.max(toMs - roundingMs, fromMs), amount: 1 };
  });
  return courseOf(spans).peak;
}
