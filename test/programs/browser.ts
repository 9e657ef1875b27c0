/** The browser that pages are tested in. */
import { writeFileSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Where scripts/install-programs.mjs found or installed Chromium; undefined when it could not. */
export const chromiumPath: string | undefined = process.env.HEADGATE_CHROMIUM;

export function announceMissingBrowser(): void {
  if (chromiumPath === undefined) {
    process.stderr.write(
      '\nNOT RUN: the tests of pages in a browser. Chromium is missing; `npm run check -- programs` installs it on Debian.\n\n',
    );
  }
}

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath as string, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

/** Writes a screenshot for the documentation: narrower, and as WebP, of which a page may show two and stay small. */
export async function writeForDocs(browser: Browser, screenshot: Buffer, path: string, width = 760): Promise<void> {
  const page = await browser.newPage();
  const webp = await page.evaluate<string>(`(async () => {
    const image = new Image();
    image.src = 'data:image/png;base64,${screenshot.toString('base64')}';
    await image.decode();
    const canvas = Object.assign(document.createElement('canvas'), { width: ${width}, height: Math.round((image.height * ${width}) / image.width) });
    const context = canvas.getContext('2d');
    context.imageSmoothingQuality = 'high';
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL('image/webp', 0.35).split(',')[1];
  })()`);
  writeFileSync(path, Buffer.from(webp, 'base64'));
  await page.close();
}
