/** Builds the checker, a program in Go around porcupine, and asks it about histories. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { History } from './recorded-store.js';

const run = promisify(execFile);
const source = fileURLToPath(new URL('checker/', import.meta.url));
const results = fileURLToPath(new URL('../../../test-results/', import.meta.url));

export const hasGo: boolean = spawnSync('go', ['version']).status === 0;
if (!hasGo) {
  // On a build machine a test that does not run is a failure.
  if (process.env.CI) throw new Error('go must be installed: node scripts/install-engines.mjs');
  process.stderr.write(
    '\nNOT RUN: histories of leases, because this machine has no go (node scripts/install-engines.mjs)\n\n',
  );
}

export interface Verdict {
  readonly result: 'Ok' | 'Illegal' | 'Unknown';
  readonly calls: number;
  /** The first call that the longest order found does not reach, what it left for it, and what each replica held. */
  readonly stuckAt?: unknown;
  readonly room?: number;
  readonly holds?: readonly number[];
}

export interface Checker {
  check(history: History): Promise<Verdict>;
  close(): void;
}

/** The first build fetches porcupine, and takes as long as Go's own library takes. */
export async function buildChecker(): Promise<Checker> {
  const folder = mkdtempSync(join(results, 'checker-'));
  const program = join(folder, 'checker');
  await run('go', ['build', '-buildvcs=false', '-o', program, '.'], { cwd: source });
  let files = 0;
  return {
    async check(history) {
      const path = join(folder, `${files++}.json`);
      writeFileSync(path, JSON.stringify(history));
      const { stdout } = await run(program, [path]);
      return JSON.parse(stdout) as Verdict;
    },
    close: () => rmSync(folder, { recursive: true }),
  };
}
