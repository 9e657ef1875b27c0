/** The table of tenants: who has how much of what is owed, and who starves. */
import type { InspectorFrame } from '../../frame.js';
import type { FrameTenant } from '../../tenants.js';
import { byId, copyOf, fill, list, mark, more, notice, part, set } from './dom.js';
import { tintOf } from './tints.js';
import { count, rate, share, time } from './words.js';

function makeRow(tenant: FrameTenant): HTMLElement {
  const row = copyOf('tenant-row');
  part(row, 'swatch').classList.add(tintOf(tenant.name));
  return row;
}

function showRow(row: HTMLElement, tenant: FrameTenant): void {
  const { cap, receivedShare, owedShare, oldestWaitMs, isStarving } = tenant;
  const shares = sharesText(tenant);
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

function sharesText({ receivedShare, owedShare }: FrameTenant): string {
  return receivedShare === null || owedShare === null ? '' : `${share(receivedShare)} of ${share(owedShare)}`;
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
  list(byId('tenants'), frame.tenants, ({ name, priority }) => `${priority} ${name}`, makeRow, showRow);
  byId('no-tenants').hidden = frame.tenants.length > 0;
  more('other-tenants', frame.otherTenants, 'flow');
}
