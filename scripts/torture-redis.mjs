// Replicas in processes of their own share a limit on real stores, while faults happen at random moments: no dispatch
// may exceed it.
//   npm run torture:redis -- --seeds 54 | --minutes 30 [--seed 1] [--lanes 3] [--fault WORD] [--slow 4] [--busy 5000] [--write FILE]
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const outdir = mkdtempSync(join(root, 'test-results', 'torture-'));
const folder = join(root, 'test/redis/faults');

await build({
  entryPoints: { run: join(folder, 'run.ts'), replica: join(folder, 'replica.ts') },
  outdir,
  bundle: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node20',
  outExtension: { '.js': '.mjs' },
  sourcemap: 'inline',
});
const { status } = spawnSync(
  process.execPath,
  ['--enable-source-maps', join(outdir, 'run.mjs'), ...process.argv.slice(2)],
  {
    stdio: 'inherit',
  },
);
rmSync(outdir, { recursive: true });
process.exitCode = status ?? 1;
