/** The gRPC server beside proxies that are broken, slow, hostile or gone. */
import { connect, constants } from 'node:http2';
import { createServer } from 'node:net';
import { Client, type ClientDuplexStream, credentials, makeClientConstructor } from '@grpc/grpc-js';
import { service as healthService } from 'grpc-health-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type ExtProcOptions,
  flowControl,
  type ServeExtProcOptions,
  serveExtProc,
} from '../../../src/adapters/ext-proc/index.js';
import { codecOf, type ProcessingRequest, type ProcessingResponse } from '../../../src/adapters/ext-proc/messages.js';
import { headersOf, rig } from './rig.js';

// Machines that have other work take their time.
vi.setConfig({ testTimeout: 60_000 });

const path = '/envoy.service.ext_proc.v3.ExternalProcessor/Process';
const request = codecOf<ProcessingRequest>('ProcessingRequest');
const response = codecOf<ProcessingResponse>('ProcessingResponse');
type Call = ClientDuplexStream<ProcessingRequest, ProcessingResponse>;

async function served(options: Partial<ExtProcOptions> = {}, given: ServeExtProcOptions = {}, seats = 1) {
  const { flow, pool } = rig({ seats });
  const handler = flowControl(flow, { pool, trust: true, contract: 'llm-d', ...options });
  const open: ReturnType<typeof handler>[] = [];
  const server = await serveExtProc(
    (sink) => {
      const stream = handler(sink);
      open.push(stream);
      return stream;
    },
    { host: '127.0.0.1', port: 0, ...given },
  );
  onTestFinished(() => server.close(0));
  const client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
  onTestFinished(() => client.close());
  return { flow, pool, server, client, open };
}

function callOf(client: Client): { call: Call; got: ProcessingResponse[]; code: () => number | undefined } {
  const call: Call = client.makeBidiStreamRequest(path, request.encode, response.decode);
  const got: ProcessingResponse[] = [];
  let code: number | undefined;
  call.on('data', (message: ProcessingResponse) => got.push(message));
  call.on('error', () => {});
  call.on('status', (status) => {
    code = status.code;
  });
  return { call, got, code: () => code };
}

function ask(call: Call, body = '{"model":"m"}'): void {
  call.write({ requestHeaders: { headers: headersOf({ ':path': '/v1/completions' }) } });
  call.write({ requestBody: { body: Buffer.from(body), endOfStream: true } });
}

const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 20_000, interval: 10 });

/** A gRPC message as bytes on a stream of HTTP/2. */
function framed(bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

function rawStreams(port: number, count: number) {
  const session = connect(`http://127.0.0.1:${port}`, { maxSessionMemory: 1_000 });
  session.on('error', () => {});
  onTestFinished(() => session.destroy());
  const head = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
  const statuses: (string | undefined)[] = [];
  const streams = Array.from({ length: count }, () => {
    const stream = session.request(head, { endStream: false });
    stream.on('error', () => {});
    stream.on('trailers', (trailers) => statuses.push(String(trailers['grpc-status'])));
    stream.on('response', (headers) => {
      if (headers['grpc-status'] !== undefined) statuses.push(String(headers['grpc-status']));
    });
    stream.resume();
    return stream;
  });
  return { session, streams, statuses };
}

describe('the server', () => {
  it('answers health for its names, and for a watcher as well', async () => {
    const { server } = await served({}, { healthPort: 0 });
    const Health = makeClientConstructor(healthService, 'Health');
    const watched: string[] = [];
    for (const port of [server.port, server.healthPort]) {
      const health = new Health(`127.0.0.1:${port}`, credentials.createInsecure());
      onTestFinished(() => health.close());
      const check = (service: string): Promise<unknown> =>
        new Promise((resolve) =>
          health.Check?.({ service }, (error: { code: number } | null, got: { status: string }) =>
            resolve(error?.code ?? got.status),
          ),
        );
      const names = ['', 'liveness', 'readiness', 'envoy.service.ext_proc.v3.ExternalProcessor'];
      expect(await Promise.all(names.map(check))).toEqual(names.map(() => 'SERVING'));
      expect(await check('nobody')).toBe(5);
      health
        .Watch?.({ service: '' })
        .on('data', ({ status }: { status: string }) => watched.push(status))
        .on('error', () => {});
    }
    await until(() => expect(watched).toEqual(['SERVING', 'SERVING']));
    server.setServing(false);
    await until(() => expect(watched.slice(2)).toEqual(['NOT_SERVING', 'NOT_SERVING']));
  });

  it('says why where its port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await vi.waitFor(() => expect(other.address()).not.toBeNull());
    const { port } = other.address() as { port: number };
    await expect(served({}, { port })).rejects.toThrow(/EADDRINUSE|bind/);
  });

  it('lets streams end when it closes, and cuts those that do not', async () => {
    const { client, server, flow } = await served();
    const running = callOf(client);
    ask(running.call);
    await until(() => expect(running.got).toHaveLength(2));
    await server.close(50);
    await until(() => expect(flow.stats().inFlight).toBe(0));
    expect(running.code()).toBeTypeOf('number');
  });
});

