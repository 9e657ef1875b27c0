/**
 * The names by which pages and figures for operators may be asked for. The page of a stranger can point a name of its
 * own to this gateway (DNS rebinding), and a browser lets it read the answers. An address cannot be such a name.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';

/** Addresses, `localhost`, and `names`. `host` is in small letters and has no port. */
export function ownHosts(names: readonly string[]): (host: string) => boolean {
  const known = new Set(['localhost', ...names.map((name) => name.toLowerCase())]);
  return (host) => known.has(host) || isIP(host.replace(/^\[(.*)\]$/, '$1')) > 0;
}

/** The host that a request names, as `ownHosts` takes it. */
export function hostOf({ host = '' }: IncomingHttpHeaders): string {
  return host.replace(/:\d+$/, '').toLowerCase();
}
