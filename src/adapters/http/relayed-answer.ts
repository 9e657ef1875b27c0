/** An upstream's answer as it goes on to the client: its status, its headers, and how the relay ended. */
import { hopByHop, namedByConnection } from '../../base/headers/hop-by-hop.js';

/** The answer of `fetch`, of whatever realm or package. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: {
    forEach(visit: (value: string, name: string) => void): void;
    getSetCookie?(): string[];
  };
  readonly body: object | null;
}

/**
 * How a relay ended.
 * - `sent`: the client has the whole answer.
 * - `client-left`: nobody reads it any more.
 * - `evicted`: the controller took the seat back; the adapter answers, or breaks the stream off.
 * - `upstream-failed`: answered with 502, or broken off where the answer had begun.
 */
export type RelayEnd = 'sent' | 'client-left' | 'evicted' | 'upstream-failed';

export interface RelayOptions {
  /** Sees each chunk before it is sent, for `usageReader` and the like. An exception ends the relay as a failure. */
  onChunk?: ((chunk: Uint8Array) => void) | undefined;
  /** Is told why the upstream, or `onChunk`, failed; it is not told of clients that left. */
  onError?: ((error: unknown) => void) | undefined;
}

const ofOneHop: ReadonlySet<string> = new Set(hopByHop);

/** For the client, lower case; `fetch` has undone length and encoding. Streams of events are not to be cached. */
export function relayedHeaders({ headers }: UpstreamAnswer): Map<string, string | string[]> {
  const given = new Map<string, string>();
  headers.forEach((value, name) => {
    given.set(name.toLowerCase(), value);
  });
  const named = namedByConnection(given.get('connection') ?? '');
  const relayed = new Map<string, string | string[]>();
  for (const [name, value] of given) if (!ofOneHop.has(name) && !named.includes(name)) relayed.set(name, value);
  if (relayed.delete('content-encoding')) relayed.delete('content-length');
  const cookies = headers.getSetCookie?.() ?? [];
  if (cookies.length > 0) relayed.set('set-cookie', cookies);
  if (given.get('content-type')?.startsWith('text/event-stream')) {
    if (!relayed.has('cache-control')) relayed.set('cache-control', 'no-cache');
    relayed.set('x-accel-buffering', 'no');
  }
  return relayed;
}
