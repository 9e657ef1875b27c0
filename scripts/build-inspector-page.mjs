// The inspector's page in one text, from page.html, page.css and the browser's scripts. `--write` brings built-page.ts
// up to date; a test holds it against its sources. The text is checked in, so that every bundler takes it as it is.
import { readFileSync, writeFileSync } from 'node:fs';
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

/** The text of built-page.ts. */
export async function buildPage() {
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
  return `/** Built from page.html, page.css and browser/ by \`npm run build:inspector\`. */\nexport const builtPage: string = ${JSON.stringify(html)};\n`;
}

if (process.argv[2] === '--write') writeFileSync(built, await buildPage());
