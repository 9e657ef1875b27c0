/** Bodies on their way into the gateway: in crumbs, slowly, and of any type. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { rawConnection } from '../../integration/support/clients.js';
import { until } from '../../integration/support/until.js';
import { collectGarbage } from '../../support/collect-garbage.js';
import { errorOf, fileOf, type Started, startGateway } from '../support/gateway.js';
import { type Answer, startUpstream } from '../support/upstream.js';

const chat = { model: 'llama', messages: [{ role: 'user', content: 'hello' }] };
const json = 'application/json';
const audio = 'audio/wav';

const done: Answer = ({ res }) => res.end('done');

/** A request whose body comes in chunks, as they are given. */
function sendChunks({ gateway }: Started, type: string, chunks: readonly string[]): Socket {
  const socket = connect(Number(new URL(gateway.url).port));
  onTestFinished(() => void socket.destroy());
  const path = type === json ? '/v1/chat/completions' : '/v1/audio/transcriptions';
  socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`);
  socket.write(chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join(''));
  return socket;
}

/** All that comes back. */
function answerOf(socket: Socket): () => string {
  let text = '';
  socket.on('data', (part) => (text += part)).on('error', () => {});
  return () => text;
}

/** The requests that reach servers of this process from now on. */
function arrivals(): IncomingMessage[] {
  const requests: IncomingMessage[] = [];
  const note = (message: unknown): void => void requests.push((message as { request: IncomingMessage }).request);
  subscribe('http.server.request.start', note);
  onTestFinished(() => void unsubscribe('http.server.request.start', note));
  return requests;
}

async function heapAndBuffers(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const crumbs = (count: number): string[] => ['{"model":"llama","x":"', ...Array.from({ length: count }, () => 'x')];

describe.each([json, audio])('a body in chunks of one byte: %s', (type) => {
  it('arrives as it was sent', async () => {
    const upstream = await startUpstream(done);
    const started = await startGateway(fileOf([upstream.url]));
    const socket = sendChunks(started, type, [...crumbs(20_000), '"}', '']);
    const answer = answerOf(socket);
    await until('it is answered', () => answer().includes('200 OK'));
    expect(upstream.received[0]?.body).toBe(`{"model":"llama","x":"${'x'.repeat(20_000)}"}`);
  });

  it('holds little more than its bytes while it comes', async () => {
    const started = await startGateway(fileOf([(await startUpstream(done)).url]));
    const requests = arrivals();
    const before = await heapAndBuffers();
    const sockets = Array.from({ length: 6 }, () => sendChunks(started, type, crumbs(10_000)));
    await until('all have arrived', () => requests.length === 6 && requests.every((req, i) => isRead(req, sockets[i])));
    expect(((await heapAndBuffers()) - before) / 60_000).toBeLessThan(60);
  });

  it('has an end: each chunk counts against the share of its sender', async () => {
    const started = await startGateway(
      fileOf([(await startUpstream(done)).url], { limits: { maxReadingBytes: '16Mi' } }),
    );
    const answer = answerOf(sendChunks(started, type, [...crumbs(8_300), '"}', '']));
    await until('it is answered', () => answer().includes('HTTP/1.1'));
    expect(answer()).toContain('gateway_busy');
    expect((await started.post(chat)).status).toBe(200);
  });
});

/** True when the gateway has read everything that the client wrote. */
function isRead({ socket }: IncomingMessage, client: Socket | undefined): boolean {
  return socket.bytesRead === client?.bytesWritten;
}

describe('an upload that is not JSON', () => {
  it('holds no seat while it comes, however slowly, and goes on as it was sent', async () => {
    const upstream = await startUpstream(done);
    const started = await startGateway(fileOf([upstream.url]));
    const slow = sendChunks(started, audio, ['RIFF']);
    const answer = answerOf(slow);
    expect((await started.post(chat)).status).toBe(200);
    expect(started.gateway.flow.stats().enqueued).toBe(1);
    slow.write('4\r\nWAVE\r\n0\r\n\r\n');
    await until('it is answered', () => answer().includes('200 OK'));
    expect(upstream.received[1]).toMatchObject({ body: 'RIFFWAVE', req: { headers: { 'content-type': audio } } });
  });

  it('counts what has arrived against the share of its sender, and against the limits while it waits', async () => {
    const limits = { maxRequestBytes: 20_000, maxReadingBytes: 40_000 };
    const started = await startGateway(fileOf([(await startUpstream(() => {})).url], { limits }));
    void started.post(chat).catch(() => {});
    await until('the seat is taken', () => started.gateway.flow.stats().inFlight === 1);
    sendChunks(started, audio, ['x'.repeat(15_000), '']);
    await until('it waits', () => started.gateway.flow.stats().waiting === 1);
    expect(started.gateway.flow.stats().waitingBytes).toBe(15_000);
    const answers = ['x', 'y'].map((letter) => answerOf(sendChunks(started, audio, [letter.repeat(15_000)])));
    await until('one is told', () => answers.some((answer) => answer().includes('gateway_busy')));
  });

  it('keeps its packing, which the gateway does not undo', async () => {
    const upstream = await startUpstream(done);
    const { gateway } = await startGateway(fileOf([upstream.url]));
    const headers = { 'content-type': audio, 'content-encoding': 'gzip', 'accept-encoding': 'br' };
    const response = await fetch(`${gateway.url}/v1/audio/transcriptions`, { method: 'POST', headers, body: 'packed' });
    expect(response.status).toBe(200);
    expect(upstream.received[0]).toMatchObject({
      body: 'packed',
      req: { headers: { 'content-encoding': 'gzip', 'accept-encoding': 'br' } },
    });
  });

  it('is sent to another server when the first one refuses it', async () => {
    const refusing = await startUpstream(({ res }) => res.writeHead(503).end('Server overloaded: later'));
    const upstream = await startUpstream(done);
    const { gateway } = await startGateway(fileOf([refusing.url, upstream.url]));
    const headers = { 'content-type': audio };
    const send = (): Promise<Response> =>
      fetch(`${gateway.url}/v1/audio/transcriptions`, { method: 'POST', headers, body: 'RIFF' });
    expect((await send()).status).toBe(200);
    expect((await send()).status).toBe(200);
    expect(upstream.received.map(({ body }) => body)).toEqual(['RIFF', 'RIFF']);
  });

  it('gets permission to upload at once, and its seat when it is there', async () => {
    const { gateway } = await startGateway(fileOf([(await startUpstream(done)).url]));
    const client = rawConnection(Number(new URL(gateway.url).port));
    onTestFinished(() => void client.socket.destroy());
    client.socket.write(
      `POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nContent-Type: ${audio}\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n`,
    );
    await until('it may go on', () => client.received().includes('100 Continue'));
    expect(gateway.flow.stats().enqueued).toBe(0);
    client.socket.write('RIFF');
    await until('it is answered', () => client.received().includes('200 OK'));
  });

  it('is told how large it may be', async () => {
    const { gateway } = await startGateway(
      fileOf([(await startUpstream(done)).url], { limits: { maxRequestBytes: 10 } }),
    );
    const init = { method: 'POST', headers: { 'content-type': audio }, body: 'x'.repeat(11) };
    expect(await errorOf(await fetch(`${gateway.url}/v1/x`, init))).toMatchObject({ code: 'request_too_large' });
  });
});
