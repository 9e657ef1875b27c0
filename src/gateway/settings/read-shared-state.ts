/** The section `sharedState` of a gateway file. */
import { Problems } from '../../base/problems.js';
import type { StoreAddress, StoreLogin } from '../shared/store-clients.js';
import type { SharedStateConfig } from '../shared/store-connection.js';
import type { FileSharedState } from './gateway-config.js';

const kinds = ['maxConcurrency', 'maxTokens', 'endpointConcurrency'] as const;
const defaultRefreshMs = 1_000;
const defaultLeaseMs = 5_000;

/** Undefined without the section; with issues, what is returned is not used. */
export function readSharedState(
  file: FileSharedState | undefined,
  again: () => FileSharedState | undefined,
  problems: Problems,
): SharedStateConfig | undefined {
  if (file === undefined) return undefined;
  const { maxConcurrency, maxTokens, endpointConcurrency, quotas, pool = 'gateway', ...more } = file;
  const { url, cluster, sentinel, username, password, tls, ...rest } = more;
  const given = { maxConcurrency, maxTokens, endpointConcurrency };
  const named = kinds.filter((kind) => given[kind] !== undefined);
  const [limits] = named;
  if (named.length > 1 || (named.length === 0 && quotas !== true)) {
    const expected = `one of ${kinds.join(', ')}, or quotas: true alone`;
    problems.add('sharedState', expected, named.length === 0 ? 'none' : named.join(' and '));
  }
  const store = readStoreAddress(file, problems);
  const readStore = (): StoreAddress | undefined => {
    const wrong = new Problems();
    const now = again();
    const address = now && readStoreAddress(now, wrong);
    return wrong.hasIssues ? undefined : address;
  };
  for (const [path, name] of Object.entries({ pool, prefix: rest.prefix ?? '', replica: rest.replica ?? '' })) {
    if (/[{}\s]/.test(name))
      problems.add(`sharedState.${path}`, 'a name without blanks and braces', JSON.stringify(name));
  }
  const { refreshInterval = defaultRefreshMs, leaseDuration = defaultLeaseMs } = rest;
  if (leaseDuration < 2 * refreshInterval) {
    const expected = `at least twice refreshInterval (${refreshInterval} ms)`;
    problems.add('sharedState.leaseDuration', expected, `${leaseDuration} ms`);
  }
  const limit = limits === undefined ? 1 : (given[limits] ?? 1);
  return { store, readStore, limits, limit, quotas: quotas !== false, leases: { pool, ...rest, leaseDuration } };
}

interface StoreUrl {
  readonly node: { readonly host: string; readonly port: number };
  readonly login: StoreLogin;
  readonly database: number;
  readonly isTls: boolean;
}

/** One server, a cluster or Sentinels, by their URLs, which no message shows. With problems, it is not used. */
function readStoreAddress(file: FileSharedState, problems: Problems): StoreAddress {
  const { url, cluster, sentinel, username, password, tls } = file;
  const fault: Problems['add'] = (path, expected, got) => problems.add(`sharedState${path}`, expected, got);
  const given = Object.entries({ url, cluster, sentinel }).filter(([, value]) => value !== undefined);
  const kind = sentinel !== undefined ? 'sentinel' : cluster !== undefined ? 'cluster' : 'server';
  if (given.length !== 1)
    fault('', 'one of url, cluster, sentinel', given.map(([name]) => name).join(' and ') || 'none');
  const at = { server: '.url', cluster: '.cluster', sentinel: '.sentinel.nodes' }[kind];
  const texts = sentinel?.nodes ?? cluster ?? [url ?? 'missing'];
  if (texts.length === 0) fault(at, 'at least one URL', 'none');
  const urls = texts.flatMap((text, index): StoreUrl[] => {
    const read = readUrl(text === 'missing' ? 'redis://missing' : text, kind === 'sentinel' ? 26_379 : 6_379);
    const expected = 'a URL such as "redis://10.0.0.9:6379", with the password percent-encoded, without a query';
    if (read === undefined) fault(kind === 'server' ? at : `${at}[${index}]`, expected, 'something else');
    return read === undefined ? [] : [read];
  });
  checkUrls(urls, kind, (expected, got) => fault(at, expected, got));
  const [first] = urls;
  const { login: ofUrls = {}, database = 0, isTls = false } = first ?? {};
  const own = withoutUndefined({ username, password });
  if (kind !== 'sentinel' && ofUrls.password !== undefined && Object.keys(own).length > 0)
    fault(password === undefined ? '.username' : '.password', `nothing, where ${at.slice(1)} has a password`, 'both');
  if (username !== undefined && password === undefined) fault('.username', 'a password besides', 'none');
  if (tls !== undefined && !isTls && !texts.includes('missing'))
    fault('.tls', `rediss:// in ${at.slice(1)}, or no such section`, 'redis://');
  if ((tls?.cert === undefined) !== (tls?.key === undefined)) fault('.tls', 'cert and key, or neither', 'one of them');
  const logins =
    kind === 'sentinel' ? { login: own, sentinelLogin: ofUrls } : { login: { ...ofUrls, ...own }, sentinelLogin: {} };
  const nodes = urls.map(({ node }) => node);
  const { serverName: servername, ...pem } = tls ?? {};
  const secured = isTls && { tls: withoutUndefined({ ...pem, servername }) };
  return { kind, nodes, name: sentinel?.name ?? '', database, ...logins, ...secured };
}

/** What all URLs must have in common. */
function checkUrls(urls: readonly StoreUrl[], kind: StoreAddress['kind'], fault: Fault): void {
  const isSame = (read: (each: StoreUrl) => unknown): boolean => new Set(urls.map(read)).size <= 1;
  if (!isSame(({ isTls }) => isTls)) fault('redis:// in all URLs, or rediss:// in all', 'both');
  if (!isSame(({ login }) => JSON.stringify(login)))
    fault('the same user and password in all URLs, or none, and sharedState.password', 'different ones');
  if (kind !== 'server' && urls.some(({ database }) => database > 0))
    fault('URLs without the number of a database, which is 0', 'another one');
}

type Fault = (expected: string, got: string) => void;

/** As clients read it: a password with `#`, `/`, `?` or `%` in it must be encoded, or they find no host. */
function readUrl(text: string, defaultPort: number): StoreUrl | undefined {
  if (!/^rediss?:\/\/[^\s?#]+$/.test(text)) return undefined;
  try {
    const { protocol, hostname, port, username, password, pathname } = new URL(text);
    const path = /^\/?(\d*)$/.exec(pathname);
    const login = {
      username: decodeURIComponent(username) || undefined,
      password: decodeURIComponent(password) || undefined,
    };
    if (hostname === '' || path === null) return undefined;
    return {
      node: { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || defaultPort) },
      login: withoutUndefined(login),
      database: Number(path[1]),
      isTls: protocol === 'rediss:',
    };
  } catch {
    return undefined;
  }
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function withoutUndefined<T extends object>(given: T): Defined<T> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Defined<T>;
}
