/** The tables: tenants, quotas, and limits shared with other replicas; and the figures of sessions. */
import type { QuotaFigure } from '../../../../types/index.js';
import type { FrameQuotas, FrameSessions, InspectorFrame } from '../../frame.js';
import type { FrameLease, FrameShared } from '../../shared-limits.js';
import type { FrameTenant } from '../../tenants.js';
import { byId, fill, list, mark, more, notice, part, rows, set, terms, tinted, tintOf, write } from './dom.js';
import { count, rate, share, time } from './figures.js';

function showTenant(row: HTMLElement, tenant: FrameTenant): void {
  const { cap, receivedShare, owedShare, oldestWaitMs, isStarving } = tenant;
  const shares = receivedShare === null || owedShare === null ? '' : `${share(receivedShare)} of ${share(owedShare)}`;
  fill(row, {
    name: tenant.name,
    priority: tenant.priority,
    running: count(tenant.running),
    waiting: count(tenant.waiting),
    oldest: oldestWaitMs === null ? '' : time(oldestWaitMs),
    served: rate(tenant.servedPerSecond),
    dropped: tenant.droppedPerSecond === 0 ? '' : rate(tenant.droppedPerSecond),
    shares,
    cap: capText(cap),
  });
  notice(part(row, 'badge'), isStarving ? 'starves' : '');
  mark(row, 'starves', isStarving);
  mark(part(row, 'cap'), 'reached', cap?.isReached === true);
  const bar = part(row, 'bar');
  bar.hidden = shares === '';
  set(bar, '--share', receivedShare ?? 0);
  set(bar, '--owed', owedShare ?? 0);
}

/** `3 of 3 requests, 900 of 1,000 tokens`. */
function capText(cap: FrameTenant['cap']): string {
  if (cap === null) return '';
  const { requests, maxRequests, tokens, maxTokens } = cap;
  const ofRequests = maxRequests === null ? [] : [`${count(requests)} of ${count(maxRequests)} requests`];
  const ofTokens = maxTokens === null ? [] : [`${count(tokens)} of ${count(maxTokens)} tokens`];
  return [...ofRequests, ...ofTokens].join(', ');
}

/** One sentence: who starves, and who has most of the band meanwhile. */
function starvation({ tenants }: InspectorFrame): string {
  const starving = tenants.filter(({ isStarving }) => isStarving);
  const [first] = starving;
  if (first === undefined) return '';
  const who = starving.length === 1 ? `${first.name} starves` : `${first.name} and ${starving.length - 1} more starve`;
  const { receivedShare, owedShare, oldestWaitMs, priority } = first;
  const got =
    receivedShare === null || owedShare === null
      ? ''
      : `: ${first.name} got ${share(receivedShare)} of its band and is owed ${share(owedShare)}`;
  const rivals = tenants.filter(
    (tenant) => !tenant.isStarving && tenant.priority >= priority && tenant.servedPerSecond > 0,
  );
  const [hog] = rivals.sort((a, b) => b.servedPerSecond - a.servedPerSecond);
  const taken =
    hog === undefined ? '' : `; ${hog.name} (priority ${hog.priority}) is served ${rate(hog.servedPerSecond)}/s`;
  return `${who}${got}; its oldest request has waited ${time(oldestWaitMs ?? 0)}${taken}.`;
}

export function showTenants(frame: InspectorFrame): void {
  notice(byId('starving'), starvation(frame));
  const makeRow = ({ name }: FrameTenant): HTMLElement => tinted('tenant-row', tintOf(name));
  list(byId('tenants'), frame.tenants, ({ name, priority }) => `${priority} ${name}`, makeRow, showTenant);
  byId('no-tenants').hidden = frame.tenants.length > 0;
  more('other-tenants', frame.otherTenants, 'flow');
}

/** A bar of what is taken of a limit, and behind it of what else is. */
function showBar(row: HTMLElement, taken: number, others: number): void {
  set(part(row, 'bar'), '--used', taken.toFixed(4));
  set(part(row, 'bar'), '--reserved', others.toFixed(4));
}

function showQuota(row: HTMLElement, quota: QuotaFigure): void {
  const { used, reserved, limit, resetsInMs, waitMs, restsForMs } = quota;
  fill(row, {
    group: quota.group,
    unit: quota.unit.replace('Tokens', ' tokens'),
    use: share((used + reserved) / limit),
    used: amount(used),
    reserved: amount(reserved),
    limit: amount(limit),
    per: spans[quota.perMs] ?? time(quota.perMs),
    resets: resetsInMs === 0 ? '' : time(resetsInMs),
    room: waitMs === 0 ? 'now' : time(waitMs),
    source: quota.isLearnt ? 'its answers' : quota.isShared ? 'configuration, shared' : 'configuration',
  });
  notice(part(row, 'badge'), restsForMs === 0 ? '' : `rests ${time(restsForMs)}`);
  showBar(row, used / limit, reserved / limit);
  mark(row, 'out', waitMs > 0);
}

/** Costs have fractions. */
function amount(value: number): string {
  return Number.isInteger(value) || value >= 100 ? count(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** Spans that have a name of their own, by their length in ms; others are told as times: `90 s`. */
const spans: Readonly<Record<number, string>> = { 86400000: 'day', 3600000: 'h', 60000: 'min', 1000: 's' };

function showQuotas({ rows: quotas, others, refusals, unreported, ignored }: FrameQuotas): void {
  rows('quotas', quotas, ({ group, unit, perMs }) => `${group} ${unit} ${perMs}`, 'quota-row', showQuota);
  more('other-quotas', others, 'quota');
  const told = `${count(refusals)} refused upstream (429, 529) · ${count(unreported)} ended without a report · ${count(ignored)} figures ignored`;
  write(byId('quota-counts'), told);
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
  showBar(row, cap / limit, others / limit);
  mark(row, 'out', state === 'expired');
}

function sharedText({ replicas, overAdmission, epochChanges, quotas, store }: FrameShared): string {
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
  rows('shared', shared.rows, ({ name, unit }) => `${name} ${unit}`, 'shared-row', showLease);
  more('other-shared', shared.otherRows, 'limit');
  write(byId('shared-counts'), sharedText(shared));
  notice(byId('shared-problem'), shared.store.problem ?? '');
}
