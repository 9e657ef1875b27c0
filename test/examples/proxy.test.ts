import { once } from 'node:events';
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  type RequestListener,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { forward, type Upstream } from '../../examples/gateway/proxy.mjs';

const servers: Server[] = [];

async function listen(handler: RequestListener): Promise<string> {
  const server = createServer(handler);
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/**
 * A proxy whose exchange ends when the controller aborts, in front of a server that hands its responses to the test.
 */
async function startExchange() {
  let received: (res: ServerResponse) => void = () => {};
  const atServer = new Promise<ServerResponse>((resolve) => {
    received = resolve;
  });
  const upstream: Upstream = { id: 'server', url: await listen((_, res) => received(res)), inFlight: 0 };
  const controller = new AbortController();
  let atProxy: ServerResponse | undefined;
  const url = await listen((req, res) => {
    atProxy = res;
    forward(req, res, upstream, controller.signal);
  });
  const client: ClientRequest = request(url).end();
  const answered = once(client, 'response') as Promise<[IncomingMessage]>;
  const serverResponse = await atServer;
  return { upstream, controller, answered, serverResponse, proxyResponse: atProxy as unknown as ServerResponse };
}

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

describe('forward, when its signal aborts', () => {
  it('hangs up on the server, and leaves the answer to whoever aborted', async () => {
    const { upstream, controller, answered, serverResponse, proxyResponse } = await startExchange();
    controller.abort();
    await once(serverResponse, 'close');
    proxyResponse.writeHead(429).end('evicted');
    const [answer] = await answered;
    expect([answer.statusCode, await text(answer), upstream.inFlight]).toEqual([429, 'evicted', 0]);
  });

  it('breaks off an answer that has begun', async () => {
    const { controller, answered, serverResponse } = await startExchange();
    serverResponse.write('first token');
    const [answer] = await answered;
    const gone = once(serverResponse, 'close');
    controller.abort();
    await expect(text(answer)).rejects.toThrow('aborted');
    await gone;
  });
});

describe('forward, when the server fails', () => {
  it('answers 502', async () => {
    const { answered, serverResponse } = await startExchange();
    serverResponse.destroy();
    const [answer] = await answered;
    expect(answer.statusCode).toBe(502);
    answer.resume();
  });
});
