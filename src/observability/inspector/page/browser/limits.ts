/** The tables of quotas and of limits that replicas share, the state of their store, and the figures of sessions. */
import type { FrameQuota, FrameQuotas, FrameSessions, InspectorFrame } from '../../frame.js';
import type { FrameLease, FrameShared } from '../../shared-limits.js';
import { byId, copies, fill, mark, more, notice, part, say, set, terms } from './dom.js';
import { count, share, time } from './words.js';

const units: Readonly<Record<FrameQuota['unit'], string>> = {
  requests: 'requests',
  inputTokens: 'input tokens',
  outputTokens: 'output tokens',
  tokens: 'tokens',
  cost: 'cost',
};

function showQuota(row: HTMLElement, quota: FrameQuota): void {
  const { used, reserved, limit, resetsInMs, waitMs, restsForMs } = quota;
  fill(row, {
    group: quota.group,
    unit: units[quota.unit],
    use: share((used + reserved) / limit),
    used: amount(used),
    reserved: amount(reserved),
    limit: amount(limit),
    per: span(quota.perMs),
    resets: resetsInMs === 0 ? '' : time(resetsInMs),
    room: waitMs === 0 ? 'now' : time(waitMs),
    source: quota.isLearnt ? 'its answers' : quota.isShared ? 'configuration, shared' : 'configuration',
  });
  notice(part(row, 'badge'), restsForMs === 0 ? '' : `rests ${time(restsForMs)}`);
  set(part(row, 'bar'), '--used', (used / limit).toFixed(4));
  set(part(row, 'bar'), '--reserved', (reserved / limit).toFixed(4));
  mark(row, 'out', waitMs > 0);
}

/** Costs have fractions. */
function amount(value: number): string {
  return Number.isInteger(value) || value >= 100 ? count(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** `min`, `90 s`: a limit of a span. */
function span(ms: number): string {
  const whole = [
    ['day', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1_000],
  ].find(([, length]) => ms === length);
  return whole === undefined ? time(ms) : String(whole[0]);
}

function showQuotas({ rows, others, refusals, unreported, ignored }: FrameQuotas): void {
  copies('quotas', 'quota-row', rows, ({ group, unit, perMs }) => `${group} ${unit} ${perMs}`, showQuota);
  byId('no-quotas').hidden = rows.length > 0;
  more('other-quotas', others, 'quota');
  const told = `${count(refusals)} refused upstream (429, 529) · ${count(unreported)} ended without a report · ${count(ignored)} figures ignored`;
  say('quota-counts', told);
}

function showSessions({ resident, idle, elsewhere, maxSessions, waiting, tokens, expired }: FrameSessions): void {
  terms('sessions', [
    ['resident', maxSessions === null ? count(resident) : `${count(resident)} of ${count(maxSessions)}`],
    ['of them idle', count(idle)],
    ...(elsewhere === undefined ? [] : [['of them in other replicas', count(elsewhere)] as const]),
    ['waiting', count(waiting)],
    ['tokens held', count(tokens)],
    ['ended by expiry', count(expired)],
  ]);
}

export function showQuotasAndSessions({ quotas, sessions }: InspectorFrame): void {
  byId('quotas-section').hidden = quotas === null;
  if (quotas !== null) showQuotas(quotas);
  byId('sessions-section').hidden = sessions === null;
  if (sessions !== null) showSessions(sessions);
}

function showLease(row: HTMLElement, lease: FrameLease): void {
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
  copies('shared', 'shared-row', shared.rows, ({ name, unit }) => `${name} ${unit}`, showLease);
  more('other-shared', shared.otherRows, 'limit');
  say('shared-counts', told(shared));
  notice(byId('shared-problem'), shared.store.problem ?? '');
}
