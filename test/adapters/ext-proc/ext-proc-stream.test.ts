/** What a proxy is told of a request, part by part. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { inFlightEviction } from '../../../src/index.js';
import { rig, served, subset } from './rig.js';

const fullDuplex = { protocolConfig: { requestBodyMode: 4, responseBodyMode: 4 } };

describe('a request', () => {
  it('is answered when it is whole: where it goes, in the header and in the metadata, and then its body', () => {
    const proxy = rig().open().headers({}, false, fullDuplex).body('{"model":', false);
    expect(proxy.written).toEqual([]);
    proxy.body('"m"}');
    expect(proxy.parts).toEqual(['requestHeaders', 'requestBody']);
    expect(proxy.destination).toBe('10.0.0.1:8000');
    const told = proxy.written[0]?.dynamicMetadata?.fields?.['envoy.lb']?.structValue?.fields;
    expect(told?.['x-gateway-destination-endpoint']?.stringValue).toBe('10.0.0.1:8000');
    expect(proxy.passed('requestBody')).toBe('{"model":"m"}');
    expect(proxy.decided?.set['content-length']).toBe('13');
  });

  it('has its control headers taken off, and an id where it has none', () => {
    const proxy = rig()
      .open()
      .ask({ 'x-llm-d-inference-fairness-id': 'a', 'x-gateway-destination-endpoint-subset': 'b' });
    expect(proxy.decided?.removed).toEqual(['x-llm-d-inference-fairness-id', 'x-gateway-destination-endpoint-subset']);
    expect(proxy.decided?.set['x-request-id']).toMatch(/^[\da-f-]{36}$/);
    const named = rig().open().ask({ 'x-request-id': 'mine' });
    expect(named.decided?.set).not.toHaveProperty('x-request-id');
  });

  it.each([true, false])("keeps Dynamo's policy class where its sender is trusted (%s), and only there", (trust) => {
    const named = { 'x-dynamo-meta-policy-class': 'premium', 'x-other': 'stays' };
    const proxy = rig({ options: { trust } }).open().ask(named);
    expect(proxy.decided?.removed).toEqual(trust ? [] : ['x-dynamo-meta-policy-class']);
  });

  it('without a body needs no seat, and goes at once', () => {
    const { open, flow } = rig();
    open().ask();
    const get = open().headers({ ':method': 'GET' }, true);
    expect([get.parts, get.destination, flow.stats().waiting]).toEqual([['requestHeaders'], '10.0.0.1:8000', 0]);
    expect(get.decided?.set).not.toHaveProperty('content-length');
  });

  it('waits for a seat, and nothing is told while it waits', async () => {
    const { open, flow } = rig();
    const first = open().ask();
    const second = open().ask();
    expect([second.written, flow.stats().waiting]).toEqual([[], 1]);
    first.answerHeaders().answerBody('{}');
    await vi.waitFor(() => expect(second.destination).toBe('10.0.0.1:8000'));
  });

  it('that ends with trailers is whole then, and its trailers are answered after its body', () => {
    const proxy = rig().open().headers().body('{}', false).send({ requestTrailers: {} });
    expect(proxy.parts).toEqual(['requestHeaders', 'requestBody', 'requestTrailers']);
    const [, body] = proxy.written;
    expect(body?.requestBody?.response?.bodyMutation).toMatchObject({ streamedResponse: { endOfStream: false } });
  });

  it('whose end is told twice is sent once', () => {
    const proxy = rig().open().ask();
    const before = proxy.written.length;
    proxy.body('"m"}');
    expect([proxy.written.length, proxy.refused]).toEqual([before, undefined]);
  });

  it('in pieces of 62,000 bytes at most', () => {
    const text = `{"model":"m","prompt":"${'x'.repeat(200_000)}"}`;
    const proxy = rig().open().headers().body(text);
    expect(proxy.passed('requestBody')).toBe(text);
    expect(proxy.parts).toEqual(['requestHeaders', 'requestBody', 'requestBody', 'requestBody', 'requestBody']);
    const ends = proxy.written.slice(1).map(({ requestBody }) => requestBody?.response?.bodyMutation);
    expect(ends.map((each) => each && 'streamedResponse' in each && each.streamedResponse.endOfStream)).toEqual([
      false,
      false,
      false,
      true,
    ]);
  });

  it('of a buffered body is answered with the body, where the proxy waits for it', () => {
    const proxy = rig()
      .open()
      .headers({}, false, { protocolConfig: { requestBodyMode: 2, responseBodyMode: 0 } });
    expect(proxy.written).toEqual([{ requestHeaders: {} }]);
    proxy.body();
    expect(proxy.parts).toEqual(['requestHeaders', 'requestBody']);
    expect(proxy.destination).toBe('10.0.0.1:8000');
  });

  it('is told several endpoints, the one with the seat first, and none that must not get requests', () => {
    const { open, pool } = rig({ servers: 4, seats: 9, options: { maxEndpoints: 3 } });
    pool.update('10.0.0.2:8000', { state: 'draining' });
    const first = open().ask();
    expect(first.destination?.split(',').sort()).toEqual(['10.0.0.1:8000', '10.0.0.3:8000', '10.0.0.4:8000']);
  });
});

describe('a subset of endpoints', () => {
  it('binds a request: it waits for one of them while others have room', async () => {
    const { open, flow } = rig({ servers: 2, flow: { holBlocking: 'none' } });
    const first = open().ask({}, subset('10.0.0.1:8000'));
    expect(first.destination).toBe('10.0.0.1:8000');
    const second = open().ask({}, subset('10.0.0.1:8000'));
    expect(second.written).toEqual([]);
    const third = open().ask();
    await vi.waitFor(() => expect(third.destination).toBe('10.0.0.2:8000'));
    expect(flow.stats().waiting).toBe(1);
    first.answerHeaders({ ':status': '200' }, true);
    await vi.waitFor(() => expect(second.destination).toBe('10.0.0.1:8000'));
  });

  it.each([
    ['an address without a port allows each of its ports', '10.0.0.1', '10.0.0.1:8000'],
    ['a port counts where it is given', '10.0.0.1:9000', undefined],
    ['nobody known', '10.9.9.9:8000', undefined],
  ])('%s', (_, allowed, destination) => {
    const proxy = rig({ servers: 2 }).open().ask({}, subset(allowed));
    expect(proxy.destination).toBe(destination);
    if (destination === undefined) expect(proxy.refused?.status).toBe(503);
  });

  it('binds a request without a body as well', () => {
    expect(rig().open().headers({}, true, subset('10.9.9.9:1')).refused?.status).toBe(503);
  });

  it('may come with any message of the request', () => {
    const proxy = rig({ servers: 2 }).open().headers();
    proxy.send({ ...subset('10.0.0.2:8000'), requestBody: { body: Buffer.from('{}'), endOfStream: true } });
    expect(proxy.destination).toBe('10.0.0.2:8000');
  });
});

describe('an answer', () => {
  it('passes piece by piece, and its end gives the seat back', () => {
    const { open, flow } = rig();
    const proxy = open().ask().answerHeaders();
    proxy.answerBody('data: 1\n\n', false);
    expect([proxy.passed('responseBody'), flow.stats().inFlight]).toEqual(['data: 1\n\n', 1]);
    proxy.answerBody('data: 2\n\n');
    expect([proxy.passed('responseBody'), flow.stats().inFlight]).toEqual(['data: 1\n\ndata: 2\n\n', 0]);
    expect(proxy.end).toBeUndefined();
  });

  it.each([
    [
      'its headers',
      (proxy: ReturnType<ReturnType<typeof rig>['open']>) => proxy.answerHeaders({ ':status': '204' }, true),
    ],
    [
      'its trailers',
      (proxy: ReturnType<ReturnType<typeof rig>['open']>) =>
        proxy.answerHeaders().answerBody('a', false).send({ responseTrailers: {} }),
    ],
  ])('that ends with %s gives the seat back then', (_, answer) => {
    const { open, flow } = rig();
    answer(open().ask());
    expect(flow.stats().inFlight).toBe(0);
  });

  it('of another endpoint than the first moves the seat there', () => {
    const { open, pool } = rig({ servers: 2 });
    open().ask().answerHeaders({ ':status': '200' }, false, served('10.0.0.2:8000'));
    expect(pool.endpoints.map(({ inFlightRequests }) => inFlightRequests)).toEqual([0, 1]);
  });

  it('of the proxy itself, to a request that is not whole, is answered as others are', () => {
    const proxy = rig().open().headers().answerHeaders({ ':status': '408' }).answerBody('late');
    expect([proxy.parts, proxy.passed('responseBody')]).toEqual([['responseHeaders', 'responseBody'], 'late']);
  });

  it('is changed by a reader, which may hold bytes back until the end, and tells facts then', () => {
    const facts = { fields: { mine: { structValue: { fields: { cost: { numberValue: 3 } } } } } };
    let held = '';
    const responding = () => ({
      keepsLength: false,
      pass(piece: Uint8Array, isLast: boolean) {
        held += Buffer.from(piece).toString().toUpperCase();
        return Buffer.from(isLast ? held : '');
      },
      facts: () => facts,
    });
    const proxy = rig({ options: { responding } }).open().ask();
    proxy.answerHeaders({ ':status': '200', 'content-length': '4' }).answerBody('ab', false).answerBody('cd');
    expect(proxy.passed('responseBody')).toBe('ABCD');
    expect(proxy.written.at(-1)?.dynamicMetadata).toEqual(facts);
    expect(proxy.written.find((each) => each.responseHeaders)?.responseHeaders?.response?.headerMutation).toEqual({
      removeHeaders: ['content-length'],
    });
  });
});

describe('a refusal', () => {
  it('is an immediate response that clients understand, and ends the stream with OK', async () => {
    const { open } = rig({ flow: { limits: { maxRequests: 1 } } });
    open().ask();
    open().ask();
    const third = open().ask();
    await vi.waitFor(() => expect(third.end).toBeDefined());
    expect(third.refused).toMatchObject({
      status: 429,
      headers: { 'x-llm-d-request-dropped-reason': 'rejected-saturated' },
    });
    expect(third.refused?.headers).toHaveProperty('retry-after');
    expect(third.refused?.headers['content-type']).toContain('json');
    expect(third.end).toEqual({ code: 0, details: '' });
  });

  it('says what is missing where there are no endpoints', () => {
    const { open } = rig({ servers: 0 });
    expect(open().headers({}, true).refused?.status).toBe(503);
  });

  it('is given by the host before flow control sees the request', () => {
    const received = () => ({ status: 418, headers: { mine: 'yes' }, body: 'no' });
    const { open, flow } = rig({ options: { received } });
    expect(open().ask().refused).toEqual({ status: 418, headers: { mine: 'yes' }, body: 'no' });
    expect(flow.stats().dispatched).toBe(0);
  });

  it.each([
    ['before its answer', 0, []],
    ['in the middle of it', 1, ['responseHeaders', 'responseBody']],
  ])('evicts a request that runs, %s, for one above it', async (_, pieces, answered) => {
    const { open, flow } = rig({
      flow: { eviction: inFlightEviction() },
      options: { objectives: { batch: -10, premium: 100 } },
    });
    const batch = open().ask({ 'x-llm-d-inference-objective': 'batch' });
    if (pieces > 0) batch.answerHeaders().answerBody('data: 1', false);
    const premium = open().ask({ 'x-llm-d-inference-objective': 'premium' });
    await vi.waitFor(() => expect(premium.destination).toBeDefined());
    expect(batch.parts).toEqual(['requestHeaders', 'requestBody', ...answered, 'immediateResponse']);
    expect([batch.refused?.status, batch.end?.code, flow.stats().inFlight]).toEqual([429, 0, 1]);
  });

  it('by its size comes while the body arrives', () => {
    const { open } = rig({ options: { maxRequestBytes: 10 } });
    const proxy = open().headers().body('12345', false).body('678901', false);
    expect([proxy.refused?.status, proxy.refused?.body.includes('ERR_FLOW_REQUEST_TOO_LARGE')]).toEqual([413, true]);
  });

  it('by the bytes of all that arrive leaves the others alone, and gives the bytes back', () => {
    const { open } = rig({ options: { maxReadingBytes: 10 }, seats: 9 });
    const first = open().headers().body('12345678', false);
    expect(open().headers().body('12345', false).refused?.status).toBe(503);
    first.body('9');
    expect(first.destination).toBeDefined();
    const third = open().headers().body('1234567890', false);
    third.stream.closed();
    expect(open().headers().body('1234567890').destination).toBeDefined();
  });

  it('by time comes when a request does not arrive', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { open } = rig({ options: { receiveTimeoutMs: 100 } });
    const [silent, waiting] = [open().headers(), open().ask()];
    vi.advanceTimersByTime(101);
    expect([silent.refused?.status, waiting.refused]).toEqual([408, undefined]);
  });
});

describe('what cannot be understood', () => {
  it.each([
    ['a body before headers', 3, (open: ReturnType<typeof rig>['open']) => open().body()],
    ['headers twice', 3, (open: ReturnType<typeof rig>['open']) => open().headers().headers()],
    [
      'bodies that are streamed without waiting',
      9,
      (open: ReturnType<typeof rig>['open']) =>
        open().headers({}, false, { protocolConfig: { requestBodyMode: 1, responseBodyMode: 0 } }),
    ],
    [
      'a mode that nobody knows',
      9,
      (open: ReturnType<typeof rig>['open']) =>
        open().headers({}, false, { protocolConfig: { requestBodyMode: 77, responseBodyMode: 4 } }),
    ],
  ])('%s ends the stream with a status and a reason', (_, code, play) => {
    const { end, written } = play(rig().open);
    expect([end?.code, written]).toEqual([code, []]);
    expect(end?.details).toMatch(/./);
  });

  it('a message without a part does nothing', () => {
    expect(rig().open().send({}).ask().destination).toBe('10.0.0.1:8000');
  });

  it('values that are no UTF-8 are read as text all the same', () => {
    const proxy = rig().open();
    proxy.send({
      requestHeaders: {
        headers: { headers: [{ key: 'x-llm-d-inference-fairness-id', rawValue: Buffer.from([0xff, 0xfe, 0x00]) }] },
      },
    });
    expect(proxy.body().destination).toBe('10.0.0.1:8000');
  });

  it('more streams than there may be end with RESOURCE_EXHAUSTED, and others go on', () => {
    const { open } = rig({ seats: 9, options: { maxStreams: 2 } });
    const [first] = [open(), open()];
    expect(open().end?.code).toBe(8);
    first?.stream.closed();
    expect(open().ask().destination).toBeDefined();
  });
});

describe('a stream that the proxy leaves', () => {
  it.each<[string, (proxy: ReturnType<ReturnType<typeof rig>['open']>) => unknown]>([
    ['at its beginning', () => {}],
    ['after the headers', (proxy) => proxy.headers()],
    ['in the middle of the body', (proxy) => proxy.headers().body('{', false)],
    ['when the request goes on', (proxy) => proxy.ask()],
    ['after the headers of the answer', (proxy) => proxy.ask().answerHeaders()],
    ['in the middle of the answer', (proxy) => proxy.ask().answerHeaders().answerBody('data', false)],
    ['after the answer', (proxy) => proxy.ask().answerHeaders().answerBody('data')],
  ])('%s leaves no seat taken, and nothing is written after it', (_, play) => {
    const { open, flow } = rig();
    const proxy = open();
    play(proxy);
    proxy.stream.closed();
    proxy.ask().answerHeaders().answerBody('late');
    proxy.stream.closed();
    expect([flow.stats().inFlight, flow.stats().waiting, proxy.late, proxy.end?.code]).toEqual([0, 0, 0, 0]);
  });

  it('while it waits takes no seat later', () => {
    const { open, flow } = rig();
    const first = open().ask();
    const second = open().ask();
    second.stream.closed();
    expect(flow.stats().waiting).toBe(0);
    first.answerHeaders().answerBody('');
    expect([flow.stats().inFlight, second.written]).toEqual([0, []]);
  });
});

describe('a hook that throws', () => {
  const fault = (): never => {
    throw new Error('mine');
  };

  it.each(['received', 'facts', 'rank', 'responding', 'classify'] as const)(
    '%s: the request gets 500, and its seat is free',
    async (name) => {
      const errors: unknown[] = [];
      const { open, flow } = rig({
        servers: 2,
        options: { maxEndpoints: 2, [name]: fault, failed: (error) => errors.push(error) },
      });
      const proxy = open().ask().answerHeaders();
      await vi.waitFor(() => expect(proxy.refused?.status).toBe(500));
      expect([errors.map(String), flow.stats().inFlight]).toEqual([['Error: mine'], 0]);
    },
  );

  it('ended: the host hears of it', () => {
    const errors: unknown[] = [];
    const { open } = rig({ options: { ended: fault, failed: (error) => errors.push(error) } });
    open().ask().answerHeaders().answerBody('');
    expect(errors.map(String)).toEqual(['Error: mine']);
  });
});
