/** The simulator runs in a browser: a bundle for one needs nothing of Node. */
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import { build } from 'esbuild';
import { expect, it } from 'vitest';

it('bundles for browsers, and runs without process, Buffer and require', async () => {
  const entry = fileURLToPath(new URL('../../src/simulator/index.ts', import.meta.url));
  const { outputFiles, metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    platform: 'browser',
    format: 'iife',
    globalName: 'simulator',
    write: false,
    metafile: true,
    logLevel: 'silent',
  });
  const imports = Object.values(metafile.inputs).flatMap(({ imports: all }) => all.map(({ path }) => path));
  expect(imports.filter((path) => path.startsWith('node:'))).toEqual([]);
  const completed: unknown = runInNewContext(
    `${outputFiles[0]!.text}
    simulator.simulate({
      duration: 60000,
      servers: [{ model: 'slots', slots: 2, serviceTime: 100 }],
      traffic: [{ tenant: 'a', arrivals: { type: 'fixed', rate: 10, offset: 0.5 } }],
      flow: { saturationDetector: (pool) => pool.inFlightRequests / 2 },
    }).counts.completed`,
    { performance, AbortController, TextEncoder, TextDecoder },
  );
  expect(completed).toBe(600);
});
