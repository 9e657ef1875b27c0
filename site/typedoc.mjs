// The reference of every subpath, made of the declarations in src/, into docs/reference/: a page each, and two for the
// package itself.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Application, Converter, DeclarationReflection, ReflectionKind } from 'typedoc';
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

/**
 * The package itself exports too much for one page: the controller is on the first, what it is made of on the second.
 */
const policyFolders = ['admission', 'endpoints', 'eviction', 'gate', 'plugins', 'tiers'];
const pageOf = {
  headgate: '`headgate`: the controller',
  'headgate-policies': '`headgate`: policies, detectors, endpoints, plugins',
};

// Before members are grouped under headings.
app.converter.on(
  Converter.EVENT_RESOLVE_BEGIN,
  ({ project }) => {
    const core = project.children?.find(({ name }) => name === 'index');
    if (core === undefined) throw new Error('the package itself exports nothing');
    const policies = new DeclarationReflection('headgate-policies', ReflectionKind.Module, project);
    project.addChild(policies);
    project.registerReflection(policies, undefined, undefined);
    for (const child of [...(core.children ?? [])]) {
      const file = project.getSymbolIdFromReflection(child)?.fileName ?? '';
      if (!policyFolders.some((folder) => file.includes(`/src/${folder}/`))) continue;
      core.removeChild(child);
      child.parent = policies;
      policies.addChild(child);
    }
  },
  1000,
);

const project = await app.convert();
if (project === undefined) throw new Error('the declarations could not be read');
/** Modules are called by the names that users import. */
const names = new Map(
  Object.entries(entryPoints).map(([name, path]) => [
    moduleOf(path),
    name === 'index' ? 'headgate' : `headgate/${name}`,
  ]),
);
for (const module of project.children ?? []) module.name = names.get(module.name) ?? module.name;
for (const { children } of project.groups ?? []) children.sort((a, b) => (a.name < b.name ? -1 : 1));

/** A member that an interface inherits stands with the one that it extends, to which the page links. */
for (const type of project.getReflectionsByKind(ReflectionKind.Interface)) {
  const isOwn = (member) => member.inheritedFrom?.reflection === undefined;
  for (const group of type.groups ?? []) group.children = group.children.filter(isOwn);
  type.groups = type.groups?.filter(({ children }) => children.length > 0);
  type.children = type.children?.filter(isOwn);
  // From what is not exported, nobody needs to know.
  for (const member of type.children ?? []) member.inheritedFrom = undefined;
}
await app.generateOutputs(project);

// Most names are never linked to: their anchors would be a tenth of a page.
const files = readdirSync(`${root}docs/reference`, { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.md'),
);
const texts = new Map(
  files.map((file) => [`${root}docs/reference/${file}`, readFileSync(`${root}docs/reference/${file}`, 'utf8')]),
);
const linked = new Set(
  [...texts.values()].flatMap((text) => [...text.matchAll(/\(\S*#(export-[^)\s]+)\)/g)].map(([, id]) => id)),
);
// What a class extends stands above its members: it need not be said of each.
const inherited = /^#{3,6} Inherited from\n\n[^\n]*\n\n?/gm;
for (const [path, text] of texts)
  writeFileSync(
    path,
    withTitle(text.replaceAll(inherited, '')).replaceAll(/<a id="([^"]+)"><\/a> ?\n?/g, (anchor, id) =>
      linked.has(id) ? anchor : '',
    ),
  );

/** The first heading of a page, and what the list of pages calls it. */
function withTitle(text) {
  return Object.entries(pageOf).reduce(
    (read, [module, title]) => read.replace(`# ${module}\n`, `# ${title}\n`).replace(`[${module}](`, `[${title}](`),
    text,
  );
}
