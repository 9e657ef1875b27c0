/**
 * The simulator's page of charts in a real browser: it asks for nothing, fits wide and narrow screens, and its charts
 * can be read.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { htmlReport, loadScenario, simulate } from '../../src/simulator/index.js';
import { announceMissingBrowser, chromiumPath, launch, writeForDocs } from './browser.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** The picture in the documentation is written only when asked for. */
const writesDocs = process.env.HEADGATE_SCREENSHOTS === '1';

announceMissingBrowser();

describe.skipIf(chromiumPath === undefined)('the page of charts in Chromium', () => {
  let browser: Browser;
  let report: string;
  beforeAll(async () => {
    browser = await launch();
    const { options } = loadScenario(readFileSync(`${root}examples/scenarios/two-classes.yaml`, 'utf8'));
    report = htmlReport([simulate(options)], 'two classes');
  });
  afterAll(() => browser?.close());

  async function open(viewport: { width: number; height: number }): Promise<{ page: Page; asked: string[] }> {
    const page = await browser.newPage({ viewport });
    const asked: string[] = [];
    page.on('request', (request) => void asked.push(request.url()));
    await page.setContent(report);
    return { page, asked };
  }

  it.each([
    ['wide', { width: 1280, height: 900 }],
    ['narrow', { width: 390, height: 844 }],
  ])('asks for nothing else, and fits a %s screen', async (name, viewport) => {
    const { page, asked } = await open(viewport);
    expect(asked).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(viewport.width);
    if (writesDocs && name === 'wide') {
      await writeForDocs(browser, await page.screenshot({ fullPage: true }), `${root}docs/simulator-report.webp`);
    }
  });

  it('has six charts with lines in them, and no label over the edge', async () => {
    const { page } = await open({ width: 1280, height: 900 });
    const charts: unknown = await page.evaluate(`[...document.querySelectorAll('figure')].map((figure) => {
      const frame = figure.querySelector('svg').getBoundingClientRect();
      const texts = [...figure.querySelectorAll('text')].map((text) => text.getBoundingClientRect());
      return {
        hasLines: [...figure.querySelectorAll('polyline')].some((line) => line.getBoundingClientRect().width > frame.width / 2),
        fits: texts.every((text) => text.left >= frame.left && text.right <= frame.right && text.bottom <= frame.bottom),
      };
    })`);
    expect(charts).toEqual(Array.from({ length: 6 }, () => ({ hasLines: true, fits: true })));
    expect(await page.locator('table tr').allInnerTexts()).toEqual([
      expect.stringMatching(/arrived/),
      expect.stringMatching(/^all/),
      expect.stringMatching(/^class batch/),
      expect.stringMatching(/^class chat/),
      expect.stringMatching(/^tenant nightly/),
      expect.stringMatching(/^tenant chat/),
    ]);
  });
});
