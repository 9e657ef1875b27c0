/** A chart of lines over time, as SVG with nothing else needed. */
import { count, ms } from './format.js';

export interface ChartLine {
  readonly name: string;
  /** NaN: a bucket that has none. */
  readonly values: readonly number[];
}

export interface Chart {
  readonly title: string;
  readonly unit: 'ms' | 'count';
  readonly bucketMs: number;
  readonly lines: readonly ChartLine[];
  /** The top of the scale, so that charts beside each other have the same one. */
  readonly top: number;
}

const width = 560;
const height = 220;
const margin = { left: 62, right: 12, top: 10, bottom: 28 };
/** Colours that people with any colour vision can tell apart. Source: Okabe and Ito (2008). */
const colours = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#8a6d00', '#666666'];

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

export function lineChart({ title, unit, bucketMs, lines, top }: Chart): string {
  const buckets = Math.max(1, ...lines.map(({ values }) => values.length));
  const [innerWidth, innerHeight] = [width - margin.left - margin.right, height - margin.top - margin.bottom];
  const scaleTop = niceTop(top);
  const x = (bucket: number): string => (margin.left + ((bucket + 0.5) / buckets) * innerWidth).toFixed(1);
  const y = (value: number): string => (margin.top + innerHeight * (1 - value / scaleTop)).toFixed(1);
  const label = (value: number): string => (unit === 'ms' ? ms(value) : count(value));
  const grid = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const at = y(part * scaleTop);
    const text = `<text x="${margin.left - 6}" y="${at}" text-anchor="end" dominant-baseline="middle">${label(part * scaleTop)}</text>`;
    return `<line x1="${margin.left}" x2="${width - margin.right}" y1="${at}" y2="${at}" class="grid"/>${text}`;
  });
  const times = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const at = (margin.left + part * innerWidth).toFixed(1);
    return `<text x="${at}" y="${height - 8}" text-anchor="${part === 1 ? 'end' : 'middle'}">${ms(part * buckets * bucketMs)}</text>`;
  });
  const drawn = lines.map(({ values }, index) => {
    const point = (value: number, bucket: number): string => `${x(bucket)},${y(Math.min(value, scaleTop))}`;
    const points = values.flatMap((value, bucket) => (Number.isNaN(value) ? [] : [point(value, bucket)])).join(' ');
    return `<polyline points="${points}" fill="none" stroke="${colours[index % colours.length]}" stroke-width="1.6"/>`;
  });
  const legend = lines.map(
    ({ name }, index) =>
      `<span><i style="background:${colours[index % colours.length]}"></i>${escapeHtml(name)}</span>`,
  );
  return `<figure><figcaption>${escapeHtml(title)}</figcaption>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeHtml(title)}">${grid.join('')}${times.join('')}${drawn.join('')}</svg>
<div class="legend">${legend.join('')}</div></figure>`;
}

/** A round number that is not below `top`. */
function niceTop(top: number): number {
  if (!(top > 0)) return 1;
  let unit = 1;
  while (unit * 10 <= top) unit *= 10;
  while (unit > top) unit /= 10;
  return ([1, 2, 4, 5, 8, 10].find((factor) => factor * unit >= top) ?? 10) * unit;
}
