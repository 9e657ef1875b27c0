/** The site as `npm run docs -- build` left it, read and served from the folder. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const dist: string = fileURLToPath(new URL('../../../site/dist/', import.meta.url));

/** Addresses of all pages, from `/` on. */
export function pages(): string[] {
  if (!existsSync(join(dist, 'index.html'))) throw new Error('The site is not built: npm run docs -- build');
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.html') && file !== '404.html',
  );
  return files.map((file) => `/${file.replaceAll('\\', '/').replace(/(^|\/)index\.html$/, '$1')}`).sort();
}

export function fileOf(address: string): string {
  return join(dist, address.endsWith('/') ? `${address}index.html` : address);
}

export function htmlOf(page: string): string {
  return readFileSync(fileOf(page), 'utf8');
}

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webp': 'image/webp',
  '.json': 'application/json',
};

/** `scripts` are served as well, by their addresses: the browser keeps what it has compiled. */
export async function serveSite(
  scripts: Readonly<Record<string, string>> = {},
): Promise<{ url: string; close: () => Promise<void> }> {
  const server = http.createServer((req, res) => {
    const { pathname } = new URL(req.url ?? '/', 'http://site');
    const script = scripts[pathname];
    if (script !== undefined) {
      res.writeHead(200, { 'content-type': 'text/javascript', 'cache-control': 'max-age=3600' }).end(script);
      return;
    }
    const file = fileOf(decodeURIComponent(pathname));
    if (!file.startsWith(dist) || !existsSync(file)) return void res.writeHead(404).end();
    res.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' }).end(readFileSync(file));
  });
  await new Promise<void>((resolve) => server.listen(0, resolve));
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://localhost:${(server.address() as AddressInfo).port}`, close };
}
