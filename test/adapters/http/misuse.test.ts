/**
 * Mistakes in the use of adapters, told when they are made or, where only a request can show them, by the host's error
 * handling.
 */
import { describe, expect, it } from 'vitest';
import { flowControl as express } from '../../../src/adapters/express/index.js';
import { flowControl as fastify } from '../../../src/adapters/fastify/index.js';
import { flowControl as hono } from '../../../src/adapters/hono/index.js';
import { flowControl as koa } from '../../../src/adapters/koa/index.js';
import { type NodeRequest, type NodeResponse, flowControl as node } from '../../../src/adapters/node/index.js';
import { flowControl as undici } from '../../../src/adapters/undici/index.js';
import { FlowConfigError, type FlowController } from '../../../src/index.js';
import { makeFlow } from '../../support/flow.js';

const adapters = { node, express, koa, fastify, hono, undici } as unknown as Record<
  string,
  (flow?: unknown, options?: object) => unknown
>;

describe.each(Object.entries(adapters))('the adapter for %s', (_, flowControl) => {
  it.each([
    ['nothing', undefined, 'nothing'],
    ['the options alone', { classify: () => ({ fairnessId: 'a' }) }, 'an object with keys classify'],
    ['a promise of a controller', Promise.resolve(), 'an object with keys (none)'],
  ])('wants a controller, and tells of %s', (_case, flow, got) => {
    expect(() => flowControl(flow)).toThrow(
      new FlowConfigError('flowControl', [
        { path: 'flow', expected: 'a FlowController, or what has its enqueue', got },
      ]),
    );
  });

  it.each(['classify', 'trust', 'skip', 'byteSize', 'hasEndpoints', 'contract', 'body'])(
    'tells of an async %s',
    (name) => {
      expect(() => flowControl(makeFlow().flow, { [name]: async () => ({}) })).toThrow(
        new RegExp(`^flowControl options: ${name}: expected .*; got an async function$`),
      );
    },
  );
});

describe.each(Object.entries(adapters))('the headroom of bands, told by the adapter for %s', (_, flowControl) => {
  it('is wanted from a controller that knows it', () => {
    const gate = { enqueue: () => undefined };
    const expected = 'a FlowController, or what has its bandHeadroom';
    const issue = { path: 'bandHeadroom', expected, got: 'an object with keys enqueue' };
    expect(() => flowControl(gate, { bandHeadroom: true })).toThrow(
      new FlowConfigError('flowControl options', [issue]),
    );
    expect(() => flowControl(gate, { bandHeadroom: false })).not.toThrow();
    expect(() => flowControl(makeFlow().flow, { bandHeadroom: 'yes' })).toThrow('bandHeadroom: expected');
  });
});

/** The error that the host is given for a request. */
function errorOf(flow: FlowController, options: object): unknown {
  const limit = node(flow, options);
  const req = {
    headers: {},
    rawHeaders: [],
    method: 'GET',
    httpVersionMajor: 1,
    socket: { destroyed: false },
  } as unknown as NodeRequest;
  const res = {
    headersSent: false,
    socket: {},
    on: () => {},
    setHeader: () => {},
    removeListener: () => {},
  } as unknown as NodeResponse;
  let given: unknown = 'none';
  limit(req, res, (error) => {
    given = error;
  });
  return given;
}

describe('a request', () => {
  it.each([
    ['nothing', () => undefined, 'nothing'],
    ['a name', () => 'tenant-a', '"tenant-a" (string)'],
    ['a promise', () => Promise.reject(new Error('unheard')), 'a promise'],
  ])('is not let past flow control when classify returns %s', async (_, classify, got) => {
    const { flow } = makeFlow();
    const expected = 'an object with a fairnessId, at once: look tenants up first';
    expect(errorOf(flow, { classify })).toEqual(
      new FlowConfigError('flowControl', [{ path: 'classify', expected, got }]),
    );
    expect(flow.stats()).toMatchObject({ enqueued: 0, inFlight: 0 });
    await new Promise(setImmediate);
  });

  it('is not believed because trust returns a promise', () => {
    const { flow } = makeFlow();
    let fairnessId: string | undefined;
    flow.on('dispatched', ({ lease }) => {
      fairnessId = lease.fairnessId;
    });
    expect(errorOf(flow, { trust: () => Promise.resolve(true) })).toBeUndefined();
    expect(fairnessId).toBe('default-flow');
  });
});
