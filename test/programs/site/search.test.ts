/** What a reader does on every page: search by keyboard, turn the light off, look for another version. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import { announceMissingBrowser, chromiumPath, launch } from '../browser.js';
import { serveSite } from './built-site.js';

announceMissingBrowser();

describe.skipIf(chromiumPath === undefined)('every page', () => {
  let browser: Browser;
  let site: Awaited<ReturnType<typeof serveSite>>;
  let page: Page;

  beforeAll(async () => {
    browser = await launch();
    site = await serveSite();
    page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: 'light' });
    await page.goto(`${site.url}/getting-started.html`);
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  it('finds another by the keyboard alone', async () => {
    await page.getByRole('button', { name: 'Search' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.locator('#localsearch-input').waitFor();
    await page.keyboard.type('quota-detector');
    await page.locator('.VPLocalSearchBox .result').first().waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(() => new URL(page.url()).pathname).toMatch(/quota/);
  });

  it.each([
    ['My stream is cut after 60 seconds', 'my-stream-is-cut-after-60-seconds'],
    ['My pictures eat the quota', 'my-pictures-eat-the-quota'],
    ['vLLM ignores my priority', 'vllm-ignores-my-priority'],
  ])('finds the answer to "%s"', async (question, heading) => {
    await page.keyboard.press('Control+k');
    await page.locator('#localsearch-input').fill(question);
    const first = page.locator('.VPLocalSearchBox a.result').first();
    await expect.poll(() => first.getAttribute('href')).toContain(`troubleshooting.html#${heading}`);
    await page.keyboard.press('Escape');
  });

  it('is dark when the reader wants it so, and stays dark', async () => {
    const isDark = (): Promise<boolean> =>
      page.evaluate<boolean>("document.documentElement.classList.contains('dark')");
    expect(await isDark()).toBe(false);
    await page.getByRole('switch').first().click();
    expect(await isDark()).toBe(true);
    await page.reload();
    expect(await isDark()).toBe(true);
  });

  it('says of which version it is, and where those of others are', async () => {
    await page.getByRole('button', { name: `v${manifest.version}` }).hover();
    const all = page.getByRole('link', { name: 'All versions' }).first();
    expect(await all.getAttribute('href')).toBe('https://github.com/headgate/headgate/tags');
  });
});
