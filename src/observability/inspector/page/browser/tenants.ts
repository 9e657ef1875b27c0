/** The table of tenants: who has how much of what is owed, and who starves. */
import type { InspectorFrame } from '../../frame.js';
import type { FrameTenant } from '../../tenants.js';
import { byId, count, list, make, mark, more, parts, rate, set, share, time, tintOf, write } from './dom.js';

function makeRow(tenant: FrameTenant): HTMLElement {
  const swatch = make('span', `swatch ${tintOf(tenant.name)}`);
  swatch.setAttribute('aria-hidden', 'true');
  const who = make('th', 'who', swatch, make('span', 'name'), make('span', 'badge', 'starves'));
  who.setAttribute('scope', 'row');
  const numbers = Array.from({ length: 6 }, () => make('td', 'number'));
  const bar = make('div', 'owed', make('i'));
  bar.setAttribute('aria-hidden', 'true');
  return make('tr', '', who, ...numbers, make('td', 'share', bar, make('span')), make('td', 'cap'));
}

function showRow(row: HTMLElement, tenant: FrameTenant): void {
  const [who, priority, running, waiting, oldest, served, dropped, shares, cap] = parts(row) as HTMLElement[];
  const [, name, badge] = parts(who as HTMLElement);
  write(name, tenant.name);
  (badge as HTMLElement).hidden = !tenant.isStarving;
  mark(row, 'starves', tenant.isStarving);
  write(priority, tenant.priority);
  write(running, count(tenant.running));
  write(waiting, count(tenant.waiting));
  write(oldest, tenant.oldestWaitMs === null ? '' : time(tenant.oldestWaitMs));
  write(served, rate(tenant.servedPerSecond));
  write(dropped, tenant.droppedPerSecond === 0 ? '' : rate(tenant.droppedPerSecond));
  showShares(shares as HTMLElement, tenant);
  write(cap, capText(tenant.cap));
  mark(cap as HTMLElement, 'reached', tenant.cap?.isReached === true);
}

/** `3 of 3 requests, 900 of 1,000 tokens`. */
function capText(cap: FrameTenant['cap']): string {
  if (cap === null) return '';
  const { requests, maxRequests, tokens, maxTokens } = cap;
  const ofRequests = maxRequests === null ? [] : [`${count(requests)} of ${count(maxRequests)} requests`];
  const ofTokens = maxTokens === null ? [] : [`${count(tokens)} of ${count(maxTokens)} tokens`];
  return [...ofRequests, ...ofTokens].join(', ');
}

function showShares(cell: HTMLElement, { receivedShare, owedShare }: FrameTenant): void {
  const [bar, text] = parts(cell) as [HTMLElement, HTMLElement];
  bar.hidden = receivedShare === null || owedShare === null;
  set(bar, '--share', receivedShare ?? 0);
  set(bar, '--owed', owedShare ?? 0);
  write(text, receivedShare === null || owedShare === null ? '' : `${share(receivedShare)} of ${share(owedShare)}`);
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
  const sentence = starvation(frame);
  byId('starving').hidden = sentence === '';
  write(byId('starving'), sentence);
  list(byId('tenants'), frame.tenants, ({ name, priority }) => `${priority} ${name}`, makeRow, showRow);
  byId('no-tenants').hidden = frame.tenants.length > 0;
  more('other-tenants', frame.otherTenants, 'flow');
}
