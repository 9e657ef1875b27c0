// Would a release work? `npm publish --dry-run`, without warnings and with the right files; an SBOM that has every
// dependency. It sends nothing.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { sbom } from './sbom.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { name, version, bin, dependencies } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
const problems = [];

// A tag of its own: the version need not be above the newest that is published.
const args = ['publish', '--dry-run', '--json', '--ignore-scripts', '--tag', 'dry-run'];
const { status, stdout, stderr } = spawnSync('npm', args, { cwd: root, encoding: 'utf8' });
if (status !== 0) problems.push(`npm ${args.join(' ')}: ${stderr}`);
const warnings = stderr
  .split('\n')
  .filter((line) => line.startsWith('npm warn publish') && !line.includes('requires you to be logged in'));
problems.push(...warnings);

const report = status === 0 ? JSON.parse(stdout)[name] : undefined;
const paths = report?.files.map(({ path }) => path) ?? [];
const isExpected = (path) =>
  /^dist\/|^(?:AGENTS|CHANGELOG|README|THIRD_PARTY_NOTICES)\.md$|^LICENSE$|^package\.json$/.test(path);
problems.push(...paths.filter((path) => !isExpected(path)).map((path) => `${path} should not be published`));
const required = [
  'AGENTS.md',
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'THIRD_PARTY_NOTICES.md',
  'dist/index.js',
  'dist/index.cjs',
  ...Object.values(bin),
];
problems.push(...required.filter((path) => !paths.includes(path)).map((path) => `${path} would not be published`));

const { metadata, components } = sbom();
if (metadata.component.name !== name || metadata.component.version !== version)
  problems.push('the SBOM is not that of the package');
const listed = components.map((component) => component.name);
problems.push(
  ...Object.keys(dependencies)
    .filter((one) => !listed.includes(one))
    .map((one) => `${one} is not in the SBOM`),
);

for (const problem of problems) console.error(problem);
console.log(
  `${name}@${version}: ${paths.length} files, ${report?.size ?? 0} bytes packed; SBOM of ${listed.length} components: ${listed.join(', ')}`,
);
process.exitCode = problems.length === 0 ? 0 : 1;
