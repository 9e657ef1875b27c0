/** The browser that pages are tested in. */
import { type Browser, chromium } from 'playwright-core';

/** Where scripts/test-observability.mjs found or installed Chromium; undefined when it could not. */
export const chromiumPath: string | undefined = process.env.HEADGATE_CHROMIUM;

export function announceMissingBrowser(): void {
  if (chromiumPath === undefined) {
    process.stderr.write(
      '\nNOT RUN: the tests of pages in a browser. Chromium is missing; `npm run test:programs` installs it on Debian.\n\n',
    );
  }
}

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath as string, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}
