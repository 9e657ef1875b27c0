/** Every page in Chromium: axe finds nothing, in light and in dark, and nothing is wider than a phone. */
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { announceMissingBrowser, chromiumPath, launch } from '../browser.js';
import { pages, serveSite } from './built-site.js';

announceMissingBrowser();

const axeAddress = '/axe.js';
const phone = { width: 390, height: 844 };

interface Tab {
  readonly page: Page;
  readonly complaints: string[];
}

// Two at a time: a page is work for one core.
describe.skipIf(chromiumPath === undefined).concurrent('in Chromium', () => {
  let browser: Browser;
  let site: Awaited<ReturnType<typeof serveSite>>;
  const tabs: Tab[] = [];

  beforeAll(async () => {
    browser = await launch();
    site = await serveSite({ [axeAddress]: axe.source });
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  async function newTab(): Promise<Tab> {
    const context = await browser.newContext({ viewport: phone, reducedMotion: 'reduce' });
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
    page.on('pageerror', (error) => complaints.push(error.message));
    return { page, complaints };
  }

  it.each(pages())('%s reads well on a phone, for everybody', async (address) => {
    const tab = tabs.pop() ?? (await newTab());
    const { page, complaints } = tab;
    await page.emulateMedia({ colorScheme: 'light' });
    await page.goto(site.url + address, { waitUntil: 'load' });
    if (address === '/playground.html') await page.locator('.pg-figures tbody tr').first().waitFor();
    await page.addScriptTag({ url: site.url + axeAddress });
    const found: Record<string, unknown> = {};
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.waitForFunction(`document.documentElement.classList.contains('dark') === ${colorScheme === 'dark'}`);
      // What does not depend on colours is looked at once.
      const options = colorScheme === 'light' ? '{}' : "{ runOnly: ['color-contrast'] }";
      found[colorScheme] = await page.evaluate(
        `axe.run(document, ${options}).then((found) => found.violations.map(({ id, nodes }) => [id, nodes.slice(0, 3).map(({ html, failureSummary }) => html.slice(0, 200) + failureSummary)]))`,
      );
    }
    const width = await page.evaluate<number>('document.documentElement.scrollWidth');
    tabs.push(tab);
    expect(found).toEqual({ light: [], dark: [] });
    expect(width).toBeLessThanOrEqual(phone.width);
    expect(complaints.splice(0)).toEqual([]);
  });
});
