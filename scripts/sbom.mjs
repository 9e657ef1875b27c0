// Writes what a user of the package gets with it, as a CycloneDX document: node scripts/sbom.mjs > headgate.cdx.json
// `npm sbom --omit dev` in this folder leaves out dependencies that development tools have in common with the package.
// So the package is resolved alone, at the versions of the lock file.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = new URL('../', import.meta.url);
const read = (name) => JSON.parse(readFileSync(new URL(name, root), 'utf8'));

export function sbom() {
  const { name, version, license, description, repository, dependencies } = read('package.json');
  const { packages } = read('package-lock.json');
  const exact = Object.fromEntries(
    Object.keys(dependencies).map((one) => [one, packages[`node_modules/${one}`].version]),
  );
  const scratch = mkdtempSync(join(tmpdir(), 'headgate-sbom-'));
  try {
    const folder = join(scratch, name); // npm names the root after its folder
    mkdirSync(folder);
    writeFileSync(
      join(folder, 'package.json'),
      JSON.stringify({ name, version, license, description, repository, dependencies: exact }),
    );
    npm(folder, 'install', '--package-lock-only', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund');
    return JSON.parse(
      npm(folder, 'sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'library'),
    );
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

function npm(cwd, ...args) {
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm ${args.join(' ')}: ${stderr}`);
  return stdout;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(JSON.stringify(sbom(), undefined, 2));
