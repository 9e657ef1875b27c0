/** `headgate top` and `headgate explain`: a running gateway, asked through its inspector. */
import { columns } from '../../base/columns.js';
import type { InspectorFrame } from '../../observability/inspector/index.js';
import type { WatchArguments } from './arguments.js';
import { bytes, ms } from './format-numbers.js';

/** Returns the exit status. Shows the tenants once, or again and again on a terminal. */
export async function runTop({ url, isOnce }: WatchArguments): Promise<number> {
  const isLive = !isOnce && process.stdout.isTTY === true;
  for (;;) {
    const frame = (await asked(url, '?view=json')) as InspectorFrame;
    process.stdout.write(`${isLive ? '\x1b[H\x1b[J' : ''}${tableOf(frame, isLive ? process.stdout.rows : Infinity)}`);
    if (!isLive) return 0;
    await new Promise((resolve) => setTimeout(resolve, Math.max(frame.intervalMs, 500)));
  }
}

/** Why the request of that ID waits. */
export async function runExplain({ url, id }: WatchArguments): Promise<number> {
  const found = (await asked(url, `?view=find&id=${encodeURIComponent(id)}`)) as
    | { readonly isWaiting: false }
    | { readonly isWaiting: true; readonly priority: number; readonly waitedMs: number; readonly why: string };
  if (!found.isWaiting) {
    process.stdout.write(`${id} does not wait here: it runs, has ended, or never came.\n`);
    return 1;
  }
  process.stdout.write(
    `${id}, priority ${found.priority}, has waited for ${ms(found.waitedMs)}.\n${plain(found.why)}\n`,
  );
  return 0;
}

/** @throws Error that says what to do */
async function asked(url: URL, query: string): Promise<unknown> {
  const { HEADGATE_PASSWORD: password = '' } = process.env;
  const authorization = `Basic ${Buffer.from(`headgate:${password}`).toString('base64')}`;
  const answer = await fetch(`${url}${query}`, { headers: { authorization } }).catch(({ cause }: Error) => {
    throw new Error(`no gateway answers at ${url}: ${cause instanceof Error ? cause.message : cause}`);
  });
  if (answer.status === 401) throw new Error("expected the inspector's password in HEADGATE_PASSWORD");
  if (!answer.ok || !answer.headers.get('content-type')?.startsWith('application/json'))
    throw new Error(`no inspector at ${url} (${answer.status}): the gateway file needs the section inspector`);
  return answer.json();
}

const heads = ['TENANT', 'PRIORITY', 'RUNS', 'WAITS', 'SERVED/s', 'DROPPED/s', 'SHARE', 'OWED', 'OLDEST'] as const;

function tableOf(frame: InspectorFrame, height: number): string {
  const { gate, waiting, waitingBytes, inFlight, saturation, arrivedPerSecond, dispatchedPerSecond, endpoints } = frame;
  const away = endpoints.filter(({ trouble }) => trouble !== null).length;
  const head = [
    `gate ${gate}, saturation ${round(saturation)}; ${inFlight} run, ${waiting} wait (${bytes(waitingBytes)})`,
    `${round(arrivedPerSecond)} come and ${round(dispatchedPerSecond)} go a second; ${endpoints.length - away} of ${endpoints.length} servers get requests`,
  ];
  const rows = frame.tenants.map((tenant) => [
    `${plain(tenant.name)}${tenant.isStarving ? ' (starves)' : ''}`,
    ...[tenant.priority, tenant.running, tenant.waiting].map(String),
    ...[tenant.servedPerSecond, tenant.droppedPerSecond].map(round),
    ...[tenant.receivedShare, tenant.owedShare].map((share) => (share === null ? '-' : `${Math.round(share * 100)}%`)),
    tenant.oldestWaitMs === null ? '-' : `${round(tenant.oldestWaitMs / 1000)} s`,
  ]);
  const shown = [[...heads], ...rows.slice(0, Math.max(height - head.length - 3, 1))];
  const others = rows.length - shown.length + 1 + frame.otherTenants;
  return `${[...head, '', ...columns(shown), ...(others > 0 ? [`and ${others} more`] : [])].join('\n')}\n`;
}

const round = (value: number): string => String(Number(value.toFixed(value < 10 ? 2 : 0)));

/** Clients choose names, and a terminal obeys control characters. */
const plain = (text: string): string => text.replace(/\p{C}/gu, '?');
