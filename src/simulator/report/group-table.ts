/** The first table of every report: all requests, then those of each class and each tenant. */
import type { SimulationResult } from '../engine/result.js';
import type { GroupFigures } from '../measures/group.js';
import { count, ms, percent } from './format.js';

const head = ['', 'arrived', 'done', 'dropped', 'left', 'goodput', 'TTFT p50', 'p95', 'p99', 'queued p99', 'tokens/s'];
/** More tenants than these are not listed. */
const mostTenants = 20;

/** Its rows, the head first, and how many tenants are not among them. */
export function groupTable({ all, classes, tenants }: SimulationResult): { rows: string[][]; unlisted: number } {
  const names = Object.entries(tenants);
  const rows = [
    head,
    rowOf('all', all),
    ...Object.entries(classes).map(([name, group]) => rowOf(`class ${name}`, group)),
    ...(names.length > 1 ? names.slice(0, mostTenants).map(([name, group]) => rowOf(`tenant ${name}`, group)) : []),
  ];
  return { rows, unlisted: Math.max(names.length - mostTenants, 0) };
}

function rowOf(name: string, group: GroupFigures): string[] {
  const dropped = Object.values(group.dropped).reduce((sum, drops) => sum + drops, group.evicted + group.failed);
  return [
    name,
    count(group.arrived),
    count(group.completed),
    count(dropped),
    count(group.cancelled),
    percent(group.goodput),
    ms(group.ttft.p50Ms),
    ms(group.ttft.p95Ms),
    ms(group.ttft.p99Ms),
    ms(group.queued.p99Ms),
    count(group.tokensPerSecond),
  ];
}
