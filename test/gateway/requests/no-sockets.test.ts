/** Without the package `ws`: what an upgrade is answered. */
import { expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { until } from '../../integration/support/until.js';
import { fileOf, startGateway } from '../support/gateway.js';

vi.mock('../../../src/gateway/shared/optional-peers.js', async (original) => ({
  ...(await original<object>()),
  loadWs: async () => undefined,
}));

it('a gateway without the package answers an upgrade with 501, and says what to install', async () => {
  const { gateway, log } = await startGateway(fileOf(['http://127.0.0.1:1']));
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/responses`);
  let answer: { status: number | undefined; body: string } | undefined;
  socket.on('error', () => {});
  socket.on('unexpected-response', (_, response) => {
    response.setEncoding('utf8').on('data', (body: string) => (answer = { status: response.statusCode, body }));
  });
  await until('answered', () => answer !== undefined);
  expect(answer).toMatchObject({ status: 501, body: expect.stringContaining('npm install ws') });
  await until('logged', () => log.some(({ event }) => event === 'request'));
  expect(log.find(({ event }) => event === 'request')?.fields).toMatchObject({ code: 'websockets_not_installed' });
});
