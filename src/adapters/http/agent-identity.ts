/** Finds the session of a request by the headers that coding agents send. */
import { type HeaderSource, headerValue } from '../../base/headers/header-source.js';

/** The session headers of known agents, in the order in which they count. Source: llm-d-router, agent-identity. */
export const agentSessionHeaders = [
  'x-claude-code-session-id',
  'x-session-affinity',
  'session-id',
  'session_id',
] as const;

/**
 * The first session header with a value: those of `additionalSessionHeaders` in their order, then the known ones.
 * Undefined when a request has none. Nothing of the body is looked at.
 */
export function agentIdentity(
  headers: HeaderSource,
  additionalSessionHeaders: readonly string[] = [],
): string | undefined {
  for (const name of additionalSessionHeaders) {
    const identity = headerValue(headers, [name.toLowerCase()]);
    if (identity !== undefined) return identity;
  }
  return headerValue(headers, agentSessionHeaders);
}
