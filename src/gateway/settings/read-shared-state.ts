/** The section `sharedState` of a gateway file. */
import { Problems } from '../../base/problems.js';
import type { SharedStateConfig } from '../shared/shared-state.js';
import type { StoreAddress } from '../shared/store-clients.js';
import type { FileSharedState } from './gateway-file.js';
import { readStoreAddress } from './read-store-address.js';

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
