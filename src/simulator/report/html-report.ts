/** One page that needs nothing else: figures, and charts over time, of one result or of several beside each other. */

import type { SimulationResult } from '../engine/result.js';
import type { TimeSeries } from '../measures/time-series.js';
import { spendText } from '../servers/spend.js';
import { count, groupTable, ms } from './format.js';
import { type Chart, type ChartLine, escapeHtml, lineChart } from './line-chart.js';

/** Lines in one chart; the smaller ones are left out. */
const mostLines = 8;

const linesOf = (rows: TimeSeries['waitingByBand'], prefix: string): ChartLine[] =>
  Object.entries(rows)
    .map(([name, values]) => {
      const sum = values.reduce((sum, value) => (Number.isNaN(value) ? sum : sum + value), 0);
      return { name: `${prefix}${name}`, values, sum };
    })
    .filter(({ sum }) => sum > 0)
    .sort((a, b) => b.sum - a.sum || (a.name < b.name ? -1 : 1))
    .slice(0, mostLines);

type ChartKind = readonly [title: string, unit: Chart['unit'], lines: (series: TimeSeries) => ChartLine[]];

const kinds: readonly ChartKind[] = [
  ['Waiting at the gateway, by priority', 'count', (all) => linesOf(all.waitingByBand, 'priority ')],
  ['Service per tenant, tokens a second (output counts twice)', 'count', (all) => linesOf(all.serviceByTenant, '')],
  ['Saturation (1 is full)', 'count', (all) => [{ name: 'saturation', values: all.saturation }]],
  [
    'Running at the servers, and dropped',
    'count',
    ({ inFlight, dropped }) => [
      { name: 'in flight', values: inFlight },
      { name: 'dropped in the bucket', values: dropped },
    ],
  ],
  ['Time to first token, p50', 'ms', (all) => linesOf(all.ttftP50ByClass, '')],
  ['Time to first token, p99', 'ms', (all) => linesOf(all.ttftP99ByClass, '')],
];

/** The page, as text. Charts of one kind have one scale, for comparison by eye. */
export function htmlReport(results: readonly SimulationResult[], title = 'Simulation'): string {
  const heads = results.map((result) => {
    return `<section><h2>${escapeHtml(result.name)}</h2><p>seed ${result.seed}, ${ms(result.durationMs)} of traffic,
${count(result.counts.requests)} requests${result.isCutShort ? ', cut short' : ''}. ${escapeHtml(spendText(result))}</p>${tableOf(result)}</section>`;
  });
  // One result has its charts two in a row; several have a row for each kind.
  const charts = kinds.map(([title, unit, linesIn]) => {
    const drawn = results.map(({ series }) => ({ lines: linesIn(series), bucketMs: series.bucketMs }));
    const all = drawn.flatMap(({ lines }) => lines.flatMap(({ values }) => values));
    const top = Math.max(0, ...all.filter((value) => !Number.isNaN(value)));
    return drawn.map((chart) => lineChart({ ...chart, title, unit, top })).join('\n');
  });
  const row = (inside: string, columns: number): string =>
    `<div class="row" style="--columns:${columns}">${inside}</div>`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${style}</style></head>
<body><h1>${escapeHtml(title)}</h1>
${row(heads.join('\n'), results.length)}
${(results.length === 1 ? [charts.join('\n')] : charts).map((inside) => row(inside, Math.max(results.length, 2))).join('\n')}
<footer>Made by headgate/simulator: the gateway's own controller on simulated servers and traffic.</footer>
</body></html>
`;
}

function tableOf(result: SimulationResult): string {
  const [head = [], ...rows] = groupTable(result).rows;
  const line = (cells: readonly string[], tag: string): string =>
    `<tr>${cells.map((cell, index) => `<${index === 0 ? 'th' : tag}>${escapeHtml(cell)}</${index === 0 ? 'th' : tag}>`).join('')}</tr>`;
  return `<div class="scroll"><table>${line(head, 'th')}${rows.map((row) => line(row, 'td')).join('')}</table></div>`;
}

const style = `
:root { color-scheme: light dark; --ink: #1c1f23; --soft: #6a727c; --line: #d9dde2; --back: #ffffff; --card: #f7f8fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #9aa3ad; --line: #363c44; --back: #15181c; --card: #1d2126; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px; max-width: 1280px; background: var(--back); color: var(--ink);
  font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 12px; } h2 { font-size: 16px; margin: 0; } p { margin: 2px 0 10px; color: var(--soft); }
.row { display: grid; gap: 16px; grid-template-columns: repeat(var(--columns), minmax(0, 1fr)); margin-bottom: 16px; }
@media (max-width: 900px) { .row { grid-template-columns: minmax(0, 1fr); } }
section, figure { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; margin: 0; min-width: 0; }
figcaption { font-weight: 600; margin-bottom: 4px; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--soft); font-size: 10.5px; }
.grid { stroke: var(--line); stroke-width: 1; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: 12px; color: var(--soft); }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 5px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 12.5px; width: 100%; }
th, td { padding: 3px 8px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; font-weight: 400; }
tr th:first-child { text-align: left; } tr:first-child th { color: var(--soft); }
footer { color: var(--soft); font-size: 12px; margin-top: 8px; }
`;
