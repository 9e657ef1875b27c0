/**
 * What happens to a request of the gateway while it waits: its key may be revoked, and its sender may not want to wait
 * for long.
 */
import { expect, it } from 'vitest';
import { loadGatewayConfig } from '../../src/gateway/index.js';
import { until } from '../integration/support/until.js';
import { errorOf, fileOf, startGateway } from './support/gateway.js';
import { startUpstream } from './support/upstream.js';

const chat = { model: 'llama', messages: [{ role: 'user', content: 'hello' }] };
const as = (key: string, headers: Record<string, string> = {}) => ({
  headers: { authorization: `Bearer ${key}`, ...headers },
});
const acme = { key: 'sk-acme', tenant: 'acme' };
const mesh = { key: 'sk-mesh', tenant: 'mesh', trusted: true };

it('a key that a reload takes out of the file is refused when its turn comes, and others go on', async () => {
  const upstream = await startUpstream(() => {});
  const file = fileOf([upstream.url], { auth: { keys: [acme, mesh] } });
  const { gateway, post } = await startGateway(file);
  const running = post(chat, as('sk-mesh'));
  await until('one runs', () => upstream.received.length === 1);
  const revoked = post(chat, as('sk-acme'));
  const kept = post(chat, as('sk-mesh'));
  await until('two wait', () => gateway.flow.stats().waiting === 2);
  gateway.reconfigure(loadGatewayConfig({ ...file, auth: { keys: [mesh] } }));
  upstream.received[0]?.res.end('{}');
  const error = await errorOf(await revoked);
  expect(error).toMatchObject({
    status: 403,
    code: 'ERR_FLOW_REVOKED',
    message: expect.stringContaining('its API key was revoked'),
  });
  await until('the other runs', () => upstream.received.length === 2);
  upstream.received[1]?.res.end('{}');
  expect([(await running).status, (await kept).status]).toEqual([200, 200]);
});

it('a trusted sender bounds its wait, and nobody else does', async () => {
  const upstream = await startUpstream(() => {});
  const { gateway, post } = await startGateway(fileOf([upstream.url], { auth: { keys: [acme, mesh] } }));
  void post(chat, as('sk-acme')).catch(() => {});
  await until('one runs', () => upstream.received.length === 1);
  const header = { 'x-llm-d-inference-ttl': '30ms' };
  void post(chat, as('sk-acme', header)).catch(() => {});
  expect(await errorOf(await post(chat, as('sk-mesh', header)))).toMatchObject({
    status: 503,
    code: 'ERR_FLOW_TTL_EXPIRED',
  });
  expect(gateway.flow.stats().waiting).toBe(1);
});
