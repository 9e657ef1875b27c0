/** What a simulation says of recorded traffic, beside what was measured. */
import { columns } from '../../base/columns.js';
import { oneResult, type SimulationResult } from '../engine/result.js';
import { Samples } from '../measures/samples.js';
import { checkArguments } from '../schemas.js';
import { someRows, type TraceRow } from '../traces/trace-row.js';
import { ms, percent } from './format.js';

/** A time as it was recorded and as it was simulated, ms. */
export interface HeldTime {
  readonly name: string;
  readonly measuredMs: number;
  readonly predictedMs: number;
  /** The difference relative to what was measured: below 0 the simulation is too fast. */
  readonly error: number;
}

const heldTimes = [
  ['TTFT p50', 'ttft', 'p50Ms'],
  ['TTFT p95', 'ttft', 'p95Ms'],
  ['time per token p50', 'perToken', 'p50Ms'],
  ['time per token p95', 'perToken', 'p95Ms'],
  ['total p50', 'total', 'p50Ms'],
  ['total p95', 'total', 'p95Ms'],
] as const;

/** Predictions further off are not to be relied on. */
const mostError = 0.25;

/** p50 and p95 of each time that the rows have, of those that the result counts. @throws FlowConfigError */
export function heldAgainstLog(result: SimulationResult, rows: readonly TraceRow[]): HeldTime[] {
  checkArguments('heldAgainstLog', { result, rows }, { result: oneResult, rows: someRows });
  const times = { ttft: new Samples(), perToken: new Samples(), total: new Samples() };
  for (const { arrivalMs, ttftMs, totalMs, outputTokens = 0 } of rows) {
    if (arrivalMs < result.warmUpMs) continue;
    if (ttftMs !== undefined) times.ttft.add(ttftMs);
    if (totalMs !== undefined) times.total.add(totalMs);
    if (ttftMs !== undefined && totalMs !== undefined && outputTokens > 1)
      times.perToken.add(Math.max(0, totalMs - ttftMs) / (outputTokens - 1));
  }
  return heldTimes.flatMap(([name, time, percentile]) => {
    const measured = times[time].figures();
    const [measuredMs, predictedMs] = [measured[percentile], result.all[time][percentile]];
    const error = measuredMs === predictedMs ? 0 : predictedMs / measuredMs - 1;
    return measured.count === 0 ? [] : [{ name, measuredMs, predictedMs, error }];
  });
}

/** For a terminal; nothing where the rows have no times. */
export function heldTable(times: readonly HeldTime[]): string {
  if (times.length === 0) return '';
  const rows = times.map((held) => [held.name, ms(held.measuredMs), ms(held.predictedMs), signed(held.error)]);
  return `\n${columns([['', 'log', 'simulated', 'off by'], ...rows]).join('\n')}\n`;
}

/** A sentence about times that are too far off, or that nobody has; undefined without. */
export function distrust(times: readonly HeldTime[]): string | undefined {
  const far = times.filter(({ error }) => !(Math.abs(error) < mostError));
  if (far.length === 0) return undefined;
  const list = far.map(({ name, error }) => `${name} ${signed(error)}`).join(', ');
  return `the simulation is off by ${percent(mostError)} or more from the log (${list}): do not rely on what it says of these times`;
}

function signed(error: number): string {
  const size = percent(Math.abs(error));
  return size === percent(0) || Number.isNaN(error) ? size : `${error < 0 ? '−' : '+'}${size}`;
}
