// The reference of every subpath, made of the declarations in src/, one page each, into docs/reference/.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Application } from 'typedoc';
import { entryPoints } from '../scripts/entry-points.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
process.chdir(root); // where it looks for the project

const app = await Application.bootstrapWithPlugins({
  name: 'Every export',
  entryPoints: Object.values(entryPoints).map((path) => root + path),
  tsconfig: `${root}tsconfig.json`,
  basePath: `${root}src`,
  plugin: ['typedoc-plugin-markdown'],
  outputFileStrategy: 'modules',
  readme: 'none',
  excludeInternal: true,
  excludePrivate: true,
  githubPages: false,
  skipErrorChecking: true, // the compiler has checked them
  disableSources: true,
  logLevel: 'Error',
  outputs: [{ name: 'markdown', path: `${root}docs/reference` }],
  // Of the plugin:
  useHTMLAnchors: true,
  anchorPrefix: 'export-', // so that none is called like a heading
  hidePageHeader: true,
  hideBreadcrumbs: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  sanitizeComments: true,
});
const moduleOf = (path) => path.replace(/^src\//, '').replace(/\/index\.ts$|\.ts$/, '');
const project = await app.convert();
if (project === undefined) throw new Error('the declarations could not be read');
/** Modules are called by the names that users import. */
const names = new Map(
  Object.entries(entryPoints).map(([name, path]) => [moduleOf(path), name === 'index' ? 'headgate' : `headgate/${name}`]),
);
for (const module of project.children ?? []) module.name = names.get(module.name) ?? module.name;
await app.generateOutputs(project);

// Most names are never linked to: their anchors would be a tenth of a page.
const files = readdirSync(`${root}docs/reference`, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'));
const texts = new Map(files.map((file) => [`${root}docs/reference/${file}`, readFileSync(`${root}docs/reference/${file}`, 'utf8')]));
const linked = new Set([...texts.values()].flatMap((text) => [...text.matchAll(/\(\S*#(export-[^)\s]+)\)/g)].map(([, id]) => id)));
// What a class extends stands above its members: it need not be said of each.
const inherited = /^#{3,6} Inherited from\n\n[^\n]*\n\n?/gm;
for (const [path, text] of texts)
  writeFileSync(
    path,
    text.replaceAll(inherited, '').replaceAll(/<a id="([^"]+)"><\/a> ?\n?/g, (anchor, id) => (linked.has(id) ? anchor : '')),
  );
