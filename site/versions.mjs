// The pages of all versions, each built by its own sources: main at the top, the newest release of each minor version
// in a folder. `node site/versions.mjs OUT [--home https://headgate.github.io/headgate/]`
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The newest release of each minor version, newest first; pre-releases have no pages of their own. */
export function newestOfEachMinor(tags) {
  const newest = new Map();
  for (const tag of tags) {
    const [, major, minor, patch] = /^v(\d+)\.(\d+)\.(\d+)$/.exec(tag) ?? [];
    if (patch === undefined) continue;
    const release = { tag, numbers: [Number(major), Number(minor), Number(patch)], folder: `v${major}.${minor}/` };
    const other = newest.get(release.folder);
    if (other === undefined || other.numbers[2] < release.numbers[2]) newest.set(release.folder, release);
  }
  const [major, minor] = [0, 1].map((place) => (a, b) => b.numbers[place] - a.numbers[place]);
  return [...newest.values()]
    .sort((a, b) => major(a, b) || minor(a, b))
    .map(({ tag, folder }) => ({ ref: tag, folder }));
}

function build({ ref, folder }, out, home, others) {
  const copy = join(mkdtempSync(join(tmpdir(), 'headgate-pages-')), 'sources');
  const run = (command, args, env = {}) =>
    execFileSync(command, args, { cwd: copy, stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, ...env } });
  execFileSync('git', ['worktree', 'add', '--detach', copy, ref], { cwd: root, stdio: 'ignore' });
  try {
    run('npm', ['ci', '--loglevel=error']);
    run('npm', ['run', '--silent', 'docs', '--', 'build'], {
      DOCS_BASE: `${new URL(home).pathname}${folder}`,
      DOCS_VERSIONS: JSON.stringify(others),
    });
    cpSync(join(copy, 'site/dist'), join(out, folder), { recursive: true });
  } finally {
    execFileSync('git', ['worktree', 'remove', '--force', copy], { cwd: root });
    rmSync(join(copy, '..'), { recursive: true, force: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { home: { type: 'string', default: 'https://headgate.github.io/headgate/' } },
  });
  const [given] = positionals;
  if (given === undefined) throw new Error('usage: node site/versions.mjs OUT [--home URL/]');
  const out = resolve(given);
  const tags = execFileSync('git', ['tag', '--list'], { cwd: root, encoding: 'utf8' }).split('\n');
  const all = [{ ref: 'HEAD', folder: '' }, ...newestOfEachMinor(tags)];
  const menu = all.map(({ ref, folder }) => ({ text: ref === 'HEAD' ? 'main' : ref, link: `${values.home}${folder}` }));
  rmSync(out, { recursive: true, force: true });
  for (const version of all) {
    build(version, out, values.home, menu);
    console.log(`${version.ref}: ${join(out, version.folder)}`);
  }
}
