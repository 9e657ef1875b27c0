/** Results for a terminal. */
import { columns } from '../../base/columns.js';
import type { SimulationResult } from '../engine/result.js';
import { parseMeasure, spreadOf } from '../search/measure.js';
import { spendByGroup, spendText } from '../servers/spend.js';
import { count, decimals, figure, groupTable, ms, percent } from './format.js';

/** One result: a line for each class and tenant, and one for each server. */
export function resultTable(result: SimulationResult): string {
  const { rows, unlisted } = groupTable(result);
  const servers = result.servers.map(({ id, utilization, meanRunning, peakKvUsage, preemptions }) => {
    return [id, percent(utilization), meanRunning.toFixed(1), percent(peakKvUsage), count(preemptions)];
  });
  const lines = columns(rows);
  if (unlisted > 0) lines.push(`… and ${unlisted} tenants more`);
  lines.push('', ...columns([['server', 'in use', 'running', 'cache at most', 'preempted'], ...servers]));
  const drops = Object.entries(result.counts.dropped).map(([reason, number]) => `${number} ${reason}`);
  lines.push(
    '',
    `Attempts dropped: ${drops.join(', ') || 'none'}. Evicted while running: ${result.counts.evicted}.${result.counts.broken > 0 ? ` Broken by outages: ${result.counts.broken}.` : ''} Jain index of service: ${decimals(result.jainIndex, 3)}.`,
  );
  if (spendText(result) !== '') lines.push(spendText(result));
  if (result.serviceDifference !== undefined) {
    const { max, mean } = result.serviceDifference;
    lines.push(`Service difference: ${decimals(max, 0)} at most, ${decimals(mean, 0)} on average.`);
  }
  lines.push(
    `${count(result.counts.requests)} requests, ${ms(result.endedAtMs)} simulated${result.isCutShort ? '; cut short: not everything had ended' : ''}.`,
  );
  if (result.pluginErrors > 0) lines.push(`Policies or detectors failed ${result.pluginErrors} times.`);
  return `${lines.join('\n')}\n`;
}

/** The measures by which scenarios are compared. */
function comparedMeasures(results: readonly SimulationResult[]): string[] {
  const names = [...new Set(results.flatMap(({ classes }) => Object.keys(classes)))];
  const perClass = ['ttft.p50', 'ttft.p95', 'ttft.p99', 'queued.p99', 'goodput', 'completed'].flatMap((measure) =>
    names.map((who) => `${measure}(${who})`),
  );
  const spend = results.some((result) => spendByGroup(result).size > 0) ? ['spend'] : [];
  return [...perClass, 'tokensPerSecond', 'goodput', 'dropped', 'utilization', 'preemptions', 'jain', ...spend];
}

/** Several scenarios beside each other, compared with the first; each with its seeds. */
export function comparisonTable(
  scenarios: readonly { readonly name: string; readonly results: readonly SimulationResult[] }[],
): string {
  const measures = comparedMeasures(scenarios.flatMap(({ results }) => results)).map(parseMeasure);
  const rows = measures.map((measure) => {
    const spreads = scenarios.map(({ results }) => spreadOf(measure, results));
    const [base, ...others] = spreads;
    const cells = spreads.map(({ mean, least, greatest }) => {
      const text = figure(mean, measure.unit);
      return least === greatest || Number.isNaN(mean)
        ? text
        : `${text} (${figure(least, measure.unit)} … ${figure(greatest, measure.unit)})`;
    });
    return [measure.text, ...cells, ...others.map(({ mean }) => change(base?.mean ?? NaN, mean))];
  });
  const names = scenarios.map(({ name }) => name);
  return `${columns([['', ...names, ...names.slice(1).map(() => 'change')], ...rows]).join('\n')}\n`;
}

function change(before: number, after: number): string {
  if (Number.isNaN(before) || Number.isNaN(after)) return '–';
  if (before === after) return '=';
  return before === 0 ? '' : `${after > before ? '+' : '−'}${Math.abs((after / before - 1) * 100).toFixed(1)} %`;
}
