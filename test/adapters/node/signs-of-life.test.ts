/** Answers that begin while their requests wait: what only Node's own requests and responses have. */
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { flowControl as nodeFlowControl } from '../../../src/adapters/node/index.js';
import { concurrencyDetector, explainWait, FlowController, type Lease } from '../../../src/index.js';
import { until } from '../../integration/support/until.js';

type Waiting = NonNullable<NonNullable<Parameters<typeof nodeFlowControl>[1]>['waiting']>;

const accept = 'text/event-stream';
const plain = (_req: IncomingMessage, res: ServerResponse): void => void res.end('served');

/** A server whose only seat another request holds. */
async function full(waiting: (flow: FlowController) => Waiting, handler = plain) {
  const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
  const held = await flow.enqueue({ byteSize: 1 }, { fairnessId: 'other' });
  const limit = nodeFlowControl(flow, { waiting: { after: 10, every: 3_600_000, ...waiting(flow) } });
  const server = http.createServer((req, res) => limit(req, res, () => handler(req, res))).listen(0);
  const server2 = http2.createServer((req, res) => limit(req, res, () => void res.end('served'))).listen(0);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    server2.close();
  });
  const get = (headers = {}) => http.get({ port: (server.address() as AddressInfo).port, headers });
  const get2 = (headers: Record<string, string> = {}) => {
    const session = http2.connect(`http://localhost:${(server2.address() as AddressInfo).port}`);
    onTestFinished(() => session.destroy());
    return session.request(headers);
  };
  return { flow, get, get2, release: () => (held as unknown as { lease: Lease }).lease.release() };
}

/** What has come of a response so far. */
function reading(response: AsyncIterable<unknown>) {
  const read = { text: '', over: Promise.resolve() };
  read.over = (async () => {
    for await (const chunk of response) read.text += chunk;
  })();
  return read;
}

it('its place is told where the host says so', async () => {
  const { get, release, flow } = await full((flow) => ({ place: () => explainWait(flow, () => true) }));
  const [response] = (await once(get({ accept }), 'response')) as [IncomingMessage];
  const read = reading(response);
  await until('a sign came', () => read.text !== '');
  expect(read.text).toBe(': waiting position=1 eta=1s\n\n');
  release();
  await read.over;
  expect(flow.stats().inFlight).toBe(0);
});

it('a head of raw pairs of names and values is understood', async () => {
  const { get, release } = await full(
    () => ({}),
    (_req, res) => void res.writeHead(200, 'Said', ['content-type', accept, 'x-more', '1']).end('data: 1\n\n'),
  );
  const [response] = (await once(get({ accept }), 'response')) as [IncomingMessage];
  const read = reading(response);
  await until('a sign came', () => read.text !== '');
  release();
  await read.over;
  expect(read.text).toBe(': waiting\n\ndata: 1\n\n');
});

it('requests without a stream are told 102 where the host says so', async () => {
  const { get, release } = await full(() => ({ informational: true }));
  const request = get();
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  const [{ statusCode }] = (await once(request, 'information')) as [{ statusCode: number }];
  expect(statusCode).toBe(102);
  release();
  const [response] = await answered;
  response.resume();
  expect(response.statusCode).toBe(200);
});

it('they are told 102 over HTTP/2 as well, until they are answered, or leave', async () => {
  const { get2, release, flow } = await full(() => ({ informational: true, every: 1 }));
  const [stream, leaving] = [get2(), get2()];
  for (const one of [stream, leaving]) {
    const [head] = await once(one, 'headers');
    expect(head[':status']).toBe(102);
  }
  leaving.close(http2.constants.NGHTTP2_CANCEL);
  await until('one waits', () => flow.stats().waiting === 1);
  const answered = once(stream, 'response');
  release();
  expect((await answered)[0][':status']).toBe(200);
  const read = reading(stream);
  await read.over;
  expect(read.text).toBe('served');
  await until('the seat is free', () => flow.stats().inFlight === 0);
});

it('options that cannot be right are told at once', () => {
  const flow = new FlowController({ maxConcurrency: 1 });
  expect(() => nodeFlowControl(flow, { waiting: { after: 0, json: 'spaces' as never } })).toThrow(
    /waiting\.after: expected a number above 0; got 0[\s\S]*waiting\.json: expected one of "whitespace"/,
  );
});
