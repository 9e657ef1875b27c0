// Writes built-page.ts: the inspector's page in one text, from page.html, page.css and the browser's scripts. It is a
// module, so that every bundler takes it as it is. git does not know it: installing makes it, and so does whatever reads
// the sources, lest it be older than they are.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const page = new URL('../src/observability/inspector/page/', import.meta.url);
const built = new URL('built-page.ts', page);
const read = (name) => readFileSync(new URL(name, page), 'utf8');

/** Puts `content` in place of the one tag that stands for it. */
function inline(html, tag, content) {
  const [before, after, ...more] = html.split(tag);
  if (after === undefined || more.length > 0) throw new Error(`page.html: expected ${tag} once`);
  return `${before}${content}${after}`;
}

async function builtText() {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('browser/main.ts', page))],
    bundle: true,
    write: false,
    format: 'iife',
    target: 'es2022',
    legalComments: 'none',
    minify: true,
    charset: 'utf8',
  });
  const script = outputFiles[0].text.trim();
  if (script.includes('</script')) throw new Error('the script would end its element');
  const styled = inline(
    read('page.html'),
    '<link rel="stylesheet" href="page.css">',
    `<style nonce="%nonce%">\n${read('page.css')}</style>`,
  );
  const html = inline(
    styled,
    '<script type="module" src="browser/main.ts"></script>',
    `<script nonce="%nonce%">${script}</script>`,
  );
  return `/** Built from page.html, page.css and browser/ by scripts/build-inspector-page.mjs. */\nexport const builtPage: string = ${JSON.stringify(html)};\n`;
}

/** A page that is as it should be stays untouched, so that nothing made of it looks stale. */
export async function writePage() {
  const text = await builtText();
  if (existsSync(built) && readFileSync(built, 'utf8') === text) return;
  // Others may be reading it.
  const unfinished = new URL(`built-page.${process.pid}.tmp`, page);
  writeFileSync(unfinished, text);
  renameSync(unfinished, built);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writePage();
