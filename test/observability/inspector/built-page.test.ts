import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { buildPage } from '../../../scripts/build-inspector-page.mjs';

it('the page that is served is what its sources make: npm run build:inspector', async () => {
  const built = readFileSync(
    new URL('../../../src/observability/inspector/page/built-page.ts', import.meta.url),
    'utf8',
  );
  expect(built).toBe(await buildPage());
});
