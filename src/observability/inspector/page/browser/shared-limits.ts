/** The table of limits that this replica shares with others, and the state of the store. */
import type { InspectorFrame } from '../../frame.js';
import type { FrameLease, FrameShared } from '../../shared-limits.js';
import { byId, copyOf, fill, list, mark, more, notice, part, set, write } from './dom.js';
import { count, time } from './figures.js';

function showRow(row: HTMLElement, lease: FrameLease): void {
  const { name, state, cap, inFlight, others, limit, unit, safeShare, ageMs } = lease;
  fill(row, {
    name,
    cap: count(cap),
    running: count(inFlight),
    others: count(others),
    limit: `${count(limit)} ${unit}`,
    safe: count(safeShare),
    age: ageMs === null ? '' : time(ageMs),
  });
  notice(part(row, 'badge'), state === 'held' ? '' : state === 'expired' ? 'lease over' : state);
  set(part(row, 'bar'), '--used', (cap / limit).toFixed(4));
  set(part(row, 'bar'), '--reserved', (others / limit).toFixed(4));
  mark(row, 'out', state === 'expired');
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
  list(
    byId('shared'),
    shared.rows,
    ({ name, unit }) => `${name} ${unit}`,
    () => copyOf('shared-row'),
    showRow,
  );
  more('other-shared', shared.otherRows, 'limit');
  write(byId('shared-counts'), told(shared));
  notice(byId('shared-problem'), shared.store.problem ?? '');
}
