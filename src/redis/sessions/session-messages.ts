/** Messages of replicas about sessions, with spans and no instants: clocks differ. Invariant: all is bounded. */
import { parseJson } from '../../base/stream/content-pieces.js';
import type { SessionClaim } from '../../types/index.js';

export type SessionMessage =
  | { readonly kind: 'held'; readonly from: string; readonly sessions: readonly SessionClaim[] }
  | { readonly kind: 'ended'; readonly from: string; readonly name: string; readonly isUnsent: boolean }
  /** A replica is new here, and asks the others for their sessions. */
  | { readonly kind: 'new'; readonly from: string };

/** Names that are longer are hashed before they are told. */
export const longestName = 200;
const longestEndpoint = 2_000;
export const mostSessions = 100;

type Fields = Readonly<Record<string, unknown>>;

export function readMessage(text: string): SessionMessage | undefined {
  const { kind, from, sessions, name, isUnsent }: Fields = Object(parseJson(text));
  if (!isText(from, longestName)) return undefined;
  if (kind === 'new') return { kind, from };
  if (kind === 'ended' && isText(name, longestName)) return { kind, from, name, isUnsent: isUnsent === true };
  if (kind !== 'held' || !Array.isArray(sessions)) return undefined;
  return { kind, from, sessions: sessions.slice(0, mostSessions).flatMap(readSession) };
}

function readSession(given: unknown): SessionClaim[] {
  const { name, endpoint, tokens, forMs, prefix }: Fields = Object(given);
  const isOne =
    isText(name, longestName) && isText(endpoint, longestEndpoint) && isAmount(tokens) && isAmount(forMs) && forMs > 0;
  return isOne ? [{ name, endpoint, tokens, forMs, prefix: readPrefix(prefix) }] : [];
}

function readPrefix(given: unknown): SessionClaim['prefix'] {
  const { id, tokens }: Fields = Object(given);
  return isText(id, longestName) && isAmount(tokens) ? { id, tokens } : undefined;
}

const isText = (value: unknown, longest: number): value is string =>
  typeof value === 'string' && value !== '' && value.length <= longest;

const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
