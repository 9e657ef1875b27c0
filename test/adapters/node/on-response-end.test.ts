import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { onResponseEnd } from '../../../src/adapters/node/index.js';
import { rawConnection } from '../../integration/support/clients.js';
import { until } from '../../integration/support/until.js';

async function serve(listener: http.RequestListener): Promise<number> {
  const server = http.createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const get = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';

describe('onResponseEnd', () => {
  it('tells a response that was sent from one that was not', async () => {
    const ends: [url: string | undefined, isSent: boolean][] = [];
    const port = await serve((req, res) => {
      onResponseEnd(req, res, (isSent) => ends.push([req.url, isSent]));
      if (req.url === '/sent') res.end('sent');
      else res.write('begun');
    });
    const { socket, received } = rawConnection(port);
    socket.write('GET /sent HTTP/1.1\r\nHost: localhost\r\n\r\nGET /begun HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until('both were answered', () => received().includes('begun'));
    expect(ends).toEqual([['/sent', true]]);
    socket.destroy();
    await until('the second ended', () => ends.length === 2);
    expect(ends[1]).toEqual(['/begun', false]);
  });

  it('calls at once when the response is over already', async () => {
    const calls: boolean[] = [];
    let isOver = false;
    const port = await serve((req, res) => {
      res.once('close', () => {
        onResponseEnd(req, res, (isSent) => calls.push(isSent));
        isOver = true;
      });
    });
    const { socket } = rawConnection(port);
    socket.write(get);
    await new Promise<void>((resolve) => socket.write('', () => resolve()));
    socket.destroy();
    await until('the response is over', () => isOver);
    expect(calls).toEqual([false]);
  });

  it('hangs one listener on a connection, however many responses are pipelined on it, and calls each once', async () => {
    let socket: Socket | undefined;
    let waiting = 0;
    let before = 0;
    const calls: number[] = [];
    const port = await serve((req, res) => {
      before ||= req.socket.listenerCount('close');
      socket = req.socket;
      const index = waiting;
      waiting += 1;
      calls[index] = 0;
      onResponseEnd(req, res, () => {
        calls[index] = calls[index]! + 1;
      });
    });
    const client = rawConnection(port);
    client.socket.write(get.repeat(20));
    await until('all wait', () => waiting === 20);
    expect(socket!.listenerCount('close')).toBe(before + 1);
    client.socket.destroy();
    await until('all ended', () => calls.every((count) => count > 0));
    await until('the connection closed', client.isClosed);
    expect(calls).toEqual(Array.from({ length: 20 }, () => 1));
  });

  it('leaves no listener on a response that was sent', async () => {
    const left: number[] = [];
    const port = await serve((req, res) => {
      const before = res.listenerCount('close');
      onResponseEnd(req, res, () => left.push(res.listenerCount('close') - before));
      res.end('sent');
    });
    const { socket, received } = rawConnection(port);
    socket.write(get + get);
    await until('both were answered', () => received().split('HTTP/1.1 200').length === 3);
    await until('both ended', () => left.length === 2);
    expect(left).toEqual([0, 0]);
    socket.destroy();
  });
});
