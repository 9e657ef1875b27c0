/** Frames as they come, one per paint at most, none while paused or out of sight. No library, no `innerHTML`. */
import type { InspectorFrame } from '../../frame.js';
import type { FoundWait } from '../../inspector.js';
import { showBands } from './bands.js';
import { showChart, showEndpoints, showTotals, showWaits } from './charts.js';
import { byId, mark, notice, tell, write } from './dom.js';
import { count, time } from './figures.js';
import { showGate, showShadow } from './gate.js';
import { showQuotasAndSessions, showShared, showTenants } from './tables.js';

const retryMs = 5_000;
const quietMs = 10_000;
let source: EventSource | undefined;
let retry: number | undefined;
let isPaused = false;
let latest: InspectorFrame | undefined;
let told = { verdict: 'open', atMs: -quietMs };
const queues = [showShadow, showGate, showTenants, showBands, showQuotasAndSessions, showShared];
const parts = [...queues, showWaits, showChart, showTotals, showEndpoints, announce];

function show(): void {
  const frame = latest;
  latest = undefined;
  if (frame === undefined) return;
  for (const showPart of parts) showPart(frame);
  const { dataset } = document.body;
  dataset.frames = String(Number(dataset.frames ?? 0) + 1);
}

/** For screen readers: that the gate closed or opened, not too often to listen to. Open is no news at first. */
function announce(frame: InspectorFrame): void {
  const verdict = frame.gate !== 'open' && frame.waiting > 0 ? 'closed' : 'open';
  const nowMs = performance.now();
  if (verdict === told.verdict || nowMs - told.atMs < quietMs) return;
  const closed = `The gate is closed, ${count(frame.waiting)} requests wait`;
  write(byId('news'), verdict === 'closed' ? closed : 'The gate is open');
  told = { verdict, atMs: nowMs };
}

function connection(text: string, className: string): void {
  write(byId('connection'), text);
  byId('dot').className = `dot ${className}`;
}

function open(): void {
  close();
  const opened = new EventSource('?view=events');
  source = opened;
  opened.onmessage = (event: MessageEvent<string>) => {
    connection('live', 'live');
    const isFirst = latest === undefined;
    latest = JSON.parse(event.data) as InspectorFrame;
    if (isFirst) requestAnimationFrame(show);
  };
  opened.onerror = () => {
    connection('no connection, trying again', 'lost');
    if (opened.readyState === EventSource.CLOSED) retry = window.setTimeout(open, retryMs);
  };
}

function close(): void {
  clearTimeout(retry);
  source?.close();
  source = undefined;
}

/** Opens the stream, or closes it and says why. */
function watch(isOn: boolean, why: string): void {
  connection(isOn ? 'connecting' : why, '');
  if (isOn) open();
  else close();
}

byId('pause').addEventListener('click', () => {
  isPaused = !isPaused;
  tell(byId('pause'), 'aria-pressed', isPaused);
  mark(document.body, 'paused', isPaused);
  watch(!isPaused, 'paused');
});

document.addEventListener('visibilitychange', () => {
  if (!isPaused) watch(document.visibilityState === 'visible', 'paused while out of sight');
});

async function find(id: string): Promise<string> {
  const answer = await fetch(`?view=find&id=${encodeURIComponent(id)}`);
  if (!answer.ok) return `The search failed: ${answer.status}.`;
  const found = (await answer.json()) as FoundWait;
  if (!found.isWaiting) return 'No request of that ID waits: it runs, has ended, or never came here.';
  return `Priority ${found.priority}, has waited ${time(found.waitedMs)}: ${found.why}`;
}

byId('search').addEventListener('submit', (event) => {
  event.preventDefault();
  const id = (byId('request-id') as HTMLInputElement).value.trim();
  if (id === '') return;
  void find(id)
    .catch(() => 'The search failed: no connection.')
    .then((text) => notice(byId('found'), text));
});

open();