describe('a proxy', () => {
  it('that resets the stream while its request waits leaves the line', async () => {
    const { client, flow } = await served();
    const [first, second] = [callOf(client), callOf(client)];
    ask(first.call);
    await until(() => expect(flow.stats().inFlight).toBe(1));
    ask(second.call);
    await until(() => expect(flow.stats().waiting).toBe(1));
    second.call.cancel();
    await until(() => expect(flow.stats().waiting).toBe(0));
    first.call.cancel();
    await until(() => expect(flow.stats().inFlight).toBe(0));
  });

  it('that half-closes while its request waits is gone', async () => {
    const { client, flow } = await served();
    const [first, second] = [callOf(client), callOf(client)];
    ask(first.call);
    await until(() => expect(flow.stats().inFlight).toBe(1));
    ask(second.call);
    await until(() => expect(flow.stats().waiting).toBe(1));
    second.call.end();
    await until(() => expect([flow.stats().waiting, second.code()]).toEqual([0, 0]));
  });

  it('whose connection breaks leaves no seat taken', async () => {
    const { server, flow } = await served({}, {}, 9);
    const { session, streams } = rawStreams(server.port, 5);
    for (const stream of streams) {
      stream.write(framed(request.encode({ requestHeaders: { headers: headersOf({ ':path': '/' }) } })));
      stream.write(framed(request.encode({ requestBody: { body: Buffer.from('{}'), endOfStream: true } })));
    }
    await until(() => expect(flow.stats().inFlight).toBe(5));
    session.destroy();
    await until(() => expect(flow.stats().inFlight).toBe(0));
  });

  it('that sends a message that is too long gets RESOURCE_EXHAUSTED', async () => {
    const { client, flow } = await served({}, { maxMessageBytes: 100_000 });
    const { call, code } = callOf(client);
    ask(call, 'x'.repeat(200_000));
    await until(() => expect(code()).toBe(8));
    expect(flow.stats().inFlight).toBe(0);
  });

  it('that sends what is no message ends its own stream alone', async () => {
    const { client, server, flow } = await served({}, {}, 9);
    const good = callOf(client);
    ask(good.call);
    const { streams, statuses } = rawStreams(server.port, 3);
    const [garbage, part, empty] = streams;
    garbage?.write(framed(Buffer.from('\x0a\xff\xff\xff\xff\xff')));
    part?.end(framed(Buffer.alloc(100)).subarray(0, 50));
    empty?.end();
    await until(() => expect(statuses).toHaveLength(3));
    expect(statuses).toContain('13');
    good.call.write({ responseHeaders: { headers: headersOf({ ':status': '200' }) } });
    await until(() => expect(good.got).toHaveLength(3));
    expect(flow.stats().inFlight).toBe(1);
  });

  it('that opens streams and sends nothing has so many, and no more; when it leaves, others are served', async () => {
    const { client, server } = await served({ maxStreams: 200 });
    const { session, statuses } = rawStreams(server.port, 2_000);
    await until(() => expect(statuses).toHaveLength(1_800));
    expect(new Set(statuses)).toEqual(new Set(['8']));
    session.destroy();
    await vi.waitFor(async () => {
      const { call, got } = callOf(client);
      ask(call);
      await vi.waitFor(() => expect(got).toHaveLength(2), { timeout: 10_000 });
    }, 60_000);
  });

  it('that does not read what it is told is not read from either', async () => {
    const { server, open } = await served();
    const { streams } = rawStreams(server.port, 1);
    const [stream] = streams;
    stream?.pause();
    let received = 0;
    await until(() => expect(open).toHaveLength(1));
    const [exchange] = open;
    const receive = exchange?.receive.bind(exchange);
    vi.spyOn(exchange as object as { receive: (message: ProcessingRequest) => void }, 'receive').mockImplementation(
      (message) => {
        received++;
        receive?.(message);
      },
    );
    const piece = framed(request.encode({ responseBody: { body: Buffer.alloc(60_000), endOfStream: false } }));
    stream?.write(framed(request.encode({ responseHeaders: { headers: headersOf({ ':status': '200' }) } })));
    for (let i = 0; i < 400; i++) stream?.write(piece);
    let before = -1;
    await vi.waitFor(
      () => {
        const isStill = received === before;
        before = received;
        expect(isStill).toBe(true);
      },
      { timeout: 20_000, interval: 300 },
    );
    expect(received).toBeGreaterThan(1);
    expect(received).toBeLessThan(300);
    stream?.resume();
    await until(() => expect(received).toBe(401));
    stream?.close(constants.NGHTTP2_CANCEL);
  });
});
