/**
 * The code blocks of README and docs as a reader pastes them into a TypeScript project. Those of the README and of
 * `complete` pages compile in strict mode as they stand. The blocks of other pages are JavaScript that leaves names and
 * types to the reader: what they import and the options that they set exist.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterAll, describe, expect, it } from 'vitest';
import { entryPoints } from '../../scripts/entry-points.mjs';
import { blocksOf, pages } from './pages.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** Inside the package, so that the snippets find its dependencies. */
const scratch = `${root}test-results/pasted/`;
mkdirSync(scratch, { recursive: true });
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Pages whose blocks are complete programs. */
const complete = ['README.md', 'docs/index.md', 'docs/getting-started.md', 'docs/api.md'];

/** A block of a tutorial begins with the name of its file. Such files import each other; tutorials.test.ts runs them all. */
const isFile = (code: string): boolean => /^\/\/ [\w.-]+\.mjs\n/.test(code);

interface Source {
  readonly page: string;
  readonly file: string;
  readonly code: string;
  readonly isTypeScript: boolean;
}

const blocks: readonly Source[] = pages.flatMap((page) =>
  blocksOf(page)
    .filter(({ language, code }) => (language === 'js' && !isFile(code)) || language === 'ts')
    .map(({ language, code }, index) => {
      const file = `${scratch}${page.replaceAll(/\W/g, '-')}-${index + 1}.mts`;
      // A block without imports is a module all the same, and shares no names with others.
      writeFileSync(file, `${code}\nexport {};\n`);
      return { page, file, code, isTypeScript: language === 'ts' };
    }),
);

const program = ts.createProgram(
  blocks.map(({ file }) => file),
  {
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts'],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: ['node'],
    typeRoots: [`${root}node_modules/@types`],
    paths: Object.fromEntries(
      Object.entries(entryPoints).map(([name, path]) => [
        name === 'index' ? 'headgate' : `headgate/${name}`,
        [root + path],
      ]),
    ),
  },
);

/** Modules, exports and options that do not exist. */
const doesNotExist: ReadonlySet<number> = new Set([2305, 2307, 2353, 2551, 2561, 2614, 2724]);

/** A host's requests may have fields of its own; without a type parameter the controller cannot know them. */
function isFieldOfTheHosts(message: string | ts.DiagnosticMessageChain): boolean {
  return ts.flattenDiagnosticMessageText(message, ' ').includes("does not exist in type 'FlowRequest'");
}

function errorsOf({ file, page, isTypeScript }: Source): string[] {
  const source = program.getSourceFile(file)!;
  const isComplete = complete.includes(page) || isTypeScript;
  return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
    .filter(
      ({ code, messageText }) =>
        isComplete || code < 2000 || (doesNotExist.has(code) && !isFieldOfTheHosts(messageText)),
    )
    .map(({ messageText, start = 0, code }) => {
      const line = source.getLineAndCharacterOfPosition(start).line;
      return `TS${code}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}\n  ${source.text.split('\n')[line]?.trim()}`;
    });
}

describe.each(pages.filter((page) => blocks.some((block) => block.page === page)))('%s', (page) => {
  const own = blocks.filter((block) => block.page === page);

  it.each(own.map((block, index) => [index + 1, block] as const))('block %i compiles', (_, block) => {
    expect(errorsOf(block)).toEqual([]);
  });

  it('has no syntax that Node 20 cannot run', () => {
    // `using` came with Node 24.
    for (const { code } of own) expect(code).not.toMatch(/^\s*(?:await\s+)?using\s+\w+\s*=/m);
  });
});
