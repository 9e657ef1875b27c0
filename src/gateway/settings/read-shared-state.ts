/** The section `sharedState` of a gateway file: its table, and what it comes to. */
import * as z from 'zod/mini';
import type { output } from 'zod/v4/core';
import { option, row } from '../../base/schema/json-schema.js';
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';
import type { StoreAddress, StoreLogin } from '../shared/store-clients.js';
import type { SharedStateConfig } from '../shared/store-connection.js';
import { type SecretSources, secret, section } from './secrets.js';

const kinds = ['maxConcurrency', 'maxTokens', 'endpointConcurrency'] as const;
const defaultRefreshMs = 1_000;
const defaultLeaseMs = 5_000;

const isFallback = (candidate: unknown): candidate is 'safe' | 'closed' | number =>
  candidate === 'safe' || candidate === 'closed' || (Number.isInteger(candidate) && Number(candidate) >= 0);
const fallback = s.value('"safe", "closed", or a limit: an integer from 0 up', isFallback, {
  anyOf: [{ enum: ['safe', 'closed'] }, { type: 'integer', minimum: 0 }],
});

/** See `SharedStateConfig`; what has no default here has it where leases are made. */
function tableOf(aSecret: Schema<string>) {
  const urls = section(s.list(aSecret), 'an array');
  const sentinel = s.object({
    name: row('Of the primary.', s.text('the name of a primary')),
    nodes: row('Their URLs, with their passwords.', urls),
  });
  const tls = s.object({
    ca: option('Its authority; those of Node without it.', aSecret),
    cert: option('That of the gateway, if asked for.', aSecret),
    key: option('Its key.', aSecret),
    serverName: option('The name in its certificate; its host without it.', s.text()),
  });
  return s.object({
    url: option('The store: `redis://…`, or `rediss://…` with TLS.', aSecret),
    cluster: option('Some nodes of a cluster, instead.', urls),
    sentinel: option('Sentinels, instead.', section(sentinel)),
    username: option('Its user, if no URL has it; `default` without it.', s.text('the name of a user')),
    password: option('Its password, if no URL has it.', aSecret),
    tls: option('For `rediss://…`, in PEM.', section(tls)),
    pool: option('Replicas of one name share the limit; `gateway` without it.', s.text('the name of the pool')),
    replica: option('Its name, kept over restarts; found or random without it.', s.text('the name of this replica')),
    prefix: option('Before all keys.', s.text('the beginning of all keys')),
    maxConcurrency: option('Requests in flight of all replicas.', s.positiveInteger()),
    maxTokens: option('Tokens in flight of all replicas.', s.positiveInteger()),
    endpointConcurrency: option('Requests in flight of each upstream of weight 1.', s.positiveInteger()),
    quotas: option('A `quota-detector` counts for all replicas; true without it.', s.flag()),
    replicas: option('How many there are, to start without the store.', s.positiveInteger()),
    maxShare: option('The most that one replica may get.', s.positiveInteger()),
    fallback: option('What holds after a lease without the store; `safe` without it.', fallback),
    refreshInterval: option('Between two calls; `1s` without it.', s.positiveDuration('1s')),
    leaseDuration: option('How long an answer holds; `5s` without it.', s.positiveDuration('5s')),
    drainDuration: option('How long silent replicas keep seats; `60s` without it.', s.positiveDuration('60s')),
    forgetAfter: option('Then their safe share; `10m` without it.', s.positiveDuration('10m')),
    callTimeout: option('For a call to the store; `50ms` without it.', s.positiveDuration('50ms')),
  });
}

type FileSharedState = output<ReturnType<typeof tableOf>>;

/** `written`: the section, whose secrets are read again. */
export function sharedStateSchema(sources: SecretSources, written: unknown): Schema<SharedStateConfig> {
  const again = tableOf(secret({ ...sources, onMissing: undefined }));
  function readStore(): StoreAddress | undefined {
    const read = s.validate(again, written);
    const faults: string[] = [];
    const address = read.ok ? storeAddress(read.value, (expected) => void faults.push(expected)) : undefined;
    return faults.length > 0 ? undefined : address;
  }
  return z.pipe(
    tableOf(secret(sources)),
    z.transform((file, payload) => resolve(file, readStore, s.reportTo(payload))),
  );
}

