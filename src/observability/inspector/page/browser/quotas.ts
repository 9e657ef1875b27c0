/** The table of quotas, and the figures of sessions. */
import type { FrameQuota, FrameQuotas, FrameSessions, InspectorFrame } from '../../frame.js';
import { byId, copyOf, fill, list, mark, more, notice, part, set, terms, write } from './dom.js';
import { count, share, time } from './figures.js';

const units: Readonly<Record<FrameQuota['unit'], string>> = {
  requests: 'requests',
  inputTokens: 'input tokens',
  outputTokens: 'output tokens',
  tokens: 'tokens',
  cost: 'cost',
};

function showRow(row: HTMLElement, quota: FrameQuota): void {
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
  list(
    byId('quotas'),
    rows,
    ({ group, unit, perMs }) => `${group} ${unit} ${perMs}`,
    () => copyOf('quota-row'),
    showRow,
  );
  byId('no-quotas').hidden = rows.length > 0;
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
