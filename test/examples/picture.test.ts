/** The picture of the README is drawn from what a run measured, and says what the dots say. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { drawPicture, type Panel, panelOf, themes } from '../../examples/gateway/picture.mjs';
import type { RequestRecord } from '../../examples/gateway/traffic.mjs';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const measured = JSON.parse(read('examples/gateway/measured.json')) as [without: Panel, withIt: Panel];

const record = (tenant: string, dueMs: number, ttftMs: number): RequestRecord => ({
  tenant,
  result: 'completed',
  dueMs,
  ttftMs,
  waitedMs: ttftMs + 400,
  tokens: 10,
});

describe('a panel', () => {
  it('has a dot for each request that was let in: when it was due, how long it took, and whether it was on time', () => {
    const records: RequestRecord[] = [
      record('premium', 100, 990),
      record('premium', 200, 1_010),
      { tenant: 'premium', result: 'gave up', dueMs: 300, waitedMs: 10_000, tokens: 0 },
      { tenant: 'premium', result: 'dropped', reason: '429 rejected-saturated', dueMs: 400, waitedMs: 2, tokens: 0 },
    ];
    const run = { records, elapsedMs: 10_000, preemptions: 0, recomputedTokens: 0, promptTokens: 0 };
    const { tenants, good, sent } = panelOf('now', run);
    expect([good, sent]).toEqual([1, 4]);
    expect(tenants[0]).toMatchObject({ id: 'premium', sent: 4, good: 1, p99: '10.00 s' });
    expect(tenants[0]?.dots).toEqual([
      [10, 99, 1],
      [20, 101, 0],
      [30, 1_000, 0],
    ]);
  });
});

describe('the pictures of the README', () => {
  it.each(Object.entries(themes))('docs/public/demo-%s.svg is what measured.json draws', (name, theme) => {
    expect(drawPicture(measured, theme)).toBe(read(`docs/public/demo-${name}.svg`));
  });

  it('count what their dots show', () => {
    for (const { tenants } of measured) {
      for (const { dots, good, sent } of tenants) {
        expect(dots.filter(([, , isOnTime]) => isOnTime === 1)).toHaveLength(good);
        expect(dots.length).toBeLessThanOrEqual(sent);
      }
    }
  });

  it('show the run that the README tells of', () => {
    const [without, withIt] = measured;
    const batch = [without, withIt].map(({ tenants }) => tenants.find(({ id }) => id === 'batch')!);
    const told = read('README.md').replaceAll(/\s+/g, ' ');
    expect(told).toContain(`the same ${without.sent} requests go`);
    expect(told).toContain(
      `${batch[1]!.good} of its ${batch[1]!.sent} requests were on time instead of ${batch[0]!.good}.`,
    );
    expect(withIt.good).toBeGreaterThan(without.good);
  });

  it('show the run that the home page tells of', () => {
    const home = read('docs/index.md');
    const [premium, polite] = ['premium', 'polite'].map((name) =>
      measured.map(({ tenants }) => tenants.find(({ id }) => id === name)!),
    );
    const percent = ({ good, sent }: { good: number; sent: number }): string => `${Math.round((good / sent) * 100)}%`;
    const rows = [
      premium!.map(({ p99 }) => p99),
      polite!.map(percent),
      measured.map(({ good }) => good),
      measured.map(({ tokensPerSecond }) => tokensPerSecond),
    ];
    for (const [without, withIt] of rows) expect(home).toContain(`| ${without} | **${withIt}** |`);
  });

  it('have text that can be read: contrast of at least 4.5 on the page', () => {
    for (const { page, text, muted, premium, polite } of Object.values(themes)) {
      for (const color of [text, muted, premium, polite]) expect(contrast(color, page)).toBeGreaterThanOrEqual(4.5);
    }
  });
});

/** WCAG's ratio of two colours written as #rrggbb. */
function contrast(one: string, other: string): number {
  const [light = 0, dark = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return value <= 0.040_45 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
