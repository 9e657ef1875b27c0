import { describe, expect, it } from 'vitest';
import { agentSession, controlHeaders, flowKeyFromHeaders } from '../../../src/adapters/http/index.js';

describe('agentSession', () => {
  it('reads the session and the parent that each known harness sends', () => {
    const told = [
      { 'x-dynamo-session-id': 's', 'x-dynamo-parent-session-id': 'p' },
      { 'thread-id': 's', 'x-codex-parent-thread-id': 'p', 'session-id': 'other' },
      { 'x-session-id': 's', 'x-parent-session-id': 'p' },
      { 'x-session-affinity': 's', 'x-parent-session-id': 'p' },
    ];
    for (const headers of told) expect(agentSession(headers)).toEqual({ sessionId: 's', parentSessionId: 'p' });
    expect(agentSession(new Headers({ 'Thread-Id': 'root' }))).toEqual({ sessionId: 'root' });
  });

  it('tells the agents of one session of Claude Code apart, and never those of two', () => {
    const session = { 'x-claude-code-session-id': 's' };
    const agent = { ...session, 'x-claude-code-agent-id': 'a' };
    expect(agentSession(session)).toEqual({ sessionId: 's' });
    expect(agentSession(agent)).toEqual({ sessionId: 's:a', parentSessionId: 's' });
    const below = { ...agent, 'x-claude-code-parent-agent-id': 'b' };
    expect(agentSession(below)).toEqual({ sessionId: 's:a', parentSessionId: 's:b' });
    // A parent without an agent says nothing.
    expect(agentSession({ ...session, 'x-claude-code-parent-agent-id': 'b' })).toEqual({ sessionId: 's' });
  });

  it('takes what an agent of no known family sends for its session', () => {
    expect(agentSession({ session_id: 'old' })).toEqual({ sessionId: 'old' });
    expect(agentSession({ 'x-unrelated': 'value' })).toEqual({});
  });

  it('believes the headers of its own only of a trusted sender, and lets none of them go on', () => {
    const headers = { 'x-headgate-session-id': 's', 'x-headgate-parent-session-id': 'p', 'thread-id': 'codex' };
    expect(agentSession(headers)).toEqual({ sessionId: 'codex' });
    expect(flowKeyFromHeaders(headers, { trust: true })).toMatchObject({ sessionId: 's', parentSessionId: 'p' });
    expect(flowKeyFromHeaders(headers)).not.toHaveProperty('sessionId');
    for (const name of Object.keys(headers).slice(0, 2)) expect(controlHeaders.has(name)).toBe(true);
  });
});
