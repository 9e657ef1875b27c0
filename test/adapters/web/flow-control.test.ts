/** Handlers that take a Request and give a Response, as Next.js, Remix and SvelteKit have them. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { AddressInfo, Server } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type FlowControlOptions,
  flowControl,
  flowOf,
  type RequestContext,
  type RequestFlow,
  relay,
  type WebHandler,
} from '../../../src/adapters/web/index.js';
import { FlowConfigError, FlowControlError, inFlightEviction } from '../../../src/index.js';
import { countingGate } from '../../integration/support/counting-gate.js';
import { deferred, until } from '../../integration/support/until.js';
import { bundle, typeWithoutNode } from '../../support/bundle.js';
import { source } from '../hono/support.js';

const url = 'http://localhost/v1';

function rig(handler: WebHandler, options: FlowControlOptions<Request> = {}, gate = countingGate(1)) {
  const inTurn = flowControl(gate, options);
  return { gate, inTurn, ask: (init?: RequestInit) => inTurn(new Request(url, init), handler) };
}

describe('a handler', () => {
  it('runs when its request has a seat, and holds it until its response has been made', async () => {
    const { stream, send, end } = source();
    const { gate, ask } = rig((_request, { lease, queuedMs }) => {
      return new Response(lease.fairnessId === 'default-flow' && queuedMs === 0 ? stream : 'second', { status: 201 });
    });
    const first = await ask();
    expect([first.status, first.headers.get('x-llm-d-flow-queue-duration-ms')]).toEqual([201, '0']);
    const second = ask();
    await until('one waits', () => gate.flow.stats().waiting === 1);
    send('one');
    end();
    expect(await first.text()).toBe('one');
    expect(await (await second).text()).toBe('second');
    await until('all is released', () => gate.releases.length === 2);
    expect(gate.releases).toEqual([1, 1]);
  });

  it.each<[string, RequestInit, () => Response]>([
    ['204', {}, () => new Response(null, { status: 204 })],
    ['HEAD', { method: 'HEAD' }, () => new Response('body')],
    ['a redirect, whose headers are immutable', {}, () => Response.redirect('http://localhost/elsewhere', 302)],
    ['a short body that nobody reads', {}, () => Response.json({ error: 'no' }, { status: 404 })],
  ])('gives its seat back: %s', async (_, init, respond) => {
    const { gate, ask } = rig(respond);
    const { headers } = await ask(init);
    expect(headers.get('x-llm-d-flow-queue-duration-ms')).toBe('0');
    await until('it is back', () => gate.releases.length === 1);
    expect(gate.flow.stats().inFlight).toBe(0);
  });

  it.each<[string, WebHandler]>([
    ['rejects', async () => Promise.reject(new Error('handler failed'))],
    [
      'throws at once',
      () => {
        throw new Error('handler failed');
      },
    ],
  ])('that %s gives its seat back, and the host hears of it', async (_, handler) => {
    const { gate, ask } = rig(handler);
    await expect(ask()).rejects.toThrow('handler failed');
    expect(gate.releases).toEqual([1]);
  });

  it('finds its lease by its request, and calls that it causes find its flow in the context', async () => {
    const context = new AsyncLocalStorage<RequestContext>();
    let found: unknown[] = [];
    const { ask } = rig(
      async (request, flow) => {
        await Promise.resolve();
        found = [flowOf(request) === flow, context.getStore()?.fairnessId];
        return new Response('ok');
      },
      { context, classify: () => ({ fairnessId: 'acme' }) },
    );
    await ask();
    expect(found).toEqual([true, 'acme']);
    expect(() => flowOf(new Request(url))).toThrow(FlowConfigError);
  });

  it('inside another of the same controller has the same lease', async () => {
    const gate = countingGate(1);
    const inTurn = flowControl(gate);
    const leases: unknown[] = [];
    const answer = await inTurn(new Request(url), (request, flow) => {
      leases.push(flow.lease);
      return inTurn(request, (_request, own) => {
        leases.push(own.lease);
        return new Response('ok');
      });
    });
    expect(await answer.text()).toBe('ok');
    expect([leases.length, new Set(leases).size, gate.releases]).toEqual([2, 1, [1]]);
  });

  it('that is skipped runs at once', async () => {
    const { gate, ask } = rig(() => new Response('free'), { skip: ({ method }) => method === 'OPTIONS' });
    expect(await (await ask({ method: 'OPTIONS' })).text()).toBe('free');
    expect(gate.keys).toEqual([]);
  });

  it('gets a request without flow headers, also where the runtime lets nobody change it', async () => {
    const headers = { 'x-gateway-inference-fairness-id': 'acme', 'x-user': 'kept' };
    const { inTurn } = rig(() => new Response());
    for (const isImmutable of [false, true]) {
      const request = new Request(url, { method: 'POST', body: 'hello', headers });
      if (isImmutable)
        vi.spyOn(request.headers, 'delete').mockImplementation(() => {
          throw new TypeError('immutable');
        });
      const answer = await inTurn(request, async (own) =>
        Response.json([
          own.headers.get('x-user'),
          own.headers.get('x-gateway-inference-fairness-id'),
          await own.text(),
        ]),
      );
      expect(await answer.json()).toEqual(['kept', null, 'hello']);
    }
  });
});

describe('a client that leaves', () => {
  it('while it waits: the request is gone, and its handler never runs', async () => {
    const { stream, end } = source();
    let runs = 0;
    const { gate, ask } = rig(() => {
      runs += 1;
      return new Response(stream);
    });
    const first = await ask();
    const client = new AbortController();
    const second = ask({ signal: client.signal });
    await until('it waits', () => gate.flow.stats().waiting === 1);
    client.abort();
    expect((await second).status).toBe(503);
    end();
    await first.text();
    expect(runs).toBe(1);
  });

  it('while it is streamed to, over a real socket: the handler is told, and the seat is free', async () => {
    const told = deferred<unknown>();
    const { stream, send } = source();
    const { gate, inTurn } = rig(() => new Response());
    const handler: WebHandler = (_request, { signal }) => {
      signal.addEventListener('abort', () => told.resolve(signal.reason));
      return new Response(stream);
    };
    const server = createAdaptorServer({ fetch: (request: Request) => inTurn(request, handler) }) as Server;
    await new Promise<void>((resolve) => server.listen(0, resolve));
    onTestFinished(() => void server.close());
    const client = new AbortController();
    send('one');
    const answer = await fetch(`http://localhost:${(server.address() as AddressInfo).port}`, { signal: client.signal });
    await answer.body!.getReader().read();
    client.abort();
    expect(await told.promise).toMatchObject({ name: 'AbortError' });
    await until('the seat is free', () => gate.flow.stats().inFlight === 0);
  });
});

describe('a drop', () => {
  const full = () => countingGate(1, { limits: { maxRequests: 0 } });

  it('is answered by the error contract', async () => {
    const { ask } = rig(() => new Response(), {}, full());
    const answer = await ask();
    expect([answer.status, answer.headers.get('content-type')]).toEqual([429, 'application/problem+json']);
    expect(await answer.json()).toMatchObject({ code: 'ERR_FLOW_SATURATED', error: { type: 'rate_limit_error' } });
  });

  it('is an exception where that is asked for', async () => {
    await expect(rig(() => new Response(), { onDrop: 'throw' }, full()).ask()).rejects.toThrow(FlowControlError);
  });
});

describe('an eviction', () => {
  const options = { trust: true, objectives: { premium: 100, batch: -10 } };
  const objective = (name: string): RequestInit => ({ headers: { 'x-gateway-inference-objective': name } });
  const aborted = ({ signal }: RequestFlow): Promise<void> =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

  it.each<[string, (flow: RequestFlow) => Promise<Response>]>([
    ['the handler goes on', () => new Promise(() => {})],
    ['the handler lets the reason through', (flow) => aborted(flow).then(() => Promise.reject(flow.signal.reason))],
    [
      'the handler answers too late',
      (flow) =>
        aborted(flow)
          .then(() => until('later', () => flow.lease.isReleased))
          .then(() => new Response('late')),
    ],
  ])('before the response is answered 429, when %s', async (_, batchHandler) => {
    const { ask, gate } = rig(
      (_request, flow) => (flow.lease.priority === 100 ? new Response('premium') : batchHandler(flow)),
      options,
      countingGate(1, { eviction: inFlightEviction() }),
    );
    const batch = ask(objective('batch'));
    await until('batch runs', () => gate.flow.stats().inFlight === 1);
    const premium = ask(objective('premium'));
    expect((await batch).status).toBe(429);
    expect((await batch).headers.get('x-llm-d-request-dropped-reason')).toBe('evicted-priority');
    expect(await (await premium).text()).toBe('premium');
    await until('all is released', () => gate.releases.length === 2);
  });
});

it('says in options what is wrong, when it is made', () => {
  expect(() => flowControl(countingGate(1), { trsut: true } as object)).toThrow(FlowConfigError);
});

it('relays an upstream, and is asked for nothing where it skipped the request', async () => {
  const answer = await relay(Promise.resolve(new Response('served', { status: 201 })), new Request(url));
  expect([answer.status, await answer.text()]).toEqual([201, 'served']);
});

it('loads without Node', async () => {
  const { imports, code } = await bundle('adapters/web/index.ts');
  expect(imports.filter((path) => path.startsWith('node:'))).toEqual([]);
  expect(typeWithoutNode(code, 'flowControl')).toBe('function');
});
