/** Figures as people read them: three digits that count, and a unit. In columns; the first table of every report. */
import type { SimulationResult } from '../engine/result.js';
import type { GroupFigures } from '../measures/group.js';

export function ms(value: number): string {
  if (Number.isNaN(value)) return '–';
  if (value === 0) return '0';
  if (value >= 60_000) return `${(value / 60_000).toFixed(1)} min`;
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return value >= 100 ? `${value.toFixed(0)} ms` : `${value.toFixed(value >= 10 ? 1 : 2)} ms`;
}

export function count(value: number): string {
  if (Number.isNaN(value)) return '–';
  if (Math.abs(value) >= 1e6) return `${(value / 1e6).toFixed(2)} M`;
  if (Math.abs(value) >= 1e5) return `${(value / 1000).toFixed(0)} k`;
  return Number.isInteger(value) || Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2);
}

export function percent(value: number): string {
  return Number.isNaN(value) ? '–' : `${(value * 100).toFixed(1)} %`;
}

export function decimals(value: number, digits: number): string {
  return Number.isNaN(value) ? '–' : value.toFixed(digits);
}

/** A figure with its unit, such as `3.25 s`, `12.5 %`, `4.10/s`; `–` for NaN. */
export function figure(value: number, unit: 'ms' | 'ratio' | 'per second' | 'count'): string {
  if (unit === 'ms') return ms(value);
  if (unit === 'ratio') return percent(value);
  return unit === 'count' ? count(value) : `${count(value)}/s`;
}

const groupColumns: readonly (readonly [head: string, cell: (group: GroupFigures) => string])[] = [
  ['arrived', ({ arrived }) => count(arrived)],
  ['done', ({ completed }) => count(completed)],
  [
    'dropped',
    ({ dropped, evicted, failed }) => count(Object.values(dropped).reduce((a, b) => a + b, evicted + failed)),
  ],
  ['left', ({ cancelled }) => count(cancelled)],
  ['goodput', ({ goodput }) => percent(goodput)],
  ['TTFT p50', ({ ttft }) => ms(ttft.p50Ms)],
  ['p95', ({ ttft }) => ms(ttft.p95Ms)],
  ['p99', ({ ttft }) => ms(ttft.p99Ms)],
  ['queued p99', ({ queued }) => ms(queued.p99Ms)],
  ['tokens/s', ({ tokensPerSecond }) => count(tokensPerSecond)],
];
/** More tenants than these are not listed. */
const mostTenants = 20;

/** All requests, then those of each class and tenant: rows, the head first, and how many tenants are not among them. */
export function groupTable({ all, classes, tenants }: SimulationResult): { rows: string[][]; unlisted: number } {
  const names = Object.entries(tenants);
  const rows = [
    ['', ...groupColumns.map(([head]) => head)],
    rowOf('all', all),
    ...Object.entries(classes).map(([name, group]) => rowOf(`class ${name}`, group)),
    ...(names.length > 1 ? names.slice(0, mostTenants).map(([name, group]) => rowOf(`tenant ${name}`, group)) : []),
  ];
  return { rows, unlisted: Math.max(names.length - mostTenants, 0) };
}

function rowOf(name: string, group: GroupFigures): string[] {
  return [name, ...groupColumns.map(([, cell]) => cell(group))];
}
