// @ts-check
// The picture of the README: every request of the demo as a dot, by when it was due and how long its first token took.
// Two panels, without flow control and with it, in a light and a dark file. measured.json keeps the dots and figures,
// so that a test draws them again.

import { writeFileSync } from 'node:fs';
import { seconds, summarize } from './report.mjs';
import { tenants } from './tenants.mjs';

/** @import { Run } from './report.mjs' */

/**
 * One request: when it was due, how long its first token took or how long it waited in vain, both in units of 10 ms,
 * and whether it was on time.
 * @typedef {readonly [due: number, wait: number, isOnTime: 0 | 1]} Dot
 */

/** @typedef {{ id: string, sent: number, good: number, p99: string, dots: readonly Dot[] }} TenantPicture */
/** @typedef {{ title: string, good: number, sent: number, tokensPerSecond: number, tenants: readonly TenantPicture[] }} Panel */

/** @param {string} title @param {Run} run @returns {Panel} */
export function panelOf(title, run) {
  const summary = summarize(run);
  return {
    title,
    good: summary.good,
    sent: summary.sent,
    tokensPerSecond: Math.round(summary.tokensPerSecond),
    tenants: summary.tenants.map(({ id, sent, good, ttftMs: [, , p99 = Number.NaN] }) => {
      const targetMs = tenants.find((tenant) => tenant.id === id)?.ttftTargetMs ?? 0;
      const own = run.records.filter(({ tenant, reason }) => tenant === id && !reason?.startsWith('429'));
      const dots = own.map(({ dueMs = 0, ttftMs, waitedMs, result }) => {
        const isOnTime = result === 'completed' && ttftMs !== undefined && ttftMs <= targetMs;
        return /** @type {Dot} */ ([Math.round(dueMs / 10), Math.round((ttftMs ?? waitedMs) / 10), isOnTime ? 1 : 0]);
      });
      return { id, sent, good, p99: seconds(p99), dots };
    }),
  };
}

/** @typedef {{ page: string, text: string, muted: string, grid: string, premium: string, polite: string, others: string }} Theme */

/** Contrast of text is at least 4.5 on the page. @type {Record<'light' | 'dark', Theme>} */
export const themes = {
  light: {
    page: '#ffffff',
    text: '#1f2328',
    muted: '#59636e',
    grid: '#d8dee4',
    premium: '#0a5bd3',
    polite: '#b35900',
    others: '#8c959f',
  },
  dark: {
    page: '#0d1117',
    text: '#e6edf3',
    muted: '#9198a1',
    grid: '#30363d',
    premium: '#5ea0ff',
    polite: '#f0883e',
    others: '#6e7681',
  },
};

const size = { width: 860, height: 400, panel: 370, left: 54, gap: 54, top: 74, plot: 236 };
const longestWait = 1_100;

/** @param {readonly Panel[]} panels @param {Theme} theme */
export function drawPicture(panels, theme) {
  const longestDue = Math.max(
    1,
    ...panels.flatMap((panel) => panel.tenants.flatMap(({ dots }) => dots.map(([due]) => due))),
  );
  const x = (/** @type {number} */ due) => round((due / longestDue) * size.panel);
  const y = (/** @type {number} */ wait) =>
    round(size.top + size.plot * (1 - Math.min(wait, longestWait) / longestWait));
  const description = panels
    .map(
      ({ title, tenants }) =>
        `${title}: ${tenants.map(({ id, sent, good }) => `${id} ${good} of ${sent} on time`).join(', ')}.`,
    )
    .join(' ');
  const lines = panels.flatMap((panel, index) => {
    const names = { premium: theme.premium, polite: theme.polite };
    /** @param {string} id @param {string} color @param {number} opacity */
    const dotsOf = (id, color, opacity) => {
      const dots = panel.tenants.find((tenant) => tenant.id === id)?.dots ?? [];
      const path = dots.map(([due, wait]) => `M${x(due)} ${y(wait)}h0`).join('');
      return `<path d="${path}" stroke="${color}" stroke-opacity="${opacity}"/>`;
    };
    const figures = Object.entries(names).map(([id, color], row) => {
      const own = panel.tenants.find((tenant) => tenant.id === id);
      if (own === undefined) throw new Error(`expected the tenant ${id}`);
      const share = Math.round((own.good / own.sent) * 100);
      return text(
        0,
        346 + row * 20,
        `${id}: ${share}% on time, first token p99 ${own.p99}`,
        color,
        'font-weight="600"',
      );
    });
    const grid = [0, 2, 4, 6, 8, 10].flatMap((value) => [
      `<path d="M0 ${y(value * 100)}h${size.panel}" stroke="${theme.grid}" stroke-width="1"/>`,
      text(-10, y(value * 100) + 4, index === 0 ? `${value} s` : '', theme.muted, 'text-anchor="end"'),
    ]);
    return [
      `<g transform="translate(${size.left + index * (size.panel + size.gap)} 0)">`,
      text(0, 30, panel.title, theme.text, 'font-weight="600" style="font-size:16px"'),
      text(0, 52, `${panel.good} of ${panel.sent} requests on time, ${panel.tokensPerSecond} tokens/s`, theme.muted),
      ...grid.filter((line) => !line.includes('></text>')),
      '<g stroke-width="5" stroke-linecap="round" fill="none">',
      dotsOf('noisy', theme.others, 0.4),
      dotsOf('batch', theme.others, 0.4),
      dotsOf('polite', theme.polite, 0.9),
      dotsOf('premium', theme.premium, 0.9),
      '</g>',
      ...figures,
      text(0, 386, 'grey: the noisy tenant and the batch job', theme.muted),
      '</g>',
    ];
  });
  const title = 'How long the first token of each request took, without headgate and with it';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" role="img" aria-labelledby="t d" font-family="system-ui, sans-serif" font-size="13">`,
    `<title id="t">${title}</title>`,
    `<desc id="d">${description}</desc>`,
    `<rect width="${size.width}" height="${size.height}" fill="${theme.page}"/>`,
    ...lines,
    '</svg>',
    '',
  ].join('\n');
}

/**
 * Writes examples/gateway/measured.json and docs/public/demo-{light,dark}.svg.
 * @param {{ without: Run, withIt: Run }} runs
 */
export function writePictures({ without, withIt }) {
  const panels = [panelOf('Without flow control', without), panelOf('With headgate', withIt)];
  writeFileSync(new URL('measured.json', import.meta.url), `${JSON.stringify(panels)}\n`);
  for (const [name, theme] of Object.entries(themes)) {
    writeFileSync(new URL(`../../docs/public/demo-${name}.svg`, import.meta.url), drawPicture(panels, theme));
  }
}

/** @param {number} x @param {number} y @param {string} words @param {string} color @param {string} [more] */
function text(x, y, words, color, more = '') {
  return `<text x="${x}" y="${y}" fill="${color}"${more && ` ${more}`}>${words}</text>`;
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 10) / 10;
}
