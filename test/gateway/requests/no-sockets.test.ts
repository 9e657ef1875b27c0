/** Without the package `ws`: what an upgrade is answered. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import type { RequestHandler } from '../../../src/gateway/requests/request-handler.js';
import { TurnSockets } from '../../../src/gateway/requests/turn-sockets.js';
import { until } from '../../integration/support/until.js';
import { fileOf, startGateway } from '../support/gateway.js';

it('a gateway without the package answers an upgrade with 501, and says what to install', async () => {
  const { gateway, log } = await startGateway(fileOf(['http://127.0.0.1:1']));
  const handler: RequestHandler = Reflect.get(gateway, 'handler');
  const server = createServer();
  new TurnSockets(handler, undefined, () => {}).attach(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/v1/responses`);
  socket.on('error', () => {});
  const [status, body] = await new Promise<[number | undefined, string]>((resolve) =>
    socket.on('unexpected-response', async (_, response) => {
      let text = '';
      for await (const chunk of response) text += chunk;
      resolve([response.statusCode, text]);
    }),
  );
  expect([status, JSON.parse(body).error]).toMatchObject([501, { code: 'websockets_not_installed' }]);
  expect(body).toContain('npm install ws');
  await until('logged', () => log.some(({ event }) => event === 'request'));
  expect(log.find(({ event }) => event === 'request')?.fields).toMatchObject({ status: 501, path: '/v1/responses' });
});
