import { expect, it } from 'vitest';
import { fileOf, startGateway } from './support/gateway.js';
import { startUpstream } from './support/upstream.js';

it('takes the session of a request from the headers of agents: a resident one passes, and a new one waits', async () => {
  const upstream = await startUpstream();
  const plugins = [{ type: 'session-limit-detector', parameters: { maxSessions: 1 } }];
  const flowControl = { saturationDetector: { pluginRef: 'session-limit-detector' }, defaultRequestTTL: '100ms' };
  const { post } = await startGateway(fileOf([upstream.url], { plugins, flowControl }));
  const turn = async (session: string): Promise<number> => {
    const response = await post({ model: 'm', messages: [] }, { headers: { 'x-claude-code-session-id': session } });
    await response.arrayBuffer();
    return response.status;
  };
  expect(await turn('red')).toBe(200);
  expect(await turn('blue')).not.toBe(200);
  expect(await turn('red')).toBe(200);
});

it('makes one flow of the agents of a family, and tells of parents in a circle', async () => {
  const upstream = await startUpstream();
  const { post, gateway, log } = await startGateway(fileOf([upstream.url], { families: true }));
  const ids: string[] = [];
  gateway.flow.on('dispatched', ({ lease }) => ids.push(lease.fairnessId));
  const turn = async (headers: Record<string, string>): Promise<void> => {
    await (await post({ model: 'm', messages: [] }, { headers })).arrayBuffer();
  };
  await turn({ 'x-session-id': 'root' });
  await turn({ 'x-session-id': 'child', 'x-parent-session-id': 'root' });
  await turn({ 'x-session-id': 'root', 'x-parent-session-id': 'child' });
  await turn({});
  expect(ids).toEqual([...Array(3).fill('default-flow/@root'), 'default-flow']);
  const fields = { sessionId: 'root', parentSessionId: 'child' };
  expect(log).toContainEqual({ level: 'warn', event: 'cycle', fields });
});
