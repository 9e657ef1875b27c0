import http from 'node:http';
import http2 from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type AdapterGate,
  type FlowControlOptions,
  flowControl,
  type HttpFlowRequest,
  type NodeRequest,
  type NodeResponse,
  type WithFlow,
} from '../../../src/adapters/node/index.js';
import {
  concurrencyDetector,
  type Drop,
  FlowConfigError,
  FlowControlError,
  FlowController,
  type FlowGate,
  type FlowKey,
  type Lease,
  type Outcome,
} from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { rawConnection } from '../../integration/support/clients.js';
import { deferred, until } from '../../integration/support/until.js';

interface Lent extends Lease {
  releases: number;
}

function lend(fairnessId = 'a', priority = 0): Lent {
  const controller = new AbortController();
  const lease: Omit<Lent, typeof Symbol.dispose> = {
    fairnessId,
    priority,
    releases: 0,
    dispatchedAtMs: 0,
    tokens: 0,
    endpoint: undefined,
    usage: { promptTokens: 0, completionTokens: 0 },
    isReleased: false,
    isEvicted: false,
    isEvictable: false,
    isPutOff: false,
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    onAbort() {},
    bind() {},
    report() {},
    answered() {},
    unsent() {},
    endSession() {},
    requeue: () => Promise.reject(new Error('not evicted')),
    release() {
      lease.releases += 1;
    },
  };
  return lease as Lent;
}

const dispatched = (lease: Lease = lend()): Outcome => ({ type: 'Dispatched', lease, queuedMs: 12.9 });
const full: Drop = {
  type: 'RejectedCapacity',
  reason: 'global-max-requests',
  fairnessId: 'a',
  priority: 0,
  queuedMs: 0,
};

/** A gate that remembers what it was asked. */
function recordingGate(answer: () => Outcome | Promise<Outcome>, isPrompt = false) {
  const asked: { request: HttpFlowRequest<NodeRequest>; key: FlowKey }[] = [];
  const gate: AdapterGate<HttpFlowRequest<NodeRequest>> = {
    async enqueue(request, key) {
      asked.push({ request, key });
      return answer();
    },
    ...(isPrompt && {
      enter(request: HttpFlowRequest<NodeRequest>, key: FlowKey) {
        asked.push({ request, key });
        return answer();
      },
    }),
  };
  return { gate, asked };
}

type Handler = (req: WithFlow<NodeRequest>, res: NodeResponse, error: unknown) => void;

