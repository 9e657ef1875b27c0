/** The inspector's page in a real browser: what it shows, how it looks, who can use it, and that it stays small. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { basicLogin, type InspectorOptions, inspector } from '../../src/observability/inspector/index.js';
import { announceMissingBrowser, chromiumPath, launch, writeForDocs } from './browser.js';
import {
  calmMoment,
  countedMoment,
  crowdedMoment,
  hostedMoment,
  type Moment,
  saturatedMoment,
  sharedMoment,
} from './moments.js';

const docs = (name: string) => fileURLToPath(new URL(`../../docs/${name}`, import.meta.url));
/** Screenshots are written for the documentation only when asked for: no two runs make the same. */
const writesDocs = process.env.HEADGATE_SCREENSHOTS === '1';

const wide = { width: 1280, height: 900 };
const phone = { width: 390, height: 844 };
const moments = { calm: calmMoment, counted: countedMoment, saturated: saturatedMoment, hosted: hostedMoment };

announceMissingBrowser();

describe.skipIf(chromiumPath === undefined)('the inspector in Chromium', () => {
  let browser: Browser;
  const closers: (() => unknown)[] = [];

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  /** An application with the inspector under a path of its own. */
  async function serve(moment: Moment, options: Partial<InspectorOptions> = {}) {
    const page = inspector(moment.flow, { authorize: () => true, ...options });
    const server = http.createServer((req, res) => void page.node(req, res));
    await new Promise<void>((resolve) => server.listen(0, resolve));
    closers.push(
      () => moment.stop(),
      () => new Promise((resolve) => server.close(resolve)),
      () => server.closeAllConnections(),
      () => page.close(),
    );
    return { inspected: page, url: `http://localhost:${(server.address() as AddressInfo).port}/internal/inspector` };
  }

  /** The page, with everything that it complained of. */
  async function open(url: string, options: BrowserContextOptions = {}): Promise<{ page: Page; complaints: string[] }> {
    const context = await browser.newContext({ viewport: wide, ...options });
    closers.push(() => context.close());
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on(
      'console',
      (message) => void (['error', 'warning'].includes(message.type()) && complaints.push(message.text())),
    );
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(url);
    await frames(page, 1);
    return { page, complaints };
  }

  const frames = (page: Page, count: number) =>
    expect
      .poll(async () => Number(await page.locator('body').getAttribute('data-frames')), { timeout: 50_000 })
      .toBeGreaterThanOrEqual(count);

  it('shows bands, flows, gate, endpoints, outcomes and waits, under its own policy and from nowhere else', async () => {
    const moment = saturatedMoment();
    const { url } = await serve(moment);
    const context = await browser.newContext();
    closers.push(() => context.close());
    const page = await context.newPage();
    const requests: string[] = [];
    const complaints: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(url);
    await page.getByText('closed', { exact: true }).waitFor();
    await page.locator('#waits li').first().waitFor();
    expect(await page.locator('.lane h3').allTextContents()).toEqual(['Priority 100', 'Priority 0', 'Priority -10']);
    expect(await page.locator('#whole .name').textContent()).toBe('All bands together');
    expect(await page.locator('#endpoints li').count()).toBe(6);
    expect(await page.locator('#endpoints .badge:visible').count()).toBe(1);
    await expect
      .poll(() => page.locator('#waits .why').first().textContent())
      .toMatch(/gated: saturation \d\.\d\d ≥ ceiling 1\.00|endpoints it may go to/);
    await expect.poll(() => page.locator('#waiting').textContent()).not.toBe('0');
    await expect.poll(() => page.locator('#totals div').first().textContent()).toMatch(/Dispatched[1-9]/);
    await expect.poll(() => page.getByRole('status').textContent()).toMatch(/The gate is closed/);
    expect(requests.filter((request) => !request.startsWith(url) && !request.startsWith('data:'))).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it('shows what requests hold of each server, where a ledger counts it', async () => {
    const { url } = await serve(countedMoment());
    const { page, complaints } = await open(url);
    const card = page.locator('#endpoints li', { hasText: 'gpu-1' });
    await expect.poll(() => card.textContent()).toContain('tokens of KV held17,000 of 20,000');
    expect(await card.getByRole('meter', { name: 'tokens of KV held' }).getAttribute('aria-valuenow')).toBe('85');
    expect(await card.getByRole('meter', { name: 'slots held' }).getAttribute('aria-valuenow')).toBe('2');
    expect(await page.locator('#endpoints li', { hasText: 'gpu-2' }).textContent()).toContain('held0 of 20,000');
    expect(complaints).toEqual([]);
  });

  it.each([
    ['counted', 'light', phone],
    ['calm', 'light', wide],
    ['calm', 'dark', phone],
    ['saturated', 'light', phone],
    ['saturated', 'dark', wide],
    ['hosted', 'light', phone],
    ['hosted', 'dark', wide],
  ] as const)('has no fault that axe finds: %s, %s', async (name, colorScheme, viewport) => {
    const { url } = await serve(moments[name]());
    // A page under its policy takes no foreign script; axe is one.
    const { page } = await open(url, { colorScheme, viewport, bypassCSP: true });
    await frames(page, 5);
    await page.addScriptTag({ content: axe.source });
    const violations = await page.evaluate<unknown>(
      'axe.run().then((found) => found.violations.map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => html + failureSummary)]))',
    );
    expect(violations).toEqual([]);
    expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(viewport.width);
  });

  it('is used by keyboard: skip link, then pause, which stops the stream, and again, which starts it', async () => {
    const { url, inspected } = await serve(calmMoment());
    const { page } = await open(url);
    await page.keyboard.press('Tab');
    expect(await page.evaluate<string>('document.activeElement.textContent')).toBe('Skip to the bands');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.getByRole('button', { name: 'Pause' }).getAttribute('aria-pressed')).toBe('true');
    await expect.poll(() => inspected.watchers).toBe(0);
    await page.keyboard.press('Space');
    await expect.poll(() => inspected.watchers).toBe(1);
    await page.getByText('live', { exact: true }).waitFor();
  });

  it('lets a browser without credentials log in, and its stream too', async () => {
    const moment = calmMoment();
    const { url } = await serve(moment, { authorize: basicLogin({ password: 'open sesame' }) });
    const stranger = await browser.newContext();
    const operator = await browser.newContext({
      httpCredentials: { username: 'ops', password: 'open sesame', send: 'unauthorized' },
    });
    closers.push(
      () => stranger.close(),
      () => operator.close(),
    );
    // Chromium was asked for a password, and had none.
    await expect((await stranger.newPage()).goto(url)).rejects.toThrow('ERR_INVALID_AUTH_CREDENTIALS');
    const page = await operator.newPage();
    await page.goto(url);
    await frames(page, 3);
    await page.getByText('live', { exact: true }).waitFor();
  });

  it('shows tenants with the neediest first, and answers why one request waits', async () => {
    const moment = saturatedMoment();
    const { url } = await serve(moment);
    const { page, complaints } = await open(url);
    await expect.poll(() => moment.flow.stats().waiting, { timeout: 30_000 }).toBeGreaterThan(100);
    void moment.flow.enqueue({ byteSize: 1, id: 'find-me' } as never, { fairnessId: 'acme', priority: -10 });
    await expect.poll(() => page.locator('#tenants tr').count()).toBeGreaterThan(5);
    const header = await page.locator('#tenants-section thead th').allTextContents();
    expect(header.slice(0, 4)).toEqual(['tenant', 'priority', 'running', 'waiting']);
    await page.getByLabel('Why does this request wait?').fill('find-me');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('#found').textContent()).toMatch(/^Priority -10, has waited .*: band -10/);
    expect(complaints).toEqual([]);
  });

  it('shows quotas with what they wait for, sessions, and what tenants run of their caps', async () => {
    const { url } = await serve(hostedMoment());
    const { page, complaints } = await open(url);
    const rows = page.locator('#quotas tr');
    expect(await rows.count()).toBe(4);
    const cells = (await rows.allTextContents()).map((text) => text.replaceAll(/\s+/g, ' '));
    expect(cells.filter((text) => text.includes('rests'))).toHaveLength(2);
    expect(await rows.locator('th .badge:visible').count()).toBe(2);
    expect(await rows.first().locator('td').last().textContent()).toBe('configuration');
    expect(await page.locator('#quota-counts').textContent()).toMatch(/^1 refused upstream/);
    const figures = await page.locator('#sessions div').allTextContents();
    expect(figures).toEqual(['resident2 of 2', 'of them idle0', 'waiting1', 'tokens held1,400', 'ended by expiry0']);
    const acme = page.locator('#tenants tr', { hasText: 'acme' });
    expect(await acme.locator('.cap.reached').textContent()).toBe('2 of 2 requests');
    expect(complaints).toEqual([]);
  });

  it('shows what is held of shared limits, and what is wrong with the store', async () => {
    const { url } = await serve(hostedMoment(), { shared: () => sharedMoment });
    const { page, complaints } = await open(url);
    const rows = page.locator('#shared tr');
    expect(await rows.count()).toBe(2);
    expect(await rows.locator('th .name').allTextContents()).toEqual(['chat', 'a-model-server-with-a-long-name']);
    expect(await rows.locator('th .badge:visible').allTextContents()).toEqual(['lease over']);
    expect(await rows.first().locator('td').allTextContents()).toEqual([
      '20',
      '18',
      '40',
      '64 requests',
      '16',
      '0.7 s',
    ]);
    expect(await page.locator('#shared-counts').textContent()).toBe(
      '4 replicas · store answers in 1 ms · 2 of 10 calls missed · breaker open · store began anew once · over the limit by an estimated 3 · 2 quotas drawn, 1 by a fallback share',
    );
    expect(await page.locator('#shared-problem:visible').textContent()).toContain('connect ECONNREFUSED');
    expect(complaints).toEqual([]);
    for (const [width, scheme] of [[390, 'dark'] as const, [1280, 'light'] as const]) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme: scheme });
      // The table scrolls in itself; the page does not.
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
    }
  });

  it('stops when the page is closed', async () => {
    const { url, inspected } = await serve(calmMoment());
    const { page } = await open(url);
    expect(inspected.watchers).toBe(1);
    await page.close();
    await expect.poll(() => inspected.watchers).toBe(0);
  });

  it('stays small with 10,000 flows, and rewrites only what changed', async () => {
    const { url } = await serve(crowdedMoment(10_000), { intervalMs: 100 });
    const { page, complaints } = await open(url);
    await frames(page, 3);
    expect(await page.evaluate<number>("document.querySelectorAll('*').length")).toBeLessThan(900);
    await expect
      .poll(() => page.locator('.lane').nth(1).locator('.flows li').last().textContent())
      .toMatch(/9,992 other flows\s*9,992/);
    // Nothing moves but the clock: what a frame rewrites is the waits' times, not the page.
    const counted = await page.evaluate<number>(`(async () => {
      let elements = 0;
      const observer = new MutationObserver((records) => {
        for (const { addedNodes, removedNodes } of records) {
          elements += [...addedNodes, ...removedNodes].filter((node) => node.nodeType === 1).length;
        }
      });
      observer.observe(document.body, { childList: true, subtree: true });
      const before = Number(document.body.dataset.frames);
      while (Number(document.body.dataset.frames) < before + 10) await new Promise((resolve) => setTimeout(resolve, 20));
      observer.disconnect();
      return elements;
    })()`);
    // The chart may begin a new column meanwhile.
    expect(counted).toBeLessThan(20);
    expect(complaints).toEqual([]);
  });

  it('moves nothing for those who ask for no motion', async () => {
    const { url } = await serve(calmMoment());
    const { page } = await open(url, { reducedMotion: 'reduce' });
    const moving = () =>
      page.evaluate<number>(
        "[...document.querySelectorAll('*')].filter((element) => getComputedStyle(element).transitionDuration !== '0s').length",
      );
    expect(await moving()).toBe(0);
    await page.emulateMedia({ reducedMotion: 'no-preference' });
    expect(await moving()).toBeGreaterThan(0);
  });

  it.each([
    ['calm', calmMoment],
    ['saturated', saturatedMoment],
  ] as const)('looks like something: %s', async (name, make) => {
    const { url } = await serve(make());
    const { page } = await open(url);
    await frames(page, writesDocs ? 70 : 8);
    const image = await page.screenshot({ fullPage: true });
    if (writesDocs) await writeForDocs(browser, image, docs(`inspector-${name}.webp`));
    expect(image.length).toBeGreaterThan(30_000);
  });
});
