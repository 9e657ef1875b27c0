/** The section `sharedState` of a gateway file. */
import type { ConfigIssue } from '../../index.js';
import type { SharedStateConfig } from '../shared/shared-state.js';
import type { FileSharedState } from './gateway-file.js';

const kinds = ['maxConcurrency', 'maxTokens', 'endpointConcurrency'] as const;
const defaultRefreshMs = 1_000;
const defaultLeaseMs = 5_000;

/** Undefined without the section; with issues, what is returned is not used. */
export function readSharedState(
  file: FileSharedState | undefined,
  issues: ConfigIssue[],
): SharedStateConfig | undefined {
  if (file === undefined) return undefined;
  const { url, maxConcurrency, maxTokens, endpointConcurrency, quotas, pool = 'gateway', ...rest } = file;
  const given = { maxConcurrency, maxTokens, endpointConcurrency };
  const named = kinds.filter((kind) => given[kind] !== undefined);
  const [limits] = named;
  if (named.length > 1 || (named.length === 0 && quotas !== true)) {
    const expected = `one of ${kinds.join(', ')}, or quotas: true alone`;
    issues.push({ path: 'sharedState', expected, got: named.length === 0 ? 'none' : named.join(' and ') });
  }
  // The URL may hold a password: no message shows it.
  if (url !== 'missing' && !isStoreUrl(url)) {
    const expected = 'a URL such as "redis://10.0.0.9:6379", with the password percent-encoded';
    issues.push({ path: 'sharedState.url', expected, got: 'something else' });
  }
  for (const [path, name] of Object.entries({ pool, prefix: rest.prefix ?? '' })) {
    if (/[{}\s]/.test(name))
      issues.push({
        path: `sharedState.${path}`,
        expected: 'a name without blanks and braces',
        got: JSON.stringify(name),
      });
  }
  const { refreshInterval = defaultRefreshMs, leaseDuration = defaultLeaseMs } = rest;
  if (leaseDuration < 2 * refreshInterval) {
    const expected = `at least twice refreshInterval (${refreshInterval} ms)`;
    issues.push({ path: 'sharedState.leaseDuration', expected, got: `${leaseDuration} ms` });
  }
  const limit = limits === undefined ? 1 : (given[limits] ?? 1);
  return { url, limits, limit, quotas: quotas !== false, leases: { pool, ...rest, leaseDuration } };
}

/** As its clients read it: a password with `#`, `/`, `?` or `%` in it must be encoded, or they find no host. */
function isStoreUrl(text: string): boolean {
  if (!/^rediss?:\/\/[^\s]+$/.test(text)) return false;
  try {
    const { username, password } = new URL(text);
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}
