/** A subpath as a bundler for browsers and edge runtimes sees it. */
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import { build } from 'esbuild';

/** The sources at `entry` under `src`; `code` puts the exports into `bundled`. */
export async function bundle(
  entry: string,
  platform: 'browser' | 'neutral' = 'browser',
): Promise<{ readonly imports: string[]; readonly code: string }> {
  const { outputFiles, metafile } = await build({
    entryPoints: [fileURLToPath(new URL(`../../src/${entry}`, import.meta.url))],
    bundle: true,
    platform,
    mainFields: ['module', 'main'],
    conditions: ['import'],
    format: 'iife',
    globalName: 'bundled',
    write: false,
    metafile: true,
    logLevel: 'silent',
  });
  const imports = Object.values(metafile.inputs).flatMap(({ imports: all }) => all.map(({ path }) => path));
  return { imports, code: outputFiles[0]!.text };
}

/** The type of an export where there is no process, no Buffer and no require. */
export function typeWithoutNode(code: string, name: string): unknown {
  const { AbortController, AbortSignal, EventTarget, Headers, Request, Response, URL } = globalThis;
  const web = { AbortController, AbortSignal, EventTarget, Headers, Request, Response, URL };
  return runInNewContext(`${code}; typeof bundled.${name}`, web);
}