async function serve(
  gate: FlowGate<HttpFlowRequest<NodeRequest>>,
  options: FlowControlOptions<NodeRequest>,
  handler: Handler,
  isHttp2 = false,
) {
  const limit = flowControl(gate, options);
  const listener = (req: NodeRequest, res: NodeResponse) => limit(req, res, (error) => handler(req, res, error));
  const server: Server = isHttp2 ? http2.createServer(listener) : http.createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Sends bytes and collects the answers until the connection closes. */
async function exchange(port: number, text: string): Promise<string> {
  const { socket, received, isClosed } = rawConnection(port);
  socket.write(text);
  await until('the connection to close', isClosed);
  return received();
}

const get = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const ok: Handler = (_req, res) => void res.end('ok');

describe('asking', () => {
  it('a controller that answers at once is not given a signal', async () => {
    const { gate, asked } = recordingGate(dispatched, true);
    const port = await serve(gate, {}, ok);
    expect(await exchange(port, get)).toContain('200 OK');
    expect(asked).toHaveLength(1);
    expect(asked[0]!.request.signal).toBeUndefined();
  });

  it('a request that has to wait gets one', async () => {
    const { gate, asked } = recordingGate(dispatched);
    const port = await serve(gate, {}, ok);
    expect(await exchange(port, get)).toContain('200 OK');
    expect(asked).toHaveLength(1);
    expect(asked[0]!.request.signal).toBeInstanceOf(AbortSignal);
  });

  it('a request that has to wait is one arrival, and asks the admission policy once', async () => {
    const admitted: string[] = [];
    const flow = new FlowController<HttpFlowRequest<NodeRequest>>({
      saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
      admission: {
        type: 'counts',
        admit(_request, { fairnessId }) {
          admitted.push(fairnessId);
          return 'admit';
        },
      },
      clock: new ManualClock(),
    });
    const first = flow.enter({ byteSize: 1 } as HttpFlowRequest<NodeRequest>, { fairnessId: 'first' }) as Outcome;
    const port = await serve(flow, { classify: () => ({ fairnessId: 'second' }) }, ok);
    const answer = exchange(port, get);
    await until('it waits', () => flow.stats().waiting === 1);
    expect(flow.figures().bands).toMatchObject([{ arrivedPerSecond: 2 }]);
    if (first.type === 'Dispatched') first.lease.release();
    expect(await answer).toContain('200 OK');
    expect(admitted).toEqual(['first', 'second']);
  });

  it('enqueue alone is enough', async () => {
    const lease = lend();
    const { gate } = recordingGate(() => dispatched(lease));
    const port = await serve(gate, {}, (req, res) => void res.end(`queued ${req.flow!.queuedMs}`));
    const answer = await exchange(port, get);
    expect(answer).toContain('queued 12.9');
    expect(answer).toContain('x-llm-d-flow-queue-duration-ms: 12\r\n');
    expect(lease.releases).toBe(1);
  });

  it('says what it knows of the request', async () => {
    const { gate, asked } = recordingGate(dispatched);
    const classify = () => ({ fairnessId: 'tenant', priority: 5, tokens: 300, ttlMs: 1_000, sloTtftMs: 200 });
    const port = await serve(gate, { classify, byteSize: () => 77 }, ok);
    await exchange(port, get);
    expect(asked[0]!.key).toEqual({ fairnessId: 'tenant', priority: 5 });
    expect(asked[0]!.request).toMatchObject({ byteSize: 77, tokens: 300, ttlMs: 1_000, sloTtftMs: 200 });
    expect(asked[0]!.request.req.url).toBe('/');
  });

  it.each([
    ['no body', get, {}, 0],
    ['a declared body', 'POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello', {}, 5],
    [
      'a chunked body',
      'POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      {},
      65_536,
    ],
    [
      'a chunked body, booked otherwise',
      'POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      { unknownBodyBytes: 9 },
      9,
    ],
  ])('%s is booked as %#', async (_, text, options, expected) => {
    const { gate, asked } = recordingGate(dispatched);
    const port = await serve(gate, options, ok);
    await exchange(port, text);
    expect(asked[0]!.request.byteSize).toBe(expected);
  });

  it.each([
    ['no body', {}, undefined, 0],
    ['a declared body', { 'content-length': '5' }, 'hello', 5],
    ['a body of unknown length', {}, 'hello', 65_536],
  ])('HTTP/2: %s is booked as %#', async (_, headers, body, expected) => {
    const { gate, asked } = recordingGate(dispatched);
    const port = await serve(gate, {}, ok, true);
    const session = http2.connect(`http://localhost:${port}`);
    const stream = session.request({ ':method': 'POST', ...headers }, { endStream: body === undefined });
    if (body !== undefined) stream.end(body);
    stream.resume();
    await until('it is asked', () => asked.length === 1);
    expect(asked[0]!.request.byteSize).toBe(expected);
    session.destroy();
  });
});

describe('answering', () => {
  it('an enqueue that rejects is the host’s to answer', async () => {
    const errors: unknown[] = [];
    const { gate } = recordingGate(() => Promise.reject(new FlowConfigError('enqueue', [])));
    const port = await serve(gate, {}, (_req, res, error) => {
      errors.push(error);
      res.end();
    });
    await exchange(port, get);
    expect(errors).toEqual([expect.any(FlowConfigError)]);
  });

  it('a response that something else sent meanwhile stays, and the lease goes back', async () => {
    const answer = deferred<Outcome>();
    const lease = lend();
    const { gate, asked } = recordingGate(() => answer.promise);
    let handled = 0;
    const limit = flowControl(gate);
    const server = http.createServer((req, res) => {
      limit(req, res, () => {
        handled += 1;
      });
      res.end('timeout');
      answer.resolve(dispatched(lease));
    });
    await new Promise<void>((resolve) => server.listen(0, resolve));
    onTestFinished(() => void server.close());
    expect(await exchange((server.address() as AddressInfo).port, get)).toContain('timeout');
    await until('the lease is back', () => lease.releases === 1);
    expect(asked).toHaveLength(1);
    expect(handled).toBe(0);
  });

  it.each([
    ['a drop is handed on', full, FlowControlError],
    ['a lease is used', undefined, undefined],
  ])('a response that the host began while waiting is the host’s to end: %s', async (_, drop, expected) => {
    const { gate } = recordingGate(async () => drop ?? dispatched());
    const errors: unknown[] = [];
    const limit = flowControl(gate);
    const server = http.createServer((req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write(': queued\n\n');
      limit(req, res, (error) => {
        errors.push(error);
        res.end('data: end\n\n');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, resolve));
    onTestFinished(() => void server.close());
    expect(await exchange((server.address() as AddressInfo).port, get)).toContain('data: end');
    expect(errors).toEqual([expected === undefined ? undefined : expect.any(expected)]);
  });

  it('a client that leaves is answered by nobody, and logs find no 200', async () => {
    const answer = deferred<Outcome>();
    const { gate, asked } = recordingGate(() => answer.promise);
    let handled = 0;
    let response: NodeResponse | undefined;
    const limit = flowControl(gate, { onDrop: 'throw' });
    const server = http.createServer((req, res) => {
      response = res;
      limit(req, res, () => {
        handled += 1;
      });
    });
    await new Promise<void>((resolve) => server.listen(0, resolve));
    onTestFinished(() => void server.close());
    const { socket } = rawConnection((server.address() as AddressInfo).port);
    socket.write(get);
    await until('it waits', () => asked.length === 1);
    socket.destroy();
    await until('the wait is aborted', () => asked[0]!.request.signal!.aborted);
    answer.resolve({ ...full, type: 'EvictedContextCancelled', reason: 'cancelled' });
    await until('it is logged as dropped', () => response!.statusCode === 503);
    expect(handled).toBe(0);
  });

  it('small bodies are drained, large ones cut off', async () => {
    const { gate } = recordingGate(() => full);
    const port = await serve(gate, {}, ok);
    const post = (length: number) => `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n`;
    const { socket, received } = rawConnection(port);
    socket.write(post(16_384));
    await until('the first is refused', () => received().includes('429'));
    expect(received().toLowerCase()).not.toContain('connection: close');
    socket.write('x'.repeat(16_384) + post(16_385));
    await until('the second is refused', () => received().toLowerCase().includes('connection: close'));
  });
});

describe('several in a row', () => {
  it.each([
    ['the same controller gives one lease', true, 1],
    ['two controllers give a lease each', false, 2],
  ])('%s', async (_, isSame, expected) => {
    const lease = lend();
    const first = recordingGate(() => dispatched(lease), true).gate;
    const outer = flowControl(first);
    const inner = flowControl(isSame ? first : recordingGate(() => dispatched(lease), true).gate);
    const server = http.createServer((req, res) => outer(req, res, () => inner(req, res, () => res.end('ok'))));
    await new Promise<void>((resolve) => server.listen(0, resolve));
    onTestFinished(() => void server.close());
    await exchange((server.address() as AddressInfo).port, get);
    await until('all are released', () => lease.releases === expected);
  });
});

describe('options', () => {
  it('are checked when the middleware is made', () => {
    const { gate } = recordingGate(dispatched);
    expect(() => flowControl(gate, { onDrop: 'ignore' as 'throw' })).toThrow(FlowConfigError);
    expect(() => flowControl(gate, { trsut: true } as object)).toThrow(/flowControl options: trsut: expected one of/);
  });
});
