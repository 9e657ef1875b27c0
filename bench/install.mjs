// Installs the peers when they are missing or older than the lock file: `node install.mjs [folder]`, this one by
// default.
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const base = new URL(`${process.argv[2] ?? '.'}/`, import.meta.url);
const mtime = (path) => statSync(new URL(path, base), { throwIfNoEntry: false })?.mtimeMs ?? 0;

// npm writes this file last.
if (mtime('node_modules/.package-lock.json') < Math.max(mtime('package-lock.json'), mtime('package.json'))) {
  const folder = fileURLToPath(base);
  const { status } = spawnSync('npm', ['ci', '--prefix', folder, '--loglevel=error'], {
    cwd: folder,
    stdio: 'inherit',
  });
  process.exitCode = status ?? 1;
}
