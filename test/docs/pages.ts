/** The README and the pages of docs/ that are written by hand, with their fenced blocks. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root: string = fileURLToPath(new URL('../../', import.meta.url));

/** From the root: `docs/api.md`. The generated reference has a check of its own: the compiler. */
export const pages: readonly string[] = [
  'README.md',
  ...readdirSync(`${root}docs`, { recursive: true, encoding: 'utf8' })
    .map((name) => `docs/${name.replaceAll('\\', '/')}`)
    .filter((page) => page.endsWith('.md') && !page.startsWith('docs/reference/'))
    .sort(),
];

export interface Block {
  readonly page: string;
  /** Of the fence that opens it, from 1 up. */
  readonly line: number;
  readonly language: string;
  readonly code: string;
  /** The test named in a comment above it: `<!-- run by test/docs/policies.test.ts -->`. */
  readonly test: string | undefined;
}

export function blocksOf(page: string): Block[] {
  const text = readFileSync(root + page, 'utf8');
  return [...text.matchAll(/(?:<!-- \w+ by (\S+) -->\n)?^( *)```(\w*)\n(.*?)^ *```$/gms)].map(
    ({ 0: all, 1: test, 2: indent = '', 3: language = '', 4: code = '', index }) => ({
      page,
      line: text.slice(0, index + all.indexOf('```')).split('\n').length,
      language,
      code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      test,
    }),
  );
}
