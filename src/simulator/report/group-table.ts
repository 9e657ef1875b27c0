/** The first table of every report: all requests, then those of each class and each tenant. */
import type { SimulationResult } from '../engine/result.js';
import type { GroupFigures } from '../measures/group.js';
import { count, ms, percent } from './format.js';

const columns: readonly (readonly [head: string, cell: (group: GroupFigures) => string])[] = [
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

/** Its rows, the head first, and how many tenants are not among them. */
export function groupTable({ all, classes, tenants }: SimulationResult): { rows: string[][]; unlisted: number } {
  const names = Object.entries(tenants);
  const rows = [
    ['', ...columns.map(([head]) => head)],
    rowOf('all', all),
    ...Object.entries(classes).map(([name, group]) => rowOf(`class ${name}`, group)),
    ...(names.length > 1 ? names.slice(0, mostTenants).map(([name, group]) => rowOf(`tenant ${name}`, group)) : []),
  ];
  return { rows, unlisted: Math.max(names.length - mostTenants, 0) };
}

function rowOf(name: string, group: GroupFigures): string[] {
  return [name, ...columns.map(([, cell]) => cell(group))];
}
