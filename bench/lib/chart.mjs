// Draws nanoseconds per request, one row for each scenario, on a logarithmic axis. Follows the reader's light or dark
// scheme.

const width = 860;
const labelWidth = 130;
const ratioWidth = 96;
const rowHeight = 30;
const headHeight = 56;
const footHeight = 40;
const plotEnd = width - ratioWidth;

const style = `
  text { font: 12px system-ui, sans-serif; fill: var(--text); }
  .muted { fill: var(--muted); }
  .grid { stroke: var(--grid); }
  .peer { fill: var(--muted); fill-opacity: 0.55; }
  .bound { fill: var(--page); stroke: var(--text); stroke-width: 1.5; }
  .page { fill: var(--page); }
  .headgate { fill: var(--accent); }
  .value { fill: var(--accent); font-weight: 600; }
  svg { --text: #1f2328; --muted: #656d76; --grid: #d8dee4; --accent: #0a5bd3; --page: #ffffff; }
  @media (prefers-color-scheme: dark) {
    svg { --text: #e6edf3; --muted: #9198a1; --grid: #30363d; --accent: #5ea0ff; --page: #0d1117; }
  }
`;

const escaped = (text) => String(text).replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

const nice = (ns) => (ns >= 1e6 ? `${ns / 1e6} ms` : ns >= 1000 ? `${ns / 1000} µs` : `${ns} ns`);

/** Powers of ten around all values. */
function decades(values) {
  const first = Math.floor(Math.log10(Math.min(...values)));
  const last = Math.ceil(Math.log10(Math.max(...values)));
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** `rows`: `[{ name, points: [{ subject, kind, ns }], ratio }]`, ratio being headgate's to the permit bound. */
export function drawChart(rows) {
  const ticks = decades(rows.flatMap(({ points }) => points.map(({ ns }) => ns)));
  const span = ticks[ticks.length - 1] - ticks[0];
  const x = (ns) => labelWidth + ((Math.log10(ns) - ticks[0]) / span) * (plotEnd - labelWidth - 20);
  const height = headHeight + rows.length * rowHeight + footHeight;
  const body = [
    ...ticks.map((tick) => drawTick(x(10 ** tick), 10 ** tick, height)),
    ...rows.map((row, index) => drawRow(row, headHeight + (index + 0.5) * rowHeight, x)),
    drawLegend(),
    `<text class="muted" x="${labelWidth}" y="${height - 6}">per request, median of the rounds; logarithmic</text>`,
    `<text class="muted" x="${width - 8}" y="${headHeight - 6}" text-anchor="end">÷ permit bound</text>`,
  ];
  const title = 'Nanoseconds per request: headgate, its bounds and its peers';
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">
<title>${title}</title>
<style>${style}</style>
<rect class="page" width="${width}" height="${height}"/>
${body.join('\n')}
</svg>
`;
}

function drawTick(x, ns, height) {
  const at = x.toFixed(1);
  return `<line class="grid" x1="${at}" x2="${at}" y1="${headHeight}" y2="${height - footHeight}"/>
<text class="muted" x="${at}" y="${height - footHeight + 16}" text-anchor="middle">${nice(ns)}</text>`;
}

function drawRow({ name, points, ratio }, y, x) {
  const order = ['peer', 'bound', 'subject'];
  const marks = [...points]
    .sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))
    .map((point) => drawMark(point, x(point.ns), y));
  return `<text x="${labelWidth - 14}" y="${y + 4}" text-anchor="end">${escaped(name)}</text>
${marks.join('\n')}
${ratio === undefined ? '' : `<text class="value" x="${width - 8}" y="${y + 4}" text-anchor="end">${ratio.toFixed(2)}×</text>`}`;
}

function drawMark({ subject, kind, ns }, x, y) {
  const title = `<title>${escaped(subject)}: ${escaped(nice(Number(ns.toPrecision(3))))}</title>`;
  const at = x.toFixed(1);
  if (kind === 'subject') return `<circle class="headgate" cx="${at}" cy="${y}" r="6">${title}</circle>`;
  if (kind === 'peer') return `<circle class="peer" cx="${at}" cy="${y}" r="4">${title}</circle>`;
  return `<rect class="bound" x="${(x - 4).toFixed(1)}" y="${y - 4}" width="8" height="8" transform="rotate(45 ${at} ${y})">${title}</rect>`;
}

function drawLegend() {
  return `<circle class="headgate" cx="${labelWidth + 6}" cy="18" r="6"/><text x="${labelWidth + 18}" y="22">headgate</text>
<rect class="bound" x="${labelWidth + 96}" y="14" width="8" height="8" transform="rotate(45 ${labelWidth + 100} 18)"/><text x="${labelWidth + 112}" y="22">hand-written bounds: permit, denque</text>
<circle class="peer" cx="${labelWidth + 370}" cy="18" r="4"/><text x="${labelWidth + 380}" y="22">peers</text>`;
}
