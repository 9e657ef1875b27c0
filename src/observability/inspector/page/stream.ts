/** Page script: frames as they come, at most one per paint, and none while the page is paused or out of sight. */
export const stream: string = /* js */ `
const retryMs = 5000;
const quietMs = 10000;
let source;
let retry;
let isPaused = false;
let latest;
let told = { verdict: '', atMs: -quietMs };

function show() {
  const frame = latest;
  latest = undefined;
  if (!frame) return;
  showGate(frame);
  showBands(frame);
  showWaits(frame);
  showChart(frame);
  showTotals(frame);
  showEndpoints(frame);
  announce(frame);
  document.body.dataset.frames = Number(document.body.dataset.frames || 0) + 1;
}

/** For screen readers: only that the gate closed or opened, and not more often than one can listen to. */
function announce(frame) {
  const verdict = frame.isGateClosed && frame.waiting > 0 ? 'closed' : 'open';
  const nowMs = performance.now();
  if (verdict === told.verdict || nowMs - told.atMs < quietMs) return;
  if (told.verdict !== '' || verdict === 'closed') {
    write(byId('news'), verdict === 'closed' ? 'The gate is closed, ' + count(frame.waiting) + ' requests wait' : 'The gate is open');
  }
  told = { verdict, atMs: nowMs };
}

function connection(text, className) {
  write(byId('connection'), text);
  byId('dot').className = 'dot ' + className;
}

function open() {
  close();
  source = new EventSource('?view=events');
  source.onmessage = (event) => {
    connection('live', 'live');
    const isFirst = latest === undefined;
    latest = JSON.parse(event.data);
    if (isFirst) requestAnimationFrame(show);
  };
  source.onerror = () => {
    connection('no connection, trying again', 'lost');
    if (source.readyState === EventSource.CLOSED) retry = setTimeout(open, retryMs);
  };
}

function close() {
  clearTimeout(retry);
  if (source) source.close();
  source = undefined;
}

byId('pause').addEventListener('click', () => {
  isPaused = !isPaused;
  const button = byId('pause');
  tell(button, 'aria-pressed', isPaused);
  mark(document.body, 'paused', isPaused);
  if (isPaused) {
    close();
    connection('paused', '');
  } else {
    connection('connecting', '');
    open();
  }
});

document.addEventListener('visibilitychange', () => {
  if (isPaused) return;
  if (document.visibilityState === 'visible') open();
  else {
    close();
    connection('paused while out of sight', '');
  }
});

open();
`;
