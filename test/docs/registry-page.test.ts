/** What the registry shows of the package: its page is the README, whose links it resolves against the repository. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };

const root = new URL('../../', import.meta.url);
const readme = readFileSync(new URL('README.md', root), 'utf8');

describe('the page of the package', () => {
  it('knows where the code, the page and the issues are, in one place', () => {
    const [, home] = /^git\+(https:\/\/.+)\.git$/.exec(manifest.repository.url)!;
    expect(manifest.homepage).toBe(`${home}#readme`);
    expect(manifest.bugs.url).toBe(`${home}/issues`);
  });

  it('begins with how to install it', () => {
    const commands = [...readme.matchAll(/```sh\n(.*?)```/gs)].map(([, command]) => command);
    expect(commands[0]).toBe('npm install headgate\n');
    expect(readme.indexOf('npm install headgate')).toBeLessThan(readme.indexOf('npm run'));
  });

  it('has links that lead to files of the repository', () => {
    const links = [...readme.matchAll(/\]\(([^)#]+)(?:#[\w-]+)?\)/g)].map(([, target]) => target as string);
    const relative = links.filter((target) => !target.startsWith('https://'));
    expect(relative.length).toBeGreaterThan(20);
    expect(
      relative.filter(
        (target) => target.startsWith('/') || target.startsWith('..') || !existsSync(new URL(target, root)),
      ),
    ).toEqual([]);
  });

  it('has a changelog in step with its version', () => {
    const headings = [...readFileSync(new URL('CHANGELOG.md', root), 'utf8').matchAll(/^## (.+)$/gm)].map(
      ([, heading]) => heading,
    );
    expect(headings.filter((heading) => heading !== 'Unreleased')[0]).toBe(manifest.version);
    expect(headings.indexOf('Unreleased')).toBeLessThanOrEqual(0);
  });
});
