/** Reads the files of figures that theory, simulations and other implementations give: every `*.json` of one folder. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const bundled = fileURLToPath(new URL('./vectors', import.meta.url));

/** `THEORY_DIR`, else the copy in the repository. */
const folder: string = resolve(process.env.THEORY_DIR || bundled);

export interface TheoryFile {
  readonly name: string;
  /** What is in it, by kind. */
  readonly kinds: Readonly<Record<string, never>>;
}

/** @throws Error when the folder has no file. */
export function readTheoryFiles(): TheoryFile[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  if (names.length === 0) throw new Error(`no *.json in ${folder}`);
  return names.map((name) => {
    const { _about, ...kinds } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Record<string, never>;
    return { name, kinds };
  });
}
