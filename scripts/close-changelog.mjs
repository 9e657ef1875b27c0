// Gives the section "Unreleased" of the changelog the version that package.json has: the second half of
// `npm run release -- version`.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = new URL('../', import.meta.url);

/**
 * The changelog with "Unreleased" named after the version. Throws when there is nothing to release, or the version is
 * there already.
 */
export function closeChangelog(text, version) {
  if (new RegExp(`^## ${version.replaceAll('.', '\\.')}$`, 'm').test(text)) {
    throw new Error(`CHANGELOG.md has a section ${version} already`);
  }
  const [, section] = /^## Unreleased\n(.*?)(?=^## |(?![\s\S]))/ms.exec(text) ?? [];
  if (!section?.trim()) throw new Error('CHANGELOG.md: expected entries under "## Unreleased"');
  return text.replace(/^## Unreleased$/m, `## ${version}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = new URL('CHANGELOG.md', root);
  const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
  writeFileSync(file, closeChangelog(readFileSync(file, 'utf8'), version));
  console.log(`CHANGELOG.md: Unreleased is ${version} now`);
}
