/**
 * Which session a request is a turn of, and which session began that one, by the headers of known harnesses. They name
 * sessions within a tenant, so that a client can mislead nobody else: they need no trust.
 *
 * Sources: Dynamo, `lib/llm/src/protocols/agents.rs`, for its own and all others; Codex, `codex-rs/core/src/
 * responses_metadata.rs`; opencode, `packages/opencode/src/session/llm/request.ts`. `x-openai-subagent` tells none.
 */
import type { HeaderNames } from '../../base/headers/header-names.js';
import { type HeaderSource, headerValue } from '../../base/headers/header-source.js';
import type { PlacementHints } from './adapter-options.js';
import { agentIdentity } from './flow-key-from-headers.js';

export type AgentSession = Pick<PlacementHints, 'sessionId' | 'parentSessionId'>;

interface Harness {
  readonly session: HeaderNames;
  /** The agent within the session, where the session is that of the whole family. */
  readonly agent?: HeaderNames;
  readonly parent: HeaderNames;
}

const claudeCode = 'x-claude-code-session-id';

const harnesses: readonly Harness[] = [
  { session: ['x-dynamo-session-id'], parent: ['x-dynamo-parent-session-id'] },
  { session: [claudeCode], agent: ['x-claude-code-agent-id'], parent: ['x-claude-code-parent-agent-id'] },
  { session: ['thread-id'], parent: ['x-codex-parent-thread-id'] },
  { session: ['x-session-id', 'x-session-affinity'], parent: ['x-parent-session-id'] },
];

/**
 * The session of an agent's request and its parent: Dynamo's headers, Claude Code's, Codex's, opencode's, else what
 * `agentIdentity` finds. Our own headers need trust: `flowKeyFromHeaders` reads them.
 */
export function agentSession(headers: HeaderSource): AgentSession {
  for (const { session, agent, parent } of harnesses) {
    const sessionId = headerValue(headers, session);
    if (sessionId === undefined) continue;
    const above = headerValue(headers, parent);
    if (agent === undefined) return { sessionId, parentSessionId: above };
    const agentId = headerValue(headers, agent);
    if (agentId === undefined) return { sessionId, parentSessionId: undefined };
    // Agents are known by their names in some sessions, and two sessions may have the same.
    const parentSessionId = above === undefined || above === agentId ? sessionId : `${sessionId}:${above}`;
    return { sessionId: `${sessionId}:${agentId}`, parentSessionId };
  }
  return { sessionId: agentIdentity(headers), parentSessionId: undefined };
}
