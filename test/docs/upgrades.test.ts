/** What docs/deployment.md says of upgrades, and what a release is made with. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { closeChangelog } from '../../scripts/close-changelog.mjs';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const page = read('docs/deployment.md');

describe('upgrades, in docs/deployment.md', () => {
  it('has every code of a deprecation that the sources warn with, and no other', () => {
    const sources = readdirSync(new URL('src/', root), { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.ts'),
    );
    const inSources = sources.flatMap((name) => read(`src/${name}`).match(/HEADGATE_DEP\d{4}/g) ?? []);
    const inTable = [...page.matchAll(/^\| `(HEADGATE_DEP\d{4})` \|/gm)].map(([, code]) => code);
    expect(new Set(inTable)).toEqual(new Set(inSources));
    expect(page.includes('None at present.')).toBe(inTable.length === 0);
  });

  it('has links that lead somewhere', () => {
    const links = [...page.matchAll(/\]\(((?!https:)[^)#]+)(?:#[\w-]+)?\)/g)].map(([, path = '']) => path);
    expect(links.length).toBeGreaterThan(5);
    expect(links.filter((path) => !existsSync(new URL(path, new URL('docs/', root))))).toEqual([]);
  });
});

describe('closing the changelog', () => {
  it('names what is unreleased after the version', () => {
    expect(closeChangelog('# Changelog\n\n## Unreleased\n\n* New.\n\n## 0.1.0\n\n* First.\n', '0.2.0')).toBe(
      '# Changelog\n\n## 0.2.0\n\n* New.\n\n## 0.1.0\n\n* First.\n',
    );
  });

  it('refuses a release of nothing, and one that was made already', () => {
    expect(() => closeChangelog('# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n* First.\n', '0.2.0')).toThrow(
      'expected entries',
    );
    expect(() => closeChangelog('# Changelog\n\n## 0.1.0\n\n* First.\n', '0.2.0')).toThrow('expected entries');
    expect(() => closeChangelog('## Unreleased\n\n* New.\n\n## 0.2.0\n', '0.2.0')).toThrow(
      'has a section 0.2.0 already',
    );
  });

  it('works on the changelog as it is', () => {
    const text = read('CHANGELOG.md');
    if (/^## Unreleased$/m.test(text)) expect(closeChangelog(text, '999.0.0')).toContain('\n## 999.0.0\n');
    else expect(text).toContain(`\n## ${manifest.version}\n`);
  });
});

describe('a release', () => {
  const { jobs } = parse(read('.github/workflows/release.yml')) as {
    jobs: {
      release: {
        permissions: Record<string, string>;
        steps: { run?: string; uses?: string; with?: Record<string, string> }[];
      };
    };
  };
  const { permissions, steps } = jobs.release;

  it('has provenance, is checked before it is published, and runs scripts that exist', () => {
    expect(manifest.publishConfig).toMatchObject({ access: 'public', provenance: true });
    expect(permissions['id-token']).toBe('write');
    const publish = steps.findIndex(({ uses }) => uses?.startsWith('changesets/action@'));
    const check = steps.findIndex(({ run }) => run === 'npm run check -- publish');
    expect(check).toBeGreaterThan(-1);
    expect(check).toBeLessThan(publish);
    const scripts = JSON.stringify(steps)
      .match(/npm run ([\w:-]+)/g)!
      .map((command) => command.slice('npm run '.length));
    for (const script of scripts) expect(Object.keys(manifest.scripts)).toContain(script);
    expect(read('.ci/run')).toContain('npm run check -- publish');
  });

  it('moves the version by changesets, which leave the changelog to people', () => {
    expect(JSON.parse(read('.changeset/config.json'))).toMatchObject({
      changelog: false,
      access: 'public',
      baseBranch: 'main',
    });
    const sets = readdirSync(new URL('.changeset/', root)).filter(
      (name) => name.endsWith('.md') && name !== 'README.md',
    );
    for (const name of sets)
      expect(read(`.changeset/${name}`), name).toMatch(/^---\n"headgate": (?:major|minor|patch)\n---\n\n\S/);
  });
});
