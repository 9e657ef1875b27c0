/** What a simulation says of recorded traffic, beside what was measured. */
import { columns } from '../../base/columns.js';
import * as s from '../../base/schema/schema.js';
import { oneResult, type SimulationResult } from '../engine/result.js';
import { type Latency, Samples } from '../measures/samples.js';
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

/** Predictions further off are not to be relied on. */
const mostError = 0.25;

const anyMs = s.value('a number of ms', (given) => typeof given === 'number');
const someTimes = s.list(s.object({ name: s.text(), measuredMs: anyMs, predictedMs: anyMs, error: anyMs }));

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
  const pair = (name: string, measured: Samples, predicted: Latency): HeldTime[] => {
    const { count, p50Ms, p95Ms } = measured.figures();
    if (count === 0) return [];
    return [heldTime(`${name} p50`, p50Ms, predicted.p50Ms), heldTime(`${name} p95`, p95Ms, predicted.p95Ms)];
  };
  const { all } = result;
  return [
    ...pair('TTFT', times.ttft, all.ttft),
    ...pair('time per token', times.perToken, all.perToken),
    ...pair('total', times.total, all.total),
  ];
}

function heldTime(name: string, measuredMs: number, predictedMs: number): HeldTime {
  return { name, measuredMs, predictedMs, error: measuredMs === predictedMs ? 0 : predictedMs / measuredMs - 1 };
}

/** For a terminal; nothing where the rows have no times. @throws FlowConfigError */
export function heldTable(times: readonly HeldTime[]): string {
  checkArguments('heldTable', { times }, { times: someTimes });
  if (times.length === 0) return '';
  const rows = times.map((held) => [held.name, ms(held.measuredMs), ms(held.predictedMs), signed(held.error)]);
  return `\n${columns([['', 'log', 'simulated', 'off by'], ...rows]).join('\n')}\n`;
}

/** A sentence about times that are too far off, or that nobody has; undefined without. @throws FlowConfigError */
export function distrust(times: readonly HeldTime[]): string | undefined {
  checkArguments('distrust', { times }, { times: someTimes });
  const far = times.filter(({ error }) => !(Math.abs(error) < mostError));
  if (far.length === 0) return undefined;
  const list = far.map(({ name, error }) => `${name} ${signed(error)}`).join(', ');
  return `the simulation is off by ${percent(mostError)} or more from the log (${list}): do not rely on what it says of these times`;
}

function signed(error: number): string {
  const size = percent(Math.abs(error));
  return size === percent(0) || Number.isNaN(error) ? size : `${error < 0 ? '−' : '+'}${size}`;
}
