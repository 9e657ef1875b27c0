/** Measures where nothing else disturbs the heap: a script, in a process of its own. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';

/** A probe that takes longer is stopped, and fails. */
const mostMs = 280_000;

/** Runs `script` with --expose-gc and returns the JSON that it prints. */
export async function runProbe<T>(script: URL, ...args: string[]): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-probe-'));
  try {
    const outfile = join(folder, 'probe.mjs');
    await build({
      entryPoints: [fileURLToPath(script)],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      logLevel: 'silent',
    });
    const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', outfile, ...args], {
      timeout: mostMs,
    });
    return JSON.parse(stdout) as T;
  } finally {
    await rm(folder, { recursive: true });
  }
}
