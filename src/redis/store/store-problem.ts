/** Explains a failed call of the store in words that help: what happened, and what to do about it. */

/**
 * - `unreachable`, `timeout`: no connection, or no answer in time; `connecting`, `breaker-open`, `busy`: not asked,
 *   because the connection is being made, or because it did not answer before.
 * - `auth`, `permission`: the password, or the rights of the user. `tls`: certificates. `read-only`: a replica.
 *   `cluster`: a client for one server.
 * - `wrong-type`: a key of ours holds something else. `script-killed`, `script-running`, `out-of-memory`, `not-ready`,
 *   `old-version`.
 * - `bad-reply`: an answer to another question, or one that cannot be: more than was asked for, no number.
 *   `limit-mismatch`: replicas disagree on the limit of one pool. `name-conflict`: two live ones have the same name.
 *   `other`: see the message.
 */
export type StoreProblemCode =
  | 'unreachable'
  | 'timeout'
  | 'connecting'
  | 'breaker-open'
  | 'busy'
  | 'auth'
  | 'tls'
  | 'permission'
  | 'read-only'
  | 'cluster'
  | 'wrong-type'
  | 'script-killed'
  | 'script-running'
  | 'out-of-memory'
  | 'not-ready'
  | 'old-version'
  | 'bad-reply'
  | 'limit-mismatch'
  | 'name-conflict'
  | 'other';

/** A call that failed. */
export interface StoreProblem {
  readonly code: StoreProblemCode;
  /** Says what happened, where, and what to do. */
  readonly message: string;
  /** The keys of the call. */
  readonly keys: readonly string[];
  /** The words of the client or the store. */
  readonly cause: string;
}

export class StoreError extends Error {
  readonly problem: StoreProblem;

  constructor(problem: StoreProblem) {
    super(problem.message);
    this.name = 'StoreError';
    this.problem = problem;
  }

  /** The call was not sent. */
  get isUnsent(): boolean {
    return ['connecting', 'breaker-open', 'busy'].includes(this.problem.code);
  }
}

/** What errors say, what that means, and what to do. First match wins. */
const advice: Partial<Record<StoreProblemCode, readonly [said: RegExp, what: string, todo: string]>> = {
  auth: [
    /WRONGPASS|NOAUTH|invalid (?:username-)?password|AUTH.*failed/i,
    'the store rejects the password',
    'set user and password of the client',
  ],
  permission: [
    /NOPERM|no permissions|user executing the script can't/i,
    'the user may not do this',
    'allow it EVALSHA, EVAL, TIME, and reading and writing of these keys',
  ],
  tls: [
    /certificate|altnames|SSL routines|ERR_SSL|ERR_TLS|EPROTO/i,
    'client and store find no TLS that both accept',
    'give the client the ca of the store, a host name that its certificate has, and a certificate of its own where the store asks for one',
  ],
  'read-only': [
    /READONLY/i,
    'this store is a replica',
    'connect to the primary, or through Sentinel or a cluster client',
  ],
  'wrong-type': [/WRONGTYPE|is not an integer/i, 'the key holds another type', 'delete it, or choose another prefix'],
  'out-of-memory': [/\bOOM\b/i, 'maxmemory is reached', 'raise it, and set maxmemory-policy to noeviction'],
  'script-running': [
    /^BUSY|BUSY Redis|BUSY Valkey/i,
    'another script blocks the store',
    'find it with SLOWLOG, end it with SCRIPT KILL',
  ],
  'script-killed': [
    /script killed|killed by user/i,
    'somebody killed the script',
    'nothing: the next call runs it again',
  ],
  'not-ready': [
    /LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MISCONF/i,
    'the store is up but takes no writes',
    'see its log; calls go on',
  ],
  cluster: [
    /^MOVED|^ASK\b|CROSSSLOT/i,
    'this store is one of a cluster',
    'use a cluster client: createCluster, or Redis.Cluster',
  ],
  'old-version': [
    /non deterministic commands|unknown (?:redis )?command|wrong number of arguments/i,
    'the store lacks a command',
    'use Redis from 6.2 or Valkey from 7.2 up',
  ],
  unreachable: [
    /ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ETIMEDOUT|EPIPE|closed|Stream isn't writeable|offline|isn't ready|max retries|timed? ?out connecting|Connection timeout|Socket timeout|root nodes are unavailable|slots cache|sentinels are unreachable/i,
    'the store cannot be reached',
    'check that it runs, the URL of the client, TLS (rediss://) if its port has that and only then, and that the client was connected',
  ],
};

/** Of an error that tells no cause: the call was not sent, or its connection was cut. */
export function symptomOf(error: unknown): 'unsent' | 'cut' | undefined {
  const text = causeOf(error);
  if (/Stream isn't writeable|client is offline|isn't ready/i.test(text)) return 'unsent';
  return /max retries/i.test(text) ? 'cut' : undefined;
}

export function badReply(where: string, keys: readonly string[]): StoreProblem {
  const cause = 'the answer belongs to another call, or was changed';
  const message = `${where}: ${cause} (keys ${keys.join(', ')}): see what stands between here and the store, and who else writes these keys`;
  return { code: 'bad-reply', message, keys, cause };
}

/** `error` is what the client or the store said; `where` opens the message. */
export function problemOf(error: unknown, where: string, keys: readonly string[]): StoreProblem {
  const cause = causeOf(error);
  const [code, advised] = Object.entries(advice).find(([, [said]]) => said.test(cause)) ?? ['other'];
  if (advised === undefined)
    return { code: 'other', message: `${where}: ${cause} (keys ${keys.join(', ')})`, keys, cause };
  const [, what, todo] = advised;
  const message = `${where}: ${what} (${cause}; keys ${keys.join(', ')}): ${todo}`;
  return { code: code as StoreProblemCode, message, keys, cause };
}

/** The text of an error, and of those inside it: a refused connection is an AggregateError without a message. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const parts = error instanceof AggregateError ? error.errors : 'lastNodeError' in error ? [error.lastNodeError] : [];
  const inner = parts.map(causeOf);
  const code =
    'code' in error && typeof error.code === 'string' && !error.message.includes(error.code) ? [error.code] : [];
  return [error.message, ...code, ...new Set(inner)].filter((part) => part !== '').join(' ') || error.name;
}
