import { describe, expect, it } from 'vitest';
import { checkAdapter } from '../../../src/adapters/http/adapter-options.js';
import { agentIdentity, flowKeyFromHeaders } from '../../../src/adapters/http/index.js';

describe('agentIdentity', () => {
  it('takes the first session header with a value', () => {
    expect(agentIdentity({ session_id: 'old', 'session-id': 'new' })).toBe('new');
    expect(agentIdentity({ 'x-claude-code-session-id': ' ', 'x-session-affinity': 'second' })).toBe('second');
    expect(agentIdentity(new Headers({ 'X-Session-Affinity': 'web' }))).toBe('web');
    expect(agentIdentity({ 'x-unrelated': 'value' })).toBeUndefined();
  });

  it('lets the headers of the host come first, in their order and in any case', () => {
    const headers = { 'x-run': 'run', 'x-thread': 'thread', 'session-id': 'session' };
    expect(agentIdentity(headers, ['X-Thread', 'x-run'])).toBe('thread');
    expect(agentIdentity(headers, ['x-missing'])).toBe('session');
  });
});

describe('flowKeyFromHeaders with sessionHeaders', () => {
  const headers = { 'session-id': 'session', 'x-run': 'run' };

  it('goes by the session when no fairness ID is given', () => {
    expect(flowKeyFromHeaders(headers, { trust: true, sessionHeaders: true }).fairnessId).toBe('session');
    expect(flowKeyFromHeaders(headers, { trust: true, sessionHeaders: ['x-run'] }).fairnessId).toBe('run');
    const named = { ...headers, 'x-gateway-inference-fairness-id': 'tenant' };
    expect(flowKeyFromHeaders(named, { trust: true, sessionHeaders: true }).fairnessId).toBe('tenant');
  });

  it('ignores sessions unless asked, and unless headers are trusted', () => {
    expect(flowKeyFromHeaders(headers, { trust: true }).fairnessId).toBe('default-flow');
    expect(flowKeyFromHeaders(headers, { trust: true, sessionHeaders: false }).fairnessId).toBe('default-flow');
    expect(flowKeyFromHeaders(headers, { sessionHeaders: true }).fairnessId).toBe('default-flow');
  });

  it('is checked where adapters are made', () => {
    expect(() => checkAdapter({ enqueue: () => new Promise(() => {}) }, { sessionHeaders: ['x-run'] })).not.toThrow();
    expect(() => checkAdapter({ enqueue: () => new Promise(() => {}) }, { sessionHeaders: ['x run'] })).toThrow(
      /sessionHeaders/,
    );
    expect(() => checkAdapter({ enqueue: () => new Promise(() => {}) }, { sessionHeaders: 'x-run' })).toThrow(
      /sessionHeaders/,
    );
  });
});