/** With faults, which are reported, what is returned is not used. */
function resolve(
  file: FileSharedState,
  readStore: SharedStateConfig['readStore'],
  report: s.Report,
): SharedStateConfig {
  const { maxConcurrency, maxTokens, endpointConcurrency, quotas, pool = 'gateway', ...more } = file;
  const { url, cluster, sentinel, username, password, tls, ...rest } = more;
  const given = { maxConcurrency, maxTokens, endpointConcurrency };
  const named = kinds.filter((kind) => given[kind] !== undefined);
  const [limits] = named;
  if (named.length > 1 || (named.length === 0 && quotas !== true))
    report(`one of ${kinds.join(', ')}, or quotas: true alone`, [], named.length === 0 ? 'none' : named.join(' and '));
  const store = storeAddress(file, report);
  for (const [key, name] of Object.entries({ pool, prefix: rest.prefix ?? '', replica: rest.replica ?? '' }))
    if (/[{}\s]/.test(name)) report('a name without blanks and braces', [key], JSON.stringify(name));
  const { refreshInterval = defaultRefreshMs, leaseDuration = defaultLeaseMs } = rest;
  if (leaseDuration < 2 * refreshInterval)
    report(`at least twice refreshInterval (${refreshInterval} ms)`, ['leaseDuration'], `${leaseDuration} ms`);
  const limit = limits === undefined ? 1 : (given[limits] ?? 1);
  const leases = { pool, ...rest, refreshInterval, leaseDuration };
  return { store, readStore, limits, limit, quotas: quotas !== false, leases };
}

interface StoreUrl {
  readonly node: { readonly host: string; readonly port: number };
  readonly login: StoreLogin;
  readonly database: number;
  readonly isTls: boolean;
}

/** One server, a cluster or Sentinels, by their URLs, which no message shows. With problems, it is not used. */
function storeAddress(file: FileSharedState, report: s.Report): StoreAddress {
  const { url, cluster, sentinel, username, password, tls } = file;
  const given = Object.entries({ url, cluster, sentinel }).filter(([, value]) => value !== undefined);
  const kind = sentinel !== undefined ? 'sentinel' : cluster !== undefined ? 'cluster' : 'server';
  if (given.length !== 1)
    report('one of url, cluster, sentinel', [], given.map(([name]) => name).join(' and ') || 'none');
  const at = { server: ['url'], cluster: ['cluster'], sentinel: ['sentinel', 'nodes'] }[kind];
  const texts = sentinel?.nodes ?? cluster ?? [url ?? 'missing'];
  if (texts.length === 0) report('at least one URL', at, 'none');
  const urls = texts.flatMap((text, index): StoreUrl[] => {
    const read = readUrl(text === 'missing' ? 'redis://missing' : text, kind === 'sentinel' ? 26_379 : 6_379);
    const expected = 'a URL such as "redis://10.0.0.9:6379", with the password percent-encoded, without a query';
    if (read === undefined) report(expected, kind === 'server' ? at : [...at, index], 'something else');
    return read === undefined ? [] : [read];
  });
  checkUrls(urls, kind, (expected, got) => report(expected, at, got));
  const [first] = urls;
  const { login: ofUrls = {}, database = 0, isTls = false } = first ?? {};
  const own = withoutUndefined({ username, password });
  if (kind !== 'sentinel' && ofUrls.password !== undefined && Object.keys(own).length > 0)
    report(`nothing, where ${at.join('.')} has a password`, [password === undefined ? 'username' : 'password'], 'both');
  if (username !== undefined && password === undefined) report('a password besides', ['username'], 'none');
  if (tls !== undefined && !isTls && !texts.includes('missing'))
    report(`rediss:// in ${at.join('.')}, or no such section`, ['tls'], 'redis://');
  if ((tls?.cert === undefined) !== (tls?.key === undefined))
    report('cert and key, or neither', ['tls'], 'one of them');
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
