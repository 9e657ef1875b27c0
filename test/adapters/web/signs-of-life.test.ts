/**
 * Answers that begin while their requests wait, where requests and responses are all that there is. How they can end is
 * in test/integration/signs-of-life.test.ts.
 */
import { Hono } from 'hono';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { flowControl as honoFlowControl } from '../../../src/adapters/hono/index.js';
import { flowControl } from '../../../src/adapters/web/index.js';
import { concurrencyDetector, FlowController, type Lease } from '../../../src/index.js';
import { deferred, until } from '../../integration/support/until.js';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

type Fetch = (request: Request) => Promise<Response>;
type Waiting = { readonly onSign: (what: string) => void };

/** A handler behind flow control, in each way that a fetch runtime knows. */
const runtimes: Readonly<Record<string, (flow: FlowController, waiting: Waiting, handler: Fetch) => Fetch>> = {
  web: (flow, waiting, handler) => {
    const inTurn = flowControl(flow, { waiting });
    return (request) => inTurn(request, handler);
  },
  Hono: (flow, waiting, handler) => {
    const app = new Hono();
    app.use(honoFlowControl(flow, { waiting }));
    app.all('/*', (c) => handler(c.req.raw));
    return async (request) => app.fetch(request);
  },
};

const events = (): Response =>
  new Response('data: 1\n\ndata: 2\n\n', { headers: { 'content-type': 'text/event-stream; charset=utf-8' } });

/** The only seat is taken until `lease` is released; a request waits. */
async function waiting(name: string, handler: Fetch = async () => events()) {
  const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
  const held = (await flow.enqueue({ byteSize: 1 }, { fairnessId: 'other' })) as unknown as { lease: Lease };
  const told: string[] = [];
  const fetch = runtimes[name]!(flow, { onSign: (what) => told.push(what) }, handler);
  const leaving = new AbortController();
  const headers = { accept: 'text/event-stream' };
  const answered = fetch(new Request('http://localhost/v1/chat/completions', { headers, signal: leaving.signal }));
  await until('it waits', () => flow.stats().waiting === 1);
  return { flow, told, answered, lease: held.lease };
}

async function begun(...given: Parameters<typeof waiting>) {
  const waits = await waiting(...given);
  vi.advanceTimersByTime(15_000);
  const response = await waits.answered;
  vi.advanceTimersByTime(0);
  return { ...waits, response };
}

describe.each(Object.keys(runtimes))('%s: an answer that began', (name) => {
  it('goes on with the events of the handler, and the seat comes back', async () => {
    const { response, lease, told, flow } = await begun(name);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    let text = '';
    const write = (part: string): void => {
      text += part;
    };
    const over = response.body!.pipeThrough(new TextDecoderStream()).pipeTo(new WritableStream({ write }));
    await until('the first sign is read', () => text !== '');
    vi.advanceTimersByTime(10_000);
    lease.release();
    await over;
    expect(text).toBe(': waiting\n\n: waiting\n\ndata: 1\n\ndata: 2\n\n');
    expect(told).toEqual(['begun', 'sign', 'sign']);
    await until('the seat is free', () => flow.stats().inFlight === 0);
  });

  it('tells of an answer that is packed, which nobody could unpack any more', async () => {
    const head = { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' };
    const { response, lease, told } = await begun(name, async () => new Response('packed', { headers: head }));
    lease.release();
    expect(await response.text()).toMatch(/^: waiting\n\ndata: \{"error":\{.*compressed.*"status":502\}\}\n\n$/);
    expect(told).toEqual(['begun', 'sign', 'failed']);
  });

  it('is left when its reader leaves, and its place is free', async () => {
    const { response, flow, lease } = await begun(name);
    await response.body?.cancel();
    await until('nobody waits', () => flow.stats().waiting === 0);
    lease.release();
    expect(flow.stats().inFlight).toBe(0);
  });

  it('is silent towards a reader that does not read', async () => {
    const { told, lease, response } = await begun(name);
    for (let tick = 0; tick < 20; tick++) vi.advanceTimersByTime(10_000);
    expect(told.filter((what) => what === 'sign').length).toBeLessThan(4);
    lease.release();
    expect(await response.text()).toMatch(/data: 2\n\n$/);
  });

  it('does not begin where the answer comes in time', async () => {
    const { answered, lease, told } = await waiting(name, async () => new Response('quick'));
    lease.release();
    expect(await (await answered).text()).toBe('quick');
    vi.advanceTimersByTime(60_000);
    expect(told).toEqual([]);
  });
});

it('Hono: a middleware in front may take its time with an answer that began', async () => {
  const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
  const held = (await flow.enqueue({ byteSize: 1 }, { fairnessId: 'other' })) as unknown as { lease: Lease };
  const app = new Hono();
  const paused = deferred();
  app.use(async (_c, next) => {
    await next();
    await paused.promise;
  });
  app.use(honoFlowControl(flow, { waiting: {} }));
  app.all('/*', () => events());
  const answered = app.fetch(new Request('http://localhost/', { headers: { accept: 'text/event-stream' } }));
  await until('it waits', () => flow.stats().waiting === 1);
  vi.advanceTimersByTime(15_000);
  await new Promise((resolve) => setImmediate(resolve));
  vi.advanceTimersByTime(500);
  held.lease.release();
  paused.resolve();
  const response = await answered;
  expect([response.status, await response.text()]).toEqual([200, ': waiting\n\ndata: 1\n\ndata: 2\n\n']);
  await until('the seat is free', () => flow.stats().inFlight === 0);
});
