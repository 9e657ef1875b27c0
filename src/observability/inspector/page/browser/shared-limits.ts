/** The table of limits that this replica shares with others, and the state of the store. */
import type { InspectorFrame } from '../../frame.js';
import type { FrameLease, FrameShared } from '../../shared-limits.js';
import { byId, count, list, make, mark, more, parts, set, time, write } from './dom.js';

function makeRow(): HTMLElement {
  const name = make('th', 'who', make('span', 'name'), make('span', 'badge'));
  name.setAttribute('scope', 'row');
  const bar = make('div', 'used', make('i', 'settled'), make('i', 'reserved'));
  bar.setAttribute('aria-hidden', 'true');
  const numbers = Array.from({ length: 5 }, () => make('td', 'number'));
  return make('tr', '', name, make('td', 'share', bar, make('span')), ...numbers);
}

function showRow(row: HTMLElement, lease: FrameLease): void {
  const [who, use, running, others, limit, safe, age] = parts(row) as HTMLElement[];
  const [name, badge] = parts(who as HTMLElement) as [HTMLElement, HTMLElement];
  write(name, lease.name);
  badge.hidden = lease.state === 'held';
  write(badge, lease.state === 'expired' ? 'lease over' : lease.state);
  const [bar, text] = parts(use as HTMLElement) as [HTMLElement, HTMLElement];
  set(bar, '--used', (lease.cap / lease.limit).toFixed(4));
  set(bar, '--reserved', (lease.others / lease.limit).toFixed(4));
  write(text, count(lease.cap));
  write(running, count(lease.inFlight));
  write(others, count(lease.others));
  write(limit, `${count(lease.limit)} ${lease.unit}`);
  write(safe, count(lease.safeShare));
  write(age, lease.ageMs === null ? '' : time(lease.ageMs));
  mark(row, 'out', lease.state === 'expired');
}

function told({ replicas, overAdmission, epochChanges, quotas, store }: FrameShared): string {
  const { latencyMs, calls, misses, isBreakerOpen } = store;
  return [
    ...(replicas === null ? [] : [`${count(replicas)} ${replicas === 1 ? 'replica' : 'replicas'}`]),
    latencyMs === null ? 'no answer of the store yet' : `store answers in ${time(latencyMs)}`,
    `${count(misses)} of ${count(calls)} calls missed`,
    `breaker ${isBreakerOpen ? 'open' : 'closed'}`,
    `store began anew ${epochChanges === 1 ? 'once' : `${count(epochChanges)} times`}`,
    `over the limit by an estimated ${count(overAdmission)}`,
    ...(quotas === null ? [] : [`${count(quotas.drawn)} quotas drawn, ${count(quotas.local)} by a fallback share`]),
  ].join(' · ');
}

export function showShared({ shared }: InspectorFrame): void {
  byId('shared-section').hidden = shared === null;
  if (shared === null) return;
  byId('shared-table').hidden = shared.rows.length === 0;
  list(byId('shared'), shared.rows, ({ name, unit }) => `${name} ${unit}`, makeRow, showRow);
  more('other-shared', shared.otherRows, 'limit');
  write(byId('shared-counts'), told(shared));
  const problem = byId('shared-problem');
  problem.hidden = shared.store.problem === null;
  write(problem, shared.store.problem ?? '');
}
