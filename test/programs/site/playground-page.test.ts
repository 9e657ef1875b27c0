/** The playground in Chromium: used by pointer and by keyboard, and as fast as it is said to be. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { announceMissingBrowser, chromiumPath, launch } from '../browser.js';
import { serveSite } from './built-site.js';

announceMissingBrowser();

describe.skipIf(chromiumPath === undefined)('the playground in Chromium', () => {
  let browser: Browser;
  let site: Awaited<ReturnType<typeof serveSite>>;
  const open: Page[] = [];
  const complaints: string[] = [];

  beforeAll(async () => {
    browser = await launch();
    site = await serveSite();
  });
  afterEach(async () => {
    for (const page of open.splice(0)) await page.context().close();
    expect(complaints.splice(0)).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  async function visit(hash = ''): Promise<Page> {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 900 },
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    const page = await context.newPage();
    open.push(page);
    page.on('pageerror', (error) => void complaints.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
    });
    await page.goto(`${site.url}/playground.html${hash}`);
    await figures(page).first().waitFor();
    return page;
  }

  const figures = (page: Page) => page.locator('.pg-figures tbody tr');
  const waitingOf = async (page: Page, row: number): Promise<number> =>
    Number(await figures(page).nth(row).locator('td').nth(3).textContent());
  const scene = (page: Page, title: string) =>
    page.getByRole('region', { name: 'Scenes' }).getByRole('button', { name: title });
  const button = (page: Page, name: string) =>
    page.getByRole('region', { name: 'What happens' }).getByRole('button', { name, exact: true });
  const invariants = async (page: Page): Promise<string> => (await page.locator('.pg-invariants').textContent()) ?? '';
  const sentence = async (page: Page): Promise<string> => (await page.locator('.pg-sentence').textContent()) ?? '';
  const second = async (page: Page): Promise<number> =>
    Number.parseInt((await page.locator('.pg-time output').textContent()) ?? '', 10);

  it('shows a moment of the first scene before anybody plays', async () => {
    const page = await visit();
    await expect.poll(() => second(page)).toBe(40);
    await expect.poll(() => waitingOf(page, 0)).toBeGreaterThan(100);
    expect(
      await page.getByRole('img', { name: /At 40 s \d+ requests wait and 36 run; the gate is closed/ }).count(),
    ).toBe(1);
    await page.waitForTimeout(300);
    expect(await second(page)).toBe(40);
  });

  it('starts each scene by one click, and stops', async () => {
    const page = await visit();
    for (const [title, tenant] of [
      ['Batch beside chat', 'nightly'],
      ['A server dies', 'trial'],
      ['Redis is cut', 'bolt'],
      ['One noisy tenant', 'cove'],
    ] as const) {
      await scene(page, title).click();
      await page.getByRole('row', { name: new RegExp(`^${tenant}`) }).waitFor();
      await expect.poll(() => second(page)).toBeGreaterThan(1);
      expect(await scene(page, title).getAttribute('aria-pressed')).toBe('true');
    }
    await page.getByRole('button', { name: 'Pause' }).click();
    const stoppedAt = await second(page);
    await page.getByRole('button', { name: 'Play' }).waitFor();
    expect(await second(page)).toBe(stoppedAt);
  });

  it('is used by keyboard alone: a scene, a slider, a policy', async () => {
    const page = await visit();
    await scene(page, 'A server dies').focus();
    await page.keyboard.press('Enter');
    await figures(page).filter({ hasText: 'premium' }).waitFor();
    for (let tabs = 0; tabs < 4; tabs++) await page.keyboard.press('Tab');
    expect(await page.evaluate<string>('document.activeElement.labels[0].textContent')).toBe('premium: load');
    await page.keyboard.press('End');
    await expect.poll(() => page.evaluate<string>('location.hash')).toContain('t=premium+60+');
    await page.getByLabel('Between tenants').focus();
    await page.keyboard.press('End');
    await expect.poll(() => page.evaluate<string>('location.hash')).toContain('fairness=global-strict-fairness-policy');
    await expect.poll(() => page.locator('.pg-code pre').textContent()).toContain('globalStrict()');
  });

  it('answers a slider at the same instant: more seats, and less waits', async () => {
    const page = await visit();
    await expect.poll(() => waitingOf(page, 0)).toBeGreaterThan(100);
    await page.getByLabel('Servers', { exact: true }).fill('6');
    await expect.poll(() => waitingOf(page, 0)).toBeLessThan(100);
    expect(await second(page)).toBe(40);
  });

  it('has quotas of a provider and a slow server: in the picture, the link, the code and the file', async () => {
    const page = await visit();
    await page.getByLabel('Requests a minute').fill('300');
    await button(page, 'A server is slow').click();
    await page.getByRole('img', { name: /Of the quota of requests \d+ % is taken\. gpu-1 is slow\./ }).waitFor();
    expect(await page.evaluate<string>('location.hash')).toMatch(/&requestQuota=300&f=slow\+2\+40\+20$/);
    await page.getByLabel('A server is slow: server').focus();
    await page.keyboard.press('ArrowLeft');
    await page.getByRole('img', { name: /gpu-0 is slow\./ }).waitFor();
    const code = page.locator('.pg-code pre');
    await expect.poll(() => code.textContent()).toContain('quotaDetector({');
    await page.getByText('YAML').click();
    await expect
      .poll(() => code.textContent())
      .toMatch(/slowdowns:\n {2}- server: gpu-0\n {4}at: 40s\n {4}for: 20s\n {4}factor: 4\n/);
  });

  it('has budgets and the ledger of capacity: in the table, the picture and the code', async () => {
    const page = await visit();
    expect(await page.getByRole('columnheader', { name: 'budget left' }).count()).toBe(0);
    await page.getByLabel('Tokens a minute of each tenant').fill('60000');
    await page.getByRole('columnheader', { name: 'budget left' }).waitFor();
    expect(await figures(page).first().locator('td').last().textContent()).toMatch(/^\d %$/);
    await page.getByLabel('KV cache of each').fill('6000');
    await page.getByRole('img', { name: /In the ledger the fullest server is at \d+ %\./ }).waitFor();
    await expect.poll(() => page.locator('.pg-code pre').textContent()).toMatch(/capacityLedger\({[\s\S]*budgets\({/);
  });

  it.each([
    ['A server dies', 'It comes back', /gpu-1 is down\./],
    ['A server is slow', 'It is fast again', /gpu-1 is slow\./],
    ['Redis is cut', 'Redis is back', /Redis is cut\./],
    ['A tenant floods', 'The flood ends', /cove sends 6 times its load\./],
    ['Reload', 'Reload the first file', /After the reload each server has 6 seats\./],
  ])('%s at a click, is mended by the next, and the invariants hold', async (begin, end, seen) => {
    const page = await visit();
    const picture = page.getByRole('img', { name: seen });
    await expect.poll(() => invariants(page)).toMatch(/^\s*0 violations in 40 looks/);
    expect(await picture.count()).toBe(0);
    await button(page, begin).click();
    await picture.waitFor();
    // Long enough for a machine that is busy.
    await page.getByLabel(`${begin}: for`).fill('75');
    const broken = await sentence(page);
    await button(page, 'Play').click();
    // The second is rounded: 48 whole ones have been looked at.
    await expect.poll(() => second(page), { timeout: 30_000 }).toBeGreaterThanOrEqual(49);
    await button(page, 'Pause').click();
    expect(await sentence(page)).not.toBe(broken);
    await expect.poll(() => invariants(page)).toMatch(/^\s*0 violations in (?:4[89]|[5-9]\d) looks/);
    const [, sent, ...parts] =
      /of (\d+) requests (\d+) ended, (\d+) were dropped, (\d+) wait and (\d+) run/.exec(await invariants(page)) ?? [];
    expect(parts.reduce((sum, part) => sum + Number(part), 0)).toBe(Number(sent));
    await button(page, end).click();
    await expect.poll(() => picture.count()).toBe(0);
  });

  it('says plainly what stands in for Redis, and what each replica may take', async () => {
    const page = await visit();
    expect(await invariants(page)).not.toContain('localStore');
    await button(page, 'Redis is cut').click();
    await expect.poll(() => invariants(page)).toContain('A browser reaches no Redis. In its place is localStore()');
    await expect.poll(() => invariants(page)).toMatch(/The replicas may take \d+ \+ \d+ \+ \d+ = \d+ of 36\./);
  });

  it('shows a violation where there is one: the control', async () => {
    const page = await visit();
    await button(page, 'Miscount a seat').click();
    await button(page, 'Play').click();
    await page
      .getByRole('alert')
      .filter({ hasText: /Violated\. 41 s: the endpoints have \d+ seats taken, the pool \d+/ })
      .waitFor();
    expect(await invariants(page)).not.toContain('0 violations');
  });

  it('copies a link that shows the same to somebody else, and the file', async () => {
    const page = await visit();
    await page.getByRole('button', { name: 'Batch beside chat' }).click();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Copy link' }).click();
    const link = await page.evaluate<string>('navigator.clipboard.readText()');
    const other = await visit(new URL(link).hash);
    await figures(other).filter({ hasText: 'nightly' }).waitFor();
    await other.getByText('YAML').click();
    await other.getByRole('button', { name: 'Copy', exact: true }).click();
    expect(await other.evaluate<string>('navigator.clipboard.readText()')).toContain('minCeiling: 0.6');
  });

  it('draws on while a thousand wait', async () => {
    const page = await visit('#t=acme+60+400+150+0&servers=2');
    await expect.poll(() => waitingOf(page, 0)).toBeGreaterThan(1000);
    await page.getByRole('button', { name: 'Play' }).click();
    const frames = await page.evaluate<number[]>(`new Promise((resolve) => {
      const times = [];
      const note = (now) => (times.push(now) < 181 ? requestAnimationFrame(note) : resolve(times));
      requestAnimationFrame(note);
    })`);
    const lengths = frames
      .slice(1)
      .map((now, index) => now - (frames[index] as number))
      .sort((a, b) => a - b);
    const perSecond = (180 * 1000) / ((frames.at(-1) as number) - (frames[0] as number));
    // How fast depends on the machine; what is measured is told.
    process.stdout.write(
      `Playing, ${await waitingOf(page, 0)} waiting: ${perSecond.toFixed(1)} frames/s, p95 ${lengths[171]?.toFixed(1)} ms\n`,
    );
    expect(lengths).toHaveLength(180);
    expect(await second(page)).toBeGreaterThan(40);
  });
});
