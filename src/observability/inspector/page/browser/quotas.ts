/** The table of quotas, and the figures of sessions. */
import type { FrameQuota, FrameQuotas, FrameSessions, InspectorFrame } from '../../frame.js';
import { byId, count, list, make, mark, more, parts, set, share, time, write } from './dom.js';

const units: Readonly<Record<FrameQuota['unit'], string>> = {
  requests: 'requests',
  inputTokens: 'input tokens',
  outputTokens: 'output tokens',
  tokens: 'tokens',
  cost: 'cost',
};

function makeRow(): HTMLElement {
  const group = make('th', 'who', make('span', 'name'), make('span', 'badge'));
  group.setAttribute('scope', 'row');
  const bar = make('div', 'used', make('i', 'settled'), make('i', 'reserved'));
  bar.setAttribute('aria-hidden', 'true');
  const numbers = Array.from({ length: 6 }, () => make('td', 'number'));
  return make('tr', '', group, make('td'), make('td', 'share', bar, make('span')), ...numbers, make('td'));
}

function showRow(row: HTMLElement, quota: FrameQuota): void {
  const [group, unit, use, used, reserved, limit, per, resets, room, source] = parts(row) as HTMLElement[];
  const [name, badge] = parts(group as HTMLElement) as [HTMLElement, HTMLElement];
  write(name, quota.group);
  badge.hidden = quota.restsForMs === 0;
  write(badge, quota.restsForMs === 0 ? '' : `rests ${time(quota.restsForMs)}`);
  write(unit, units[quota.unit]);
  const [bar, text] = parts(use as HTMLElement) as [HTMLElement, HTMLElement];
  set(bar, '--used', (quota.used / quota.limit).toFixed(4));
  set(bar, '--reserved', (quota.reserved / quota.limit).toFixed(4));
  write(text, share((quota.used + quota.reserved) / quota.limit));
  write(used, amount(quota.used));
  write(reserved, amount(quota.reserved));
  write(limit, amount(quota.limit));
  write(per, span(quota.perMs));
  write(resets, quota.resetsInMs === 0 ? '' : time(quota.resetsInMs));
  write(room, quota.waitMs === 0 ? 'now' : time(quota.waitMs));
  mark(row, 'out', quota.waitMs > 0);
  write(source, quota.isLearnt ? 'its answers' : quota.isShared ? 'configuration, shared' : 'configuration');
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
  list(byId('quotas'), rows, ({ group, unit, perMs }) => `${group} ${unit} ${perMs}`, makeRow, showRow);
  byId('no-quotas').hidden = rows.length > 0;
  more('other-quotas', others, 'quota');
  const told = `${count(refusals)} refused upstream (429, 529) · ${count(unreported)} ended without a report · ${count(ignored)} figures ignored`;
  write(byId('quota-counts'), told);
}

function showSessions({ resident, idle, elsewhere, maxSessions, waiting, tokens, expired }: FrameSessions): void {
  const rows = [
    ['resident', maxSessions === null ? count(resident) : `${count(resident)} of ${count(maxSessions)}`],
    ['of them idle', count(idle)],
    ...(elsewhere === undefined ? [] : [['of them in other replicas', count(elsewhere)] as const]),
    ['waiting', count(waiting)],
    ['tokens held', count(tokens)],
    ['ended by expiry', count(expired)],
  ] as const;
  list(
    byId('sessions'),
    rows,
    ([name]) => name,
    ([name]) => make('div', '', make('dt', '', name), make('dd')),
    (row, [, text]) => write(row.lastChild, text),
  );
}

export function showQuotasAndSessions({ quotas, sessions }: InspectorFrame): void {
  byId('quotas-section').hidden = quotas === null;
  if (quotas !== null) showQuotas(quotas);
  byId('sessions-section').hidden = sessions === null;
  if (sessions !== null) showSessions(sessions);
}
