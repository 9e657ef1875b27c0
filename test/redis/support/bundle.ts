/** A program for processes of their own, from a source file of the tests. */
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const results = fileURLToPath(new URL('../../../test-results/', import.meta.url));

/** Path of the program. `entry` is the URL of its source. */
export async function bundle(entry: URL): Promise<string> {
  const outfile = join(mkdtempSync(join(results, 'program-')), 'program.mjs');
  await build({
    entryPoints: [fileURLToPath(entry)],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: 'inline',
    logLevel: 'error',
  });
  return outfile;
}

/** Starts a process and resolves to the one message that it sends. */
export function answerOf<T>(
  program: string,
  args: readonly string[],
): { readonly child: ChildProcess; readonly answer: Promise<T> } {
  const child = fork(program, [...args]);
  const answer = new Promise<T>((resolve, reject) => {
    child.once('message', (message) => resolve(message as T));
    child.once('error', reject);
    child.once('exit', (code, signal) => reject(new Error(`${program} ended with ${code ?? signal}`)));
  });
  return { child, answer };
}
