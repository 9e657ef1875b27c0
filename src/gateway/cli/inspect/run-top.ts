/** `headgate top`: the inspector's frames as tables, live on a terminal. Invariant: the terminal is left as it was. */
import { setTimeout as delay } from 'node:timers/promises';
import { columns } from '../../../base/columns.js';
import {
  count,
  type FrameBand,
  type FrameTenant,
  gateWords,
  type InspectorFrame,
  rate,
  time,
} from '../../../observability/inspector/index.js';
import type { InspectArguments } from '../arguments.js';
import { askInspector } from './ask-inspector.js';

const everyMs = 1_000;
/** The cursor is hidden as long as it is drawn. */
const [clear, showCursor] = ['\u001b[?25l\u001b[H\u001b[J', '\u001b[?25h'];

/** Resolves to the exit status, when it has printed once or somebody has ended it. @throws (rejects) FlowConfigError */
export async function runTop({ url, once, json }: InspectArguments): Promise<number> {
  const { stdin, stdout, stderr } = process;
  const isLive = stdout.isTTY === true && !once && !json;
  const ending = new AbortController();
  const end = (): void => ending.abort();
  const pressed = (keys: Buffer): void => {
    if (['q', 'Q', '\u0003'].includes(keys.toString())) end();
  };
  const print = async (): Promise<void> => {
    const frame = (await askInspector(url, 'view=json')) as InspectorFrame;
    if (json) stdout.write(`${JSON.stringify(frame)}\n`);
    else if (isLive) stdout.write(clear + drawn(screen(frame)));
    else stdout.write(`${screen(frame).join('\n')}\n`);
  };
  const tell = (error: unknown): boolean => (isLive ? stdout.write(`${clear}${error}\n`) : stderr.write(`${error}\n`));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end);
  if (isLive && stdin.isTTY) stdin.setRawMode(true).on('data', pressed);
  try {
    await print();
    while (!once && (await delay(everyMs, true, { signal: ending.signal }).catch(() => false)))
      await print().catch(tell);
  } finally {
    if (isLive) stdout.write(`${showCursor}\n`);
    if (isLive && stdin.isTTY) stdin.setRawMode(false).off('data', pressed).pause();
  }
  return 0;
}

/** As much of the lines as the terminal has room for, with a head that stands out. */
function drawn(lines: readonly string[]): string {
  const { columns: width, rows } = process.stdout;
  const cut = (line: string): string => (line.length > width ? `${line.slice(0, width - 1)}…` : line);
  const [head = '', ...rest] = lines.slice(0, rows - 2).map(cut);
  const bold = process.env.NO_COLOR ? head : `\u001b[1m${head}\u001b[22m`;
  return [bold, ...rest, '', 'q ends this'].join('\n');
}

type Column<T> = readonly [head: string, cellOf: (row: T) => string];

const bandColumns: readonly Column<FrameBand>[] = [
  ['band', ({ priority }) => String(priority)],
  ['gate', ({ gate }) => gateWords[gate]],
  ['saturation', ({ saturation, ceiling }) => `${saturation.toFixed(2)} of ${ceiling.toFixed(2)}`],
  ['waiting', ({ waiting }) => count(waiting)],
  ['running', ({ inFlight }) => count(inFlight)],
  ['in/s', ({ arrivedPerSecond }) => rate(arrivedPerSecond)],
  ['out/s', ({ dispatchedPerSecond }) => rate(dispatchedPerSecond)],
];

const tenantColumns: readonly Column<FrameTenant>[] = [
  ['band', ({ priority }) => String(priority)],
  ['tenant', ({ name, isStarving }) => (isStarving ? `${name} starves` : name)],
  ['waiting', ({ waiting }) => count(waiting)],
  ['running', ({ running }) => count(running)],
  ['oldest', ({ oldestWaitMs }) => (oldestWaitMs === null ? '' : time(oldestWaitMs))],
  ['tokens', ({ tokens }) => count(tokens)],
  ['served/s', ({ servedPerSecond }) => rate(servedPerSecond)],
  ['dropped/s', ({ droppedPerSecond }) => rate(droppedPerSecond)],
];

function table<T>(of: readonly Column<T>[], rows: readonly T[]): string[] {
  return columns([of.map(([head]) => head), ...rows.map((row) => of.map(([, cellOf]) => cellOf(row)))], 2);
}

/** Names come from clients: what a terminal would act on is taken out of them. */
function screen(frame: InspectorFrame): string[] {
  const { gate, saturation, waiting, inFlight, isGrowing, timeToDrainMs, bands, tenants, slowest } = frame;
  const verdict = gate === 'open' ? 'gate open' : `gate closed: ${gateWords[gate]}`;
  const drains = waiting === 0 ? '' : isGrowing ? ' · the queue grows' : ` · drains in ${time(timeToDrainMs)}`;
  const byBand = [...tenants].sort((a, b) => b.priority - a.priority);
  const waits = slowest.map(({ id, flow, waitedMs, why }) => `${id ?? ''}  ${flow}  ${time(waitedMs)}  ${why}`);
  const lines = [
    `${verdict} · saturation ${saturation.toFixed(2)} · ${count(waiting)} wait, ${count(inFlight)} run${drains}`,
    '',
    ...table(bandColumns, bands),
    '',
    ...table(tenantColumns, byBand),
    ...(waits.length === 0 ? [] : ['', 'longest waits: request, tenant, time, why', ...waits]),
  ];
  return lines.map((line) => line.replace(/\p{C}/gu, '?'));
}
