/**
 * Where a link of a page leads on the site. Pages link each other, and files of the repository, by relative paths: what
 * the site does not have is linked where it is kept.
 */
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const repository = 'https://github.com/headgate/headgate';

/** `href` as the site has it, on the page whose file is `page`. */
export function siteLink(href: string, page: string): string {
  if (/^(?:[a-z]+:|#|\/)/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const file = fileURLToPath(new URL(path, `file://${page}`));
  const isPage = file.startsWith(`${root}docs/`) && file.endsWith('.md');
  // A README is the first page of its folder.
  if (isPage) return href.replace(/README\.md/, 'index.md');
  // The generated reference is not there before it is made.
  if (!existsSync(file)) return href;
  const kind = statSync(file).isDirectory() ? 'tree' : 'blob';
  return `${repository}/${kind}/main/${file.slice(root.length)}${anchor === undefined ? '' : `#${anchor}`}`;
}
